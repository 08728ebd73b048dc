/**
 * What an operator can set of the storage. Most are keys of zoo.cfg or properties that ZooKeeper
 * reads from Java's command line, as named here; the defaults are in `runtimeDefaults`.
 */
import type { Millis } from '@tskeeper/protocol';

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
