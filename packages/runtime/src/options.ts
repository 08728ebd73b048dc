import { connectionThrottleDefaults, type ConnectionThrottleOptions } from '@tskeeper/core/internal';
import type { Millis } from '@tskeeper/protocol';
import type { ClientPortSizes } from './ports/client/client-port-options.ts';

/**
 * All settings for how the runtime stores, listens and limits; settings that change decisions are
 * in the core's options. Parsed once, before the runtime is built. Defaults are ZooKeeper's where a
 * client could notice, and safer where only an operator would.
 */
export interface RuntimeOptions extends StorageOptions, PortOptions {
  /**
   * Active settings that give up a guarantee (`forceSync=no`, `skipACL=yes` ...), as written. srvr
   * and the metrics show them as long as the server runs.
   */
  readonly unsafe: readonly string[];
}

export interface StorageOptions {
  /** Folder of the snapshots and of the file that locks the folder. */
  readonly dataDir: string;
  /** Folder of the transaction logs. */
  readonly dataLogDir: string;
  /** zookeeper.datadir.autocreate: create missing folders. */
  readonly dataDirAutocreate: boolean;
  /**
   * zookeeper.db.autocreate: an empty folder is a new, empty database. Off: that needs a file
   * `initialize`, which the start deletes.
   */
  readonly dbAutocreate: boolean;
  /** zookeeper.snapshot.trust.empty: start from logs alone although snapshots are missing. */
  readonly snapshotTrustEmpty: boolean;
  /**
   * zookeeper.snapCount: txns in a log before the next snapshot; each log adds a random part, up to
   * the double. At least 2.
   */
  readonly snapCount: number;
  /**
   * zookeeper.snapSizeLimitInKb, in bytes: size of a log before the next snapshot, with the same
   * random part; 0 = no limit.
   */
  readonly snapSizeLimitBytes: number;
  /**
   * zookeeper.txnLogSizeLimitInKb, in bytes: a larger log is followed by a new one, without a
   * snapshot; 0 = no limit.
   */
  readonly txnLogSizeLimitBytes: number;
  /** zookeeper.preAllocSize, in bytes: logs grow in steps of this; 0 = no preallocation. */
  readonly preAllocSizeBytes: number;
  /** zookeeper.forceSync: with `false`, txns are acknowledged before they are durable. */
  readonly forceSync: boolean;
  /** zookeeper.fsync.warningthresholdms: a sync that takes longer is logged. */
  readonly fsyncWarningThresholdMs: Millis;
  /**
   * zookeeper.flushDelay: how long a txn may wait for others before the log is synced; 0 = sync as
   * soon as the disk is free.
   */
  readonly flushDelayMs: Millis;
  /**
   * zookeeper.maxWriteQueuePollTime: with a flush delay, sync earlier when no txn has arrived for
   * this long.
   */
  readonly maxWriteQueuePollMs: Millis;
  /** zookeeper.maxBatchSize: txns that may wait for one sync; 0 = no limit. */
  readonly maxBatchSize: number;
  /** zookeeper.snapshot.compression.method */
  readonly snapshotCompression: 'none' | 'gz' | 'snappy';
  /**
   * zookeeper.serializeLastProcessedZxid.enabled: snapshots end with the last zxid they contain.
   */
  readonly serializeLastProcessedZxid: boolean;
  /** autopurge.snapRetainCount: snapshots kept, with the logs they need. At least 3. */
  readonly snapRetainCount: number;
  /** autopurge.purgeInterval, in ms; 0 = never purge. */
  readonly purgeIntervalMs: Millis;
}

export interface PortOptions {
  readonly clientPort: number;
  /** undefined: every address. */
  readonly clientPortAddress: string | undefined;
  /** clientPortListenBacklog; undefined: the system's default. */
  readonly clientPortListenBacklog: number | undefined;
  /** Connections from one address; 0 = no limit. */
  readonly maxClientCnxns: number;
  /** zookeeper.maxCnxns: connections in all; 0 = no limit. */
  readonly maxCnxns: number;
  /** zookeeper.4lw.commands.whitelist: the words that are answered. */
  readonly fourLetterWords: readonly string[];
  /** zookeeper.nio.sessionlessCnxnTimeout: a connection without a session is closed after this. */
  readonly sessionlessTimeoutMs: Millis;
  /** zookeeper.largeRequestThreshold: a longer request counts as large; -1 = none does. */
  readonly largeRequestThreshold: number;
  /** zookeeper.largeRequestMaxBytes: limit of all large requests in progress together. */
  readonly largeRequestMaxBytes: number;
  /**
   * Limit of input and output held for all clients, where there is memory for it; not a key of the
   * configuration. A simulator makes it small.
   */
  readonly heldBytesMax: number;
  readonly connectionThrottle: ConnectionThrottleOptions;
  /** Limits of the client port that differ from its defaults. */
  readonly clientPortSizes?: Partial<ClientPortSizes>;
}

/** All but the options without a default: the folders and the client port. */
export const runtimeDefaults: Omit<RuntimeOptions, 'dataDir' | 'dataLogDir' | 'clientPort'> = {
  unsafe: [],
  dataDirAutocreate: true,
  dbAutocreate: true,
  snapshotTrustEmpty: false,
  snapCount: 100_000,
  snapSizeLimitBytes: 4 * 1024 ** 3,
  txnLogSizeLimitBytes: 0,
  preAllocSizeBytes: 64 * 1024 ** 2,
  forceSync: true,
  fsyncWarningThresholdMs: 1000,
  flushDelayMs: 0,
  maxWriteQueuePollMs: 0,
  maxBatchSize: 1000,
  snapshotCompression: 'none',
  serializeLastProcessedZxid: true,
  snapRetainCount: 3,
  // ZooKeeper does not purge by default, which fills disks. Every hour costs nothing and keeps what
  // a restart needs.
  purgeIntervalMs: 3_600_000,
  clientPortAddress: undefined,
  clientPortListenBacklog: undefined,
  maxClientCnxns: 60,
  maxCnxns: 0,
  fourLetterWords: ['srvr'],
  sessionlessTimeoutMs: 10_000,
  largeRequestThreshold: -1,
  largeRequestMaxBytes: 100 * 1024 ** 2,
  heldBytesMax: 100 * 1024 ** 2,
  connectionThrottle: connectionThrottleDefaults,
};
