/** Room in a queue with a maximum number of items. */
import { type CheckOp, type ClientView, op } from '@tskeeper/client';
import type { Lock } from '../locks/lock.ts';
import { unlessAborted } from '../waiting/deadline.ts';
import { ItemList } from './item-list.ts';
import type { ItemNaming } from './item-names.ts';
import { failedAt } from './queue-shard.ts';

/** Throws a RangeError for a value that is not a limit. */
export function checkMaxItems(maxItems: number | undefined): void {
  if (maxItems !== undefined && (!Number.isInteger(maxItems) || maxItems < 1))
    throw new RangeError(`maxItems must be a whole number from 1, not ${maxItems}; leave it out for a queue without a limit`);
}

/** Throws a RangeError for a number of items that never fits. */
export function checkPutCount(count: number, maxItems: number): void {
  if (count > maxItems) throw new RangeError(`${count} items at once exceed maxItems, which is ${maxItems}; put fewer, or raise maxItems`);
}

export class Capacity {
  readonly #zk: ClientView;
  readonly #list: ItemList;
  readonly #producers: Lock;
  readonly #maxItems: number;

  constructor(zk: ClientView, path: string, names: Pick<ItemNaming<never>, 'parse'>, producers: Lock, maxItems: number) {
    this.#zk = zk;
    this.#list = new ItemList(zk, path, names, true);
    this.#producers = producers;
    this.#maxItems = maxItems;
  }

  /**
   * Calls `put` when there is room for this many. Only the first in the producers' queue puts, and
   * only while it is the first, which the checks ensure; so there are no further items between the
   * read and the put.
   */
  async put(count: number, put: (checks: readonly CheckOp[]) => Promise<void>, signal: AbortSignal): Promise<void> {
    for (;;) {
      await using turn = await this.#producers.acquire({ signal });
      try {
        while ((await this.#list.length(signal)) + count > this.#maxItems) await waitUntilStale(this.#zk, [this.#list], Infinity, signal);
        await put([op.check(turn.path)]);
        return;
      } catch (error) {
        // The place was lost. Nothing was put.
        if (!failedAt(error, 0, 'NoNode')) throw error;
      } finally {
        this.#list.unwatch();
      }
    }
  }
}

/** The longest that a timer of Node can wait. */
const timerMsMax = 0x7fffffff;

/**
 * Resolves when one of the lists may have something new, or after this many milliseconds. Rejects
 * with the signal's reason.
 */
export function waitUntilStale(zk: ClientView, lists: readonly ItemList[], afterMs: number, signal: AbortSignal): Promise<void> {
  const { clock } = zk;
  let cleanUp!: () => void;
  const changed = new Promise<void>((resolve) => {
    const cleanups = lists.map((list) => list.onStale(resolve));
    const timer = afterMs === Infinity ? undefined : clock.after(Math.min(Math.max(Math.ceil(afterMs), 1), timerMsMax), resolve);
    cleanUp = () => {
      for (const forget of cleanups) forget();
      if (timer !== undefined) clock.cancel(timer);
    };
  });
  return unlessAborted(changed, signal).finally(cleanUp);
}
