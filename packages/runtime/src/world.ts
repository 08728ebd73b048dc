import type { AuthResult, AuthTicket, Inspector, Observer } from '@tskeeper/core';
import type { SessionId, Sid } from '@tskeeper/protocol';
import type { Clock } from './clock.ts';
import type { Disk } from './disk.ts';
import type { Logger } from './logger.ts';
import type { MemoryProbe } from './memory-use.ts';
import type { Endpoint, Network } from './network.ts';
import type { Random } from './random.ts';

/**
 * The four interfaces to the outside of a runtime, and the only ones. `server` has the real ones,
 * the simulator virtual ones.
 */
export interface World {
  readonly disk: Disk;
  readonly network: Network;
  readonly clock: Clock;
  readonly random: Random;
}

/** Snappy's raw block format; the framing of the blocks belongs to the snapshot. */
export interface SnappyCodec {
  compress(bytes: Uint8Array): Uint8Array;
  /**
   * `maxBytes` limits the allocation for an announced length. Throws on bytes that are not a block.
   */
  uncompress(bytes: Uint8Array, maxBytes: number): Uint8Array;
}

/** Facts about the program and the machine, for four letter words. */
export interface HostFacts {
  /**
   * Printed after `Zookeeper version: `: the release of ZooKeeper with this behaviour, our own
   * version, and `, built on mm/dd/yyyy hh:mm GMT`. Tools parse it.
   */
  readonly version: string;
  /** Names and values of envi, in the order of printing. */
  environment(): Iterable<readonly [name: string, value: string]>;
  /** undefined where the system does not report it. */
  openFileDescriptors(): number | undefined;
  maxFileDescriptors(): number | undefined;
}

/** Further parts that the caller of `startRuntime` provides. */
export interface RuntimeHooks {
  readonly logger: Logger;
  readonly host: HostFacts;
  /**
   * Without one the server does not know how much memory there is, and limits only what it holds
   * for clients.
   */
  readonly memory?: MemoryProbe | undefined;
  /** undefined: snapshots compressed with snappy can neither be written nor read. */
  readonly snappy: SnappyCodec | undefined;
  /** Receives all calls of the core, after the server's own metrics. */
  readonly observer?: Observer | undefined;
  /**
   * Of an ensemble of two (oraclePath): whether an outside authority, which allows it to at most
   * one of them, lets this server go on without the other. It is called ten times a second, and at
   * once when the other server is lost. A rejection counts as no.
   */
  readonly oracle?: (() => Promise<boolean>) | undefined;
  /**
   * Called once when the runtime cannot continue: a failing disk or a failed assertion. Nothing is
   * acknowledged after it. The caller of `startRuntime` should end the process.
   */
  failed(error: unknown): void;
}

/** A running server. */
export interface Runtime {
  /** The address for clients, with the actual port when port 0 was requested. */
  readonly clientEndpoint: Endpoint;
  readonly inspect: Inspector;
  /**
   * Ends a session as if it had expired. Resolves when its ephemerals are deleted and its client
   * has been notified, with false when there was no such session or it was already ending. Rejects
   * when the server closes before that.
   */
  expireSession(session: SessionId): Promise<boolean>;
  /**
   * Gives the lead to another server: `target`, or by default the follower with the highest
   * priority. Clients' writes wait meanwhile, a few milliseconds; then all clients of the ensemble
   * reconnect. Sessions live on, except local ones, which end. Resolves with that server when it
   * leads. Rejects with a sentence when this server does not lead, the target cannot take over, or
   * it does not in time; also when this server has known no leader for initLimit plus syncLimit.
   */
  transferLeadership(target?: Sid): Promise<Sid>;
  /**
   * Closes a share of the client connections of this server, from 0 to 1, in random order and about
   * 500 a second, so that the clients connect to other servers. Their sessions live on, except local
   * ones, which end at another server. Returns how many. Rejects when this server serves no clients,
   * with a RangeError for another share.
   */
  shedConnections(share: number): Promise<number>;
  /** The result of an authentication that a provider decides in its own time. */
  authenticated(ticket: AuthTicket, result: AuthResult): void;
  /** Stops accepting, makes everything acknowledged durable, and releases the data folder. */
  close(): Promise<void>;
}
