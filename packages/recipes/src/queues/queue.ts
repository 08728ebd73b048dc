/** First come, first served: the queue of ZooKeeper's recipes page. */
import { checkCount, checkSettings } from '../given.ts';
import type { Data } from '@tskeeper/client';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { plainNames } from './item-names.ts';
import { ItemQueue, type ItemQueueOptions } from './item-queue.ts';

/** How a queue is kept. */
export interface QueueOptions extends ItemQueueOptions {
  /**
   * What stands in the names of items ahead of the number. Default: `queue-`, as on ZooKeeper's page. ZooKeeper's `DistributedQueue` and Curator's
   * SimpleDistributedQueue have `qn-`.
   */
  readonly prefix?: string | undefined;
}

/** First come, first served: the queue of ZooKeeper's recipes. */
export class Queue extends ItemQueue<undefined> {
  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: QueueOptions = {}) {
    checkSettings(options, 'Queue', arguments.length);
    super(source, { path, names: plainNames(options.prefix ?? 'queue-'), rankKind: undefined }, options);
  }

  /**
   * Puts an item behind all others. It is in the queue once, also when an answer was lost, and puts that were called one behind the other are in it in that order.
   * With `maxItems` it waits for room, and until then `signal` and `timeoutMs` end it; what is on its way is waited for.
   *
   * Rejects with a RecipeError: TimedOut, Closed, or Lost, when somebody deletes the znode that stands for the wait; with the signal's reason; with SessionExpired and the
   * like, and then it may be in the queue, if the outcome is `unknown`; and with NoAuth, InvalidACL, QuotaExceeded. With `maxItems` it is in the queue if it was its
   * place among the producers that may not be deleted (NoAuth, `op` is `delete`).
   */
  async put(data: Data, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'put(data, options)');
    return await this.putItems([data], () => undefined, options);
  }

  /** Puts several, one behind the other with nothing between them: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'putAll(items, options)');
    return await this.putItems(items, () => undefined, options);
  }
}
