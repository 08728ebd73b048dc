export { Cache } from './caches/cache.ts';
export type {
  CacheChange,
  CachedZnode,
  CacheMark,
  CacheOptions,
  Decode,
  ManyZnodesOptions,
  ReadingOptions,
} from './caches/cached-znode.ts';
export type { CacheChanges, ChangesOptions } from './caches/change-stream.ts';
export { ChildrenCache, type ChildrenCacheOptions } from './caches/children-cache.ts';
export { NodeCache, type NodeCacheOptions } from './caches/node-cache.ts';
export { TreeCache, type TreeCacheOptions } from './caches/tree-cache.ts';
export { Election, type ElectionOptions, type Leader } from './elections/election.ts';
export { Leadership } from './elections/leadership.ts';
export { Group, type GroupOptions, type JoinOptions, type Member, type Membership } from './groups/group.ts';
export type { GroupNaming } from './groups/naming.ts';
export type { OwnPartition, PartitionWork } from './groups/partition-claim.ts';
export { type PartitionPlan, SetPartitioner, type SetPartitionerOptions, type SetPartitionerState } from './groups/set-partitioner.ts';
export type { Contender } from './line/contender.ts';
export { Held, type HoldState } from './line/held.ts';
export { HeldTogether } from './line/held-together.ts';
export type { LineOptions } from './line/line.ts';
export { Lock, type LockOptions } from './locks/lock.ts';
export { Semaphore, type SemaphoreOptions } from './locks/semaphore.ts';
export { type LockSide, SharedLock, type SharedLockOptions } from './locks/shared-lock.ts';
export type { AcquireOptions, RevokeOptions } from './line/acquire.ts';
export { PersistentNode, type PersistentNodeOptions, type PersistentNodeState } from './nodes/persistent-node.ts';
export { RecipeError, type RecipeErrorCode } from './recipe-error.ts';
export type { SessionSource } from './sessions/session-source.ts';
export { type OpenClient, Sessions } from './sessions/sessions.ts';
export { AtomicNumber, type AtomicNumberOptions, type NumberChange } from './values/atomic-number.ts';
export { CachedNumber } from './values/cached-number.ts';
export { bigint64, int32, type NumberFormat, textFloat, textInteger } from './values/number-format.ts';
export { SharedCount, type SharedCountOptions } from './values/shared-count.ts';
export { SharedValue, type SharedValueOptions, type SharedValueView, type ValueCodec, type VersionedValue } from './values/shared-value.ts';
export type { WaitOptions } from './waiting/wait-options.ts';
