/** First in, first out: the queue of ZooKeeper's recipes page. */
import { checkArgumentCount, checkConstructorOptions } from '../validation.ts';
import type { Data } from '@tskeeper/client';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { plainNaming } from './item-names.ts';
import { BaseQueue, type BaseQueueOptions } from './base-queue.ts';

/** How a queue is kept. */
export interface QueueOptions extends BaseQueueOptions {
  /**
   * The part of the items' names before the number. Default: `queue-`, as on ZooKeeper's page.
   * ZooKeeper's `DistributedQueue` and Curator's SimpleDistributedQueue have `qn-`.
   */
  readonly prefix?: string | undefined;
}

/** First in, first out: the queue of ZooKeeper's recipes. */
export class Queue extends BaseQueue<undefined> {
  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: QueueOptions = {}) {
    checkConstructorOptions(options, 'Queue', arguments.length);
    super(source, { path, naming: plainNaming(options.prefix ?? 'queue-'), rankKind: undefined }, options);
  }

  /**
   * Puts an item at the end. It is in the queue once, even if a reply was lost, and puts are
   * applied in the order of their calls. With `maxItems` it waits for room; `signal` and
   * `timeoutMs` end that wait, but not a put that was sent.
   *
   * Rejects with a RecipeError: TimedOut, Closed, or Lost, when another client deletes the znode of
   * the wait; with the signal's reason; with SessionExpired and the like, and if their outcome is
   * `unknown`, the item may be in the queue; and with NoAuth, InvalidACL or QuotaExceeded. With
   * `maxItems`, if NoAuth concerns the deletion of its place among the producers (`op` is
   * `delete`), the item is in the queue.
   */
  async put(data: Data, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'put(data, options)');
    return await this.putItems([data], () => undefined, options);
  }

  /**
   * Puts several items, in this order and without others between them: all or none. Rejects as
   * `put` does.
   */
  async putAll(items: readonly Data[], options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'putAll(items, options)');
    return await this.putItems(items, () => undefined, options);
  }
}
