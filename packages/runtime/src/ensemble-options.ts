import type { ZabOptions } from '@tskeeper/core';
import type { Millis, QuorumConfig } from '@tskeeper/protocol';
import type { ElectionPortOptions } from './ports/election/election-port-options.ts';
import type { LearnerPortOptions } from './ports/learner/learner-port-options.ts';
import type { ConfigFileOptions } from './storage/config-files.ts';

/** The options of a server of an ensemble. Parsed once, before the runtime is built. */
export interface EnsembleOptions {
  readonly zab: ZabOptions;
  /** The active configuration, this server included. */
  readonly quorum: QuorumConfig;
  /** A later one that this server has stored and not activated. */
  readonly lastSeen?: QuorumConfig | undefined;
  /** Where the configuration is stored; undefined: nowhere but in the log. */
  readonly configFile?: ConfigFileOptions | undefined;
  /** standaloneEnabled: an ensemble keeps at least two voters. Default: true. */
  readonly standaloneEnabled?: boolean | undefined;
  /** quorumListenOnAllIPs: see `ownAddresses`. */
  readonly listensOnAllIps: boolean;
  /** zookeeper.cnxTimeout: limit to connect to another server. */
  readonly cnxTimeoutMs: Millis;
  /**
   * zookeeper.quorumCnxnTimeoutMs: limit for the first message on a connection to the election
   * port.
   */
  readonly quorumCnxnTimeoutMs: Millis;
  /** zookeeper.electionPortBindRetry: number of tries to bind; 0 = no limit. */
  readonly bindTriesMax: number;
  readonly multiAddressEnabled: boolean;
  /**
   * multiAddress.reachabilityCheckTimeoutMs, unless multiAddress.reachabilityCheckEnabled is off or
   * servers have one address each; see `ElectionPortOptions`.
   */
  readonly reachabilityCheckTimeoutMs?: Millis | undefined;
  /** connectToLearnerMasterLimit: limit for a learner to reach its leader. */
  readonly connectToLeaderMs: Millis;
  /** zookeeper.leaderConnectDelayDuringRetryMs: pause between two tries to reach it. */
  readonly leaderConnectDelayMs: Millis;
  /**
   * zookeeper.fastleader.minNotificationInterval, zookeeper.fastleader.maxNotificationInterval: how
   * often a server in an election repeats its notification.
   */
  readonly minNotificationIntervalMs: Millis;
  readonly maxNotificationIntervalMs: Millis;
  /** zookeeper.observer.election.DelayMs: see `PeerOptions.observerElectionDelayMs`. */
  readonly observerElectionDelayMs: Millis;
  /** zookeeper.observer.reconnectDelayMs: see `PeerOptions.observerReconnectDelayMs`. */
  readonly observerReconnectDelayMs: Millis;
  /** observerMasterPort: where followers accept observers; undefined: they do not. */
  readonly observerMasterPort: number | undefined;
  /**
   * zookeeper.observerMaster.sizeLimit: how many bytes of committed txns a server with
   * observerMasterPort keeps in memory for observers that reconnect.
   */
  readonly observerMasterSizeLimitBytes: number;
  /** syncEnabled: whether an observer writes the txns that it receives to its disk. */
  readonly syncEnabled: boolean;
  /** zookeeper.leaderServes: whether a leader accepts clients. */
  readonly leaderServes: boolean;
  /** readonlymode.enabled: see `PeerOptions.readOnlyMode`. */
  readonly readOnlyMode: boolean;
  /** Limits of the learner port that differ from its defaults: a simulation reaches small ones. */
  readonly learnerPort?: Partial<
    Pick<
      LearnerPortOptions,
      'halfOpenMax' | 'outputHighWaterBytes' | 'queuedBytesMax' | 'waitingBytesMax' | 'sharedBytesMin' | 'packetsPerQuantum'
    >
  >;
  /** The same for the election port. */
  readonly electionPort?: Partial<Pick<ElectionPortOptions, 'halfOpenMax' | 'unknownPeersMax' | 'messagesPerQuantum'>>;
  /** zookeeper.commitLogCount: txns kept in memory for learners that reconnect. */
  readonly commitLogCount: number;
  /** zookeeper.snapshotSizeFactor: see `logBytesMax`. */
  readonly snapshotSizeFactor: number;
}

/**
 * ZooKeeper's, except for those it counts in ticks: quorumCnxnTimeoutMs is syncLimit unless set,
 * connectToLeaderMs initLimit.
 */
export const ensembleDefaults = {
  cnxTimeoutMs: 5000,
  bindTriesMax: 3,
  multiAddressEnabled: false,
  leaderConnectDelayMs: 100,
  minNotificationIntervalMs: 200,
  maxNotificationIntervalMs: 60_000,
  observerElectionDelayMs: 200,
  observerReconnectDelayMs: 0,
  observerMasterPort: undefined,
  observerMasterSizeLimitBytes: 32 * 1024 * 1024,
  syncEnabled: true,
  leaderServes: true,
  readOnlyMode: false,
  commitLogCount: 500,
  snapshotSizeFactor: 0.33,
} as const satisfies Partial<EnsembleOptions>;
