/** The most urgent item first: ZooKeeper's recipes page, "Priority Queues". */
import type { Data } from '@tskeeper/client';
import { callOptionTypes, checkCallOptions, checkArgumentCount, checkOptions, checkConstructorOptions } from '../validation.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { priorityNaming, type PriorityNaming } from './item-names.ts';
import { BaseQueue, type BaseQueueOptions } from './base-queue.ts';

/** How a priority queue is kept. */
export interface PriorityQueueOptions extends BaseQueueOptions {
  /**
   * How names contain the priority. `page`: `queue-YY`, 0 .. 99, as on ZooKeeper's page; `kazoo`:
   * `entry-PPP-`, 0 .. 999, as in kazoo's Queue, and in its LockingQueue below `entries`;
   * `curator`: any 32-bit number, as in Curator's DistributedPriorityQueue, whose data
   * `curatorItemsCodec` reads. Default: `page`.
   */
  readonly naming?: PriorityNaming | undefined;
}

/** The options of a put to a priority queue. */
export interface PriorityPutOptions extends WaitOptions {
  /** A whole number, lower first. */
  readonly priority: number;
}

/**
 * Items with a lower number first, and those with the same number in the order of arrival: the
 * priority queue of ZooKeeper's recipes.
 */
export class PriorityQueue extends BaseQueue<number> {
  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: PriorityQueueOptions = {}) {
    checkConstructorOptions(options, 'PriorityQueue', arguments.length);
    super(source, { path, naming: priorityNaming(options.naming ?? 'page'), rankKind: 'priority' }, options);
  }

  /**
   * Puts an item after all those whose number is lower or the same. Rejects as `Queue.put` does,
   * and with a RangeError.
   */
  async put(data: Data, options: PriorityPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'put(data, options)');
    await this.putAll([data], options);
  }

  /**
   * Puts several items with the same priority, in this order: all or none. Rejects as `put` does.
   */
  async putAll(items: readonly Data[], options: PriorityPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, '{ priority: 5 }');
    checkCallOptions(options, callOptionTypes.putPriority, 'put');
    const { signal, timeoutMs } = options;
    await this.putItems(items, () => options.priority, { signal, timeoutMs });
  }
}
