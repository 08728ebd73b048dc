/** An item, as programs see it. */
import type { ReadItem } from './queue-shard.ts';

/** An item of a queue. */
export interface QueueItem {
  /** The path of its znode; after `take`, where it was. */
  readonly path: string;
  /** The name of its znode: `queue-0000000007`. */
  readonly name: string;
  /** As put. */
  readonly data: Uint8Array | null;
  /** The number at the end of the name, -2147483648 .. 2147483647. */
  readonly sequence: number;
  /** For an item of a PriorityQueue, lower first; undefined otherwise. */
  readonly priority: number | undefined;
  /**
   * For an item of a DelayQueue: the time from which it is available, in ms since 1970; undefined
   * otherwise.
   */
  readonly dueAtMs: number | undefined;
  /** For an item of an IdQueue; undefined otherwise. */
  readonly id: string | undefined;
}

/** What the ranks of a queue's items mean; undefined if they have none. */
export type RankKind = 'priority' | 'dueAtMs' | undefined;

export function toQueueItem({ path, name, data, sequence, rank, id }: ReadItem, kind: RankKind): QueueItem {
  return {
    path,
    name,
    data,
    sequence,
    priority: kind === 'priority' ? rank : undefined,
    dueAtMs: kind === 'dueAtMs' ? rank : undefined,
    id,
  };
}
