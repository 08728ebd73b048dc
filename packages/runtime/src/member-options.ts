import type { ZabOptions } from '@tskeeper/core';
import type { HostPort, Millis, QuorumConfig } from '@tskeeper/protocol';

/** What makes a server one of an ensemble. Parsed once, before the runtime is built. */
export interface MemberOptions {
  readonly zab: ZabOptions;
  readonly role: 'participant' | 'observer';
  /** The configuration in force, this server included. */
  readonly quorum: QuorumConfig;
  /** Where this server listens; the host is a wildcard where quorumListenOnAllIPs is set. */
  readonly electionAddress: HostPort;
  readonly quorumAddress: HostPort;
  /** zookeeper.cnxTimeout: to connect to another server. */
  readonly cnxTimeoutMs: Millis;
  /** zookeeper.quorumCnxnTimeoutMs: to hear what a dialler of the election port says first. */
  readonly quorumCnxnTimeoutMs: Millis;
  /** zookeeper.electionPortBindRetry: how often it is tried to listen; 0 = until it works. */
  readonly bindTriesMax: number;
  readonly multiAddressEnabled: boolean;
  /** connectToLearnerMasterLimit: for a learner to reach its leader. */
  readonly connectToLeaderMs: Millis;
  /** zookeeper.commitLogCount: txns in memory for learners that come back. */
  readonly commitLogCount: number;
  /** zookeeper.snapshotSizeFactor: see `logBytesMax`. */
  readonly snapshotSizeFactor: number;
}
