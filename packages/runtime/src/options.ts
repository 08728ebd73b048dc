import { connectionThrottleDefaults, type ConnectionThrottleOptions } from '@tskeeper/core/internal';
import type { Millis } from '@tskeeper/protocol';
import type { ClientPortSizes } from './ports/client/client-port-options.ts';
import type { StorageOptions } from './storage/storage-options.ts';

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
