import type { Inspect, Observer } from '@tskeeper/core';
import type { SessionId } from '@tskeeper/protocol';
import type { Clock } from './clock.ts';
import type { Disk } from './disk.ts';
import type { Logger } from './logger.ts';
import type { MemoryProbe } from './memory-use.ts';
import type { Endpoint, Network } from './network.ts';
import type { Random } from './random.ts';

/** The four things a runtime touches, and nothing else. `server` brings the real ones, the simulator virtual ones. */
export interface World {
  readonly disk: Disk;
  readonly network: Network;
  readonly clock: Clock;
  readonly random: Random;
}

/** Snappy's raw block format; the framing around the blocks is the snapshot's own. */
export interface SnappyCodec {
  compress(bytes: Uint8Array): Uint8Array;
  /** `maxBytes` bounds what an announced length may allocate. Throws on anything that is not a block. */
  uncompress(bytes: Uint8Array, maxBytes: number): Uint8Array;
}

/** What a server can say of the program and the machine it runs on, for four letter words. */
export interface HostFacts {
  /** After `Zookeeper version: `: the release of ZooKeeper whose behaviour this is, our own, and `, built on mm/dd/yyyy hh:mm GMT`. Tools parse it. */
  readonly version: string;
  /** Names and values of envi, in the order they are printed. */
  environment(): Iterable<readonly [name: string, value: string]>;
  /** undefined where the system does not say. */
  openFileDescriptors(): number | undefined;
  maxFileDescriptors(): number | undefined;
}

/** What else whoever starts a runtime brings along. */
export interface RuntimeHooks {
  readonly logger: Logger;
  readonly host: HostFacts;
  /** Without one the server does not know how much memory there is, and bounds only what it holds for clients. */
  readonly memory?: MemoryProbe | undefined;
  /** undefined: snapshots compressed with snappy can neither be written nor read. */
  readonly snappy: SnappyCodec | undefined;
  /** Hears all that the core tells, behind the server's own metrics. */
  readonly observer?: Observer | undefined;
  /**
   * Of an ensemble of two (oraclePath): whether somebody outside, who says so to one of them at most, lets this server go on without the other.
   * It is asked ten times a second, and at once when the other is lost. A rejection is a no.
   */
  readonly oracle?: (() => Promise<boolean>) | undefined;
  /**
   * Called once when the runtime cannot go on: a failing disk, a broken belief. Nothing is acknowledged after it. Whoever started the
   * runtime ends the process.
   */
  failed(error: unknown): void;
}

/** A server at work. */
export interface Runtime {
  /** Where clients connect, with the port that was really given when 0 was asked for. */
  readonly clientEndpoint: Endpoint;
  readonly inspect: Inspect;
  /**
   * Ends a session as if its time were up. Resolves when its ephemerals are gone and its client has been told so, with false when there
   * was no such session or it was ending already. Rejects when the server ends before.
   */
  expireSession(session: SessionId): Promise<boolean>;
  /** Stops accepting, makes everything acknowledged durable, and gives the data folder back. */
  close(): Promise<void>;
}
