export {
  ConnectionThrottle,
  connectionThrottleDefaults,
  type ConnectionThrottleOptions,
  type SessionKind,
} from './cnxn/connection-throttle.ts';
export { Replica, replicaOptions } from './request/replica.ts';
export { ExpiryQueue } from './session/expiry-queue.ts';
export { type LoadedSnapshot, SnapshotLoader } from './snapshot/snapshot-loader.ts';
export type { DataTree, NodeId, NodeKind } from './tree/data-tree.ts';
export { CommittedLog, committedLogDefaults, type CommittedLogOptions } from './zab/committed-log.ts';
export { logBytesMax, LogWalk, planSync, type SyncPlan } from './zab/sync-plan.ts';
