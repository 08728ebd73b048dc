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
