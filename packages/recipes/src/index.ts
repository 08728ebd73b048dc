export { Barrier, type BarrierOptions } from './barriers/barrier.ts';
export { DoubleBarrier, type DoubleBarrierOptions } from './barriers/double-barrier.ts';
export { Participation } from './barriers/participation.ts';
export { SimpleBarrier, type SimpleBarrierOptions } from './barriers/simple-barrier.ts';
export { Cache } from './caches/cache.ts';
export type {
  CacheChange,
  CachedZnode,
  CacheStatusChange,
  CacheOptions,
  Decode,
  MultiZnodeCacheOptions,
  ConcurrencyOption,
} from './caches/cached-znode.ts';
export type { CacheChanges, ChangesOptions } from './caches/change-stream.ts';
export { ChildrenCache, type ChildrenCacheOptions } from './caches/children-cache.ts';
export { NodeCache, type NodeCacheOptions } from './caches/node-cache.ts';
export { TreeCache, type TreeCacheOptions } from './caches/tree-cache.ts';
export { bytesCodec, type Codec, jsonCodec, textCodec } from './codecs/codec.ts';
export type { Validator, StandardIssue, StandardResult, StandardSchema } from './codecs/standard-schema.ts';
export { LeaderLatch } from './elections/leader-latch.ts';
export { Election, type ElectionOptions, type Leader } from './elections/election.ts';
export { Leadership } from './elections/leadership.ts';
export { EventHandle, type EventHandleOptions } from './events/event-handle.ts';
export { Group, type GroupOptions, type JoinOptions, type Member, type Membership } from './groups/group.ts';
export type { GroupNaming } from './groups/naming.ts';
export type { OwnedPartition, PartitionWork } from './groups/partition-claim.ts';
export { type PartitionPlan, SetPartitioner, type SetPartitionerOptions, type SetPartitionerState } from './groups/set-partitioner.ts';
export { Lease, type LeaseOptions } from './leases/lease.ts';
export { HeldLease } from './leases/held-lease.ts';
export { MultiLease, type MultiLeaseOptions } from './leases/multi-lease.ts';
export type { Contender } from './wait-queue/contender.ts';
export { Hold, type HoldState } from './wait-queue/hold.ts';
export { HoldSet } from './wait-queue/hold-set.ts';
export type { ContenderOptions } from './wait-queue/wait-queue.ts';
export { Lock, type LockOptions } from './locks/lock.ts';
export { type Acquirable, MultiLock } from './locks/multi-lock.ts';
export { PriorityLock, type PriorityLockOptions, type PreemptOptions } from './locks/priority-lock.ts';
export { Semaphore, type SemaphoreOptions } from './locks/semaphore.ts';
export { type LockHandle, ReadWriteLock, type ReadWriteLockOptions } from './locks/read-write-lock.ts';
export type { AcquireOptions, RevokeOptions } from './wait-queue/acquire.ts';
export { PersistentNode, type PersistentNodeOptions, type PersistentNodeState } from './nodes/persistent-node.ts';
export { ClaimedItem } from './queues/claimed-item.ts';
export { curatorItemsCodec } from './queues/curator-items.ts';
export { type Delay, type DelayPutOptions, DelayQueue } from './queues/delay-queue.ts';
export { type IdPutOptions, IdQueue } from './queues/id-queue.ts';
export type { PriorityNaming } from './queues/item-names.ts';
export { BaseQueue, type BaseQueueOptions, type QueuedItem } from './queues/base-queue.ts';
export { type PriorityPutOptions, PriorityQueue, type PriorityQueueOptions } from './queues/priority-queue.ts';
export type { QueueItem } from './queues/queue-item.ts';
export { Queue, type QueueOptions } from './queues/queue.ts';
export { ShardedQueue, type ShardedQueueOptions } from './queues/sharded-queue.ts';
export { RecipeError, type RecipeErrorCode } from './recipe-error.ts';
export type { SessionSource } from './sessions/session-source.ts';
export { type OpenClient, Sessions, type SessionsOptions } from './sessions/sessions.ts';
export { Site } from './transactions/site.ts';
export { type BeginOptions, TwoPhaseCommit, type TwoPhaseCommitOptions } from './transactions/two-phase-commit.ts';
export type { Vote } from './transactions/votes.ts';
export { AtomicNumber, type AtomicNumberOptions, type NumberChange } from './values/atomic-number.ts';
export { CachedAtomicNumber } from './values/cached-atomic-number.ts';
export { bigint64, int32, type NumberFormat, textFloat, textInteger } from './values/number-format.ts';
export { SharedCount, type SharedCountOptions } from './values/shared-count.ts';
export { SharedValue, type SharedValueOptions, type SharedValueView, type VersionedValue } from './values/shared-value.ts';
export type { WaitOptions } from './wait-options.ts';
export { type AppliedMigration, type Migration, Migrations, type MigrationsOptions } from './models/migrations.ts';
export { Model } from './models/model.ts';
export { type ListedValue, ModelChildren } from './models/model-children.ts';
export type { ModelOptions, ModelSettings, ModelValue } from './models/model-value.ts';
export { type ModelCreateOptions, type ModelOps, type ModelUpdateOptions, ModelZnode } from './models/model-znode.ts';
export {
  type ParamNames,
  type ParamValue,
  type ParentTemplate,
  type PathArguments,
  type PathParams,
  PathTemplate,
} from './models/path-template.ts';
export type { Allowance, PathSchema, SchemaSetOptions } from './models/schema-rules.ts';
export { SchemaSet } from './models/schema-set.ts';
export { Registration } from './discovery/registration.ts';
export { ServiceCache } from './discovery/service-cache.ts';
export type {
  InstanceChange,
  InstanceSettings,
  PayloadSettings,
  ServiceInstance,
  ServiceSettings,
  ServiceType,
} from './discovery/service-instance.ts';
export { ServiceProvider, type ServiceProviderOptions } from './discovery/service-provider.ts';
export { type RegisterOptions, ServiceDiscovery, type ServiceDiscoveryOptions } from './discovery/service-discovery.ts';
export { type ProviderStrategy, randomly, roundRobin, sticky } from './discovery/strategies.ts';
export { buildUri } from './discovery/uri-spec.ts';
