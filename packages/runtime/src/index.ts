export type { Clock, TimerHandle } from './clock.ts';
export { type Disk, DiskError, type DiskFile, FolderInUse, type FolderLock, type ReadableFile } from './disk.ts';
export { type FieldsAt, type LogEvent, logEvents, type LogFields } from './log-events.ts';
export { type Logger, silentLogger } from './logger.ts';
export type { MemoryProbe, MemoryUse } from './memory-use.ts';
export {
  type Endpoint,
  type Listener,
  ListenError,
  type ListenOptions,
  type Network,
  type NetworkSink,
  type ReceivedBatch,
  type SendBatch,
  type StreamId,
} from './network.ts';
export type { Random } from './random.ts';
export { crashChoices } from './virtual/crash-choices.ts';
export { ManualClock } from './virtual/manual-clock.ts';
export { type CrashChoice, type DiskImage, keepAll, loseAll, sectorBytes, type Unsynced } from './virtual/disk-image.ts';
export { type DiskCall, type DiskFault, type DiskOperation, VirtualDisk } from './virtual/virtual-disk.ts';
export { SeededRandom } from './virtual/seeded-random.ts';
export { type PortOptions, runtimeDefaults, type RuntimeOptions } from './options.ts';
export { ensembleDefaults, type EnsembleOptions } from './ensemble-options.ts';
export { type OwnAddresses, ownAddresses } from './own-addresses.ts';
export type { ConfigFileOptions } from './storage/config-files.ts';
export { BindError } from './ports/bind-listener.ts';
export { startRuntime } from './runtime.ts';
export type { HostFacts, Runtime, RuntimeHooks, SnappyCodec, World } from './world.ts';
export type { EpochName } from '@tskeeper/core';
export { readEpoch, writeEpoch } from './storage/epoch-files.ts';
export { logName, markName, numberedFiles, type NumberedFile, snapshotName, zxidOfName } from './storage/file-names.ts';
export { type LogEnd, type LogEndReason, type LogRange, type OnLogEntry, readLog } from './storage/log-reader.ts';
export { type TxnLogChunk, TxnLogIterator } from './storage/txn-log-iterator.ts';
export { purge, type PurgeFolders, type PurgeResult } from './storage/purge.ts';
export type { LogEntry } from '@tskeeper/core/internal';
export type { RecentTxnsLimits } from './storage/recent-txns.ts';
export { type RecoveryResult, Recovery, type RecoveryOptions, type RecoveryTarget } from './storage/recovery.ts';
export { decodeSnapshot, type SnapshotCompression } from './storage/snapshot-codec.ts';
export {
  type AsyncSnapshotSource,
  loadSnapshot,
  type SnapshotSink,
  type SnapshotSource,
  verifySnapshot,
  writeSnapshot,
} from './storage/snapshot-files.ts';
export type { StorageOptions } from './storage/storage-options.ts';
export { StorageRefused } from './storage/storage-refused.ts';
export {
  type EnsembleRecoveryResult,
  Storage,
  type StorageHooks,
  type StorageSink,
  type StorageSizes,
  type StorageWorld,
} from './storage/storage.ts';
export { TruncationImpossible } from './storage/truncation.ts';
export { type Arrival, type FlushedBatch, TxnLog, type TxnLogOptions, type TxnLogSink } from './storage/txn-log.ts';
