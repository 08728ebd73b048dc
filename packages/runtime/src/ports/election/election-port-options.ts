/**
 * What an election port can be configured with. The limits of its connections protect a server from
 * others outside the ensemble: a connection costs a descriptor, and the election port accepts one
 * before it knows its server.
 */
import type { Millis, Sid } from '@tskeeper/protocol';

export interface ElectionPortOptions {
  /** myid. */
  readonly sid: Sid;
  /** zookeeper.cnxTimeout: for one look-up of a name, or for connecting to one address. */
  readonly cnxTimeoutMs: Millis;
  /**
   * zookeeper.quorumCnxnTimeoutMs, or tickTime x syncLimit: limit for the introduction of a
   * dialling server.
   */
  readonly initialMessageTimeoutMs: Millis;
  /**
   * multiAddress.enabled: the initial message contains all addresses of this server and not just
   * the first.
   */
  readonly multiAddressEnabled: boolean;
  /**
   * multiAddress.reachabilityCheckTimeoutMs: how long one of a server's addresses may take to
   * answer before the next one is tried as well, and how long a server with several addresses may
   * leave a message unanswered, 1 s at least, before it is dialled anew; undefined: addresses are tried one after
   * the other, and a connection is kept until it closes.
   */
  readonly reachabilityCheckTimeoutMs?: Millis | undefined;
  /** zookeeper.electionPortBindRetry: number of tries to listen; 0 = no limit. */
  readonly bindTriesMax: number;
  /** Limit of connections that have not introduced themselves. */
  readonly halfOpenMax: number;
  /**
   * Limit of connected servers outside the configuration: observers without a number, servers that
   * are about to be added.
   */
  readonly unknownPeersMax: number;
  /** Messages of one connection before another gets its turn. */
  readonly messagesPerQuantum: number;
}

/** ZooKeeper's values with a tick of 2 s, where it has any. */
export const electionPortDefaults = {
  cnxTimeoutMs: 5000,
  initialMessageTimeoutMs: 10_000,
  multiAddressEnabled: false,
  bindTriesMax: 3,
  halfOpenMax: 256,
  unknownPeersMax: 256,
  messagesPerQuantum: 64,
} as const satisfies Omit<ElectionPortOptions, 'sid'>;
