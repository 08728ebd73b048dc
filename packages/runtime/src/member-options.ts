import type { ZabOptions } from '@tskeeper/core';
import type { HostPort, Millis, QuorumConfig } from '@tskeeper/protocol';
import type { ElectionPortOptions } from './ports/election-port.ts';
import type { LearnerPortOptions } from './ports/learner-port.ts';

/** What makes a server one of an ensemble. Parsed once, before the runtime is built. */
export interface MemberOptions {
  readonly zab: ZabOptions;
  readonly role: 'participant' | 'observer';
  /** The configuration in force, this server included. */
  readonly quorum: QuorumConfig;
  /** Where this server listens; a host is a wildcard where quorumListenOnAllIPs is set. More than one with multiAddress.enabled only. */
  readonly electionAddresses: readonly HostPort[];
  readonly quorumAddresses: readonly HostPort[];
  /** zookeeper.cnxTimeout: to connect to another server. */
  readonly cnxTimeoutMs: Millis;
  /** zookeeper.quorumCnxnTimeoutMs: to hear what a dialler of the election port says first. */
  readonly quorumCnxnTimeoutMs: Millis;
  /** zookeeper.electionPortBindRetry: how often it is tried to listen; 0 = until it works. */
  readonly bindTriesMax: number;
  readonly multiAddressEnabled: boolean;
  /** connectToLearnerMasterLimit: for a learner to reach its leader. */
  readonly connectToLeaderMs: Millis;
  /** zookeeper.leaderConnectDelayDuringRetryMs: between two tries to reach it. */
  readonly leaderConnectDelayMs: Millis;
  /** zookeeper.fastleader.minNotificationInterval, zookeeper.fastleader.maxNotificationInterval: when a server in an election repeats itself. */
  readonly minNotificationIntervalMs: Millis;
  readonly maxNotificationIntervalMs: Millis;
  /** zookeeper.observer.election.DelayMs: see `PeerOptions.observerElectionDelayMs`. */
  readonly observerElectionDelayMs: Millis;
  /** zookeeper.leaderServes: whether a leader takes clients. */
  readonly leaderServes: boolean;
  /** Sizes at which the learner port begins to do otherwise, where they are not its defaults: a simulation goes there with little. */
  readonly learnerPort?: Partial<
    Pick<LearnerPortOptions, 'halfOpenMax' | 'fullBytes' | 'behindBytesMax' | 'waitingBytesMax' | 'sharedBytesMin' | 'packetsPerGo'>
  >;
  /** The same of the election port. */
  readonly electionPort?: Partial<Pick<ElectionPortOptions, 'halfOpenMax' | 'strangersMax' | 'messagesPerGo'>>;
  /** zookeeper.commitLogCount: txns in memory for learners that come back. */
  readonly commitLogCount: number;
  /** zookeeper.snapshotSizeFactor: see `logBytesMax`. */
  readonly snapshotSizeFactor: number;
}

/** ZooKeeper's, but for what it counts in ticks: quorumCnxnTimeoutMs is syncLimit unless set, connectToLeaderMs initLimit. */
export const memberDefaults = {
  cnxTimeoutMs: 5000,
  bindTriesMax: 3,
  multiAddressEnabled: false,
  leaderConnectDelayMs: 100,
  minNotificationIntervalMs: 200,
  maxNotificationIntervalMs: 60_000,
  observerElectionDelayMs: 200,
  leaderServes: true,
  commitLogCount: 500,
  snapshotSizeFactor: 0.33,
} as const satisfies Partial<MemberOptions>;
