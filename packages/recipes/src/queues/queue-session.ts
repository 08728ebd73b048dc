/**
 * What a queue keeps as long as one session lasts: its marks, the lists that it watches, and its
 * places in the queues of consumers and producers.
 */
import type { Acl, ClientView } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { Lock } from '../locks/lock.ts';
import { Marks } from '../marks/marks.ts';
import { Consumers } from './consumers.ts';
import type { ItemNames } from './item-names.ts';
import type { RankKind } from './queue-item.ts';
import { QueueZnode } from './queue-znode.ts';
import { Room } from './room.ts';

export interface QueueSessionOptions<Label> {
  readonly path: string;
  /** The znodes below `path` that have the items; undefined if `path` itself has them. */
  readonly shards: readonly string[] | undefined;
  readonly names: ItemNames<Label>;
  readonly rankKind: RankKind;
  readonly acl: readonly Acl[] | undefined;
  readonly items: 'persistent' | 'ephemeral';
  readonly maxItems: number | undefined;
  readonly takenPath: string | undefined;
}

export class QueueSession<Label> {
  readonly marks: Marks;
  readonly znodes: readonly QueueZnode<Label>[];
  readonly consumers: Consumers<Label>;
  /** undefined for a queue without a limit. */
  readonly room: Room | undefined;

  constructor(zk: ClientView, options: QueueSessionOptions<Label>) {
    const { path, shards, names, rankKind, acl, items, maxItems, takenPath } = options;
    const aside = `${path}-aside`;
    const claims = takenPath ?? childPath(aside, 'claims');
    const marks = new Marks(zk, childPath(aside, 'marks'), acl);
    const znode = (each: string, claimsPath: string) =>
      new QueueZnode(zk, marks, {
        path: each,
        names,
        acl,
        claimsPath,
        mode: `${items}Sequential`,
        sharesClaims: takenPath !== undefined,
        drops: rankKind !== undefined,
        isTimed: rankKind === 'dueMs',
      });
    const lineOf = (name: string) => new Lock(zk, childPath(aside, name), { acl });
    this.marks = marks;
    this.znodes =
      shards === undefined ? [znode(path, claims)] : shards.map((name) => znode(childPath(path, name), childPath(claims, name)));
    this.consumers = new Consumers(zk, this.znodes, lineOf('consumers'));
    this.room = maxItems === undefined ? undefined : new Room(zk, path, names, lineOf('producers'), maxItems);
  }
}
