/**
 * What a queue keeps as long as one session lasts: its marks, the lists that it watches, and its
 * places in the queues of consumers and producers.
 */
import type { Acl, ClientView } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { Lock } from '../locks/lock.ts';
import { IdempotencyMarkers } from '../markers/idempotency-markers.ts';
import { Consumers } from './consumers.ts';
import type { ItemNaming } from './item-names.ts';
import type { RankKind } from './queue-item.ts';
import { QueueShard } from './queue-shard.ts';
import { Capacity } from './capacity.ts';

export interface QueueSessionOptions<Label> {
  readonly path: string;
  /** The znodes below `path` that have the items; undefined if `path` itself has them. */
  readonly shards: readonly string[] | undefined;
  readonly naming: ItemNaming<Label>;
  readonly rankKind: RankKind;
  readonly acl: readonly Acl[] | undefined;
  readonly items: 'persistent' | 'ephemeral';
  readonly maxItems: number | undefined;
  readonly claimsPath: string | undefined;
}

export class QueueSession<Label> {
  readonly markers: IdempotencyMarkers;
  readonly shards: readonly QueueShard<Label>[];
  readonly consumers: Consumers<Label>;
  /** undefined for a queue without a limit. */
  readonly capacity: Capacity | undefined;

  constructor(zk: ClientView, options: QueueSessionOptions<Label>) {
    const { path, shards, naming, rankKind, acl, items, maxItems, claimsPath } = options;
    const sidePath = `${path}-aside`;
    const claimsRoot = claimsPath ?? childPath(sidePath, 'claims');
    const marks = new IdempotencyMarkers(zk, childPath(sidePath, 'marks'), acl);
    const createShard = (each: string, shardClaimsPath: string) =>
      new QueueShard(zk, marks, {
        path: each,
        naming,
        acl,
        claimsPath: shardClaimsPath,
        mode: `${items}Sequential`,
        claimsNamedAsItems: claimsPath !== undefined,
        isRanked: rankKind !== undefined,
        isTimed: rankKind === 'dueAtMs',
      });
    const waitLockOf = (name: string) => new Lock(zk, childPath(sidePath, name), { acl });
    this.markers = marks;
    this.shards =
      shards === undefined
        ? [createShard(path, claimsRoot)]
        : shards.map((name) => createShard(childPath(path, name), childPath(claimsRoot, name)));
    this.consumers = new Consumers(zk, this.shards, waitLockOf('consumers'));
    this.capacity = maxItems === undefined ? undefined : new Capacity(zk, path, naming, waitLockOf('producers'), maxItems);
  }
}
