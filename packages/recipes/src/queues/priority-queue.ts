/** The most urgent first: ZooKeeper's recipes page, "Priority Queues". */
import type { Data } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkCount, checkOptions, checkSettings } from '../given.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { priorityNames, type PriorityNaming } from './item-names.ts';
import { ItemQueue, type ItemQueueOptions } from './item-queue.ts';

/** How a priority queue is kept. */
export interface PriorityQueueOptions extends ItemQueueOptions {
  /**
   * How names tell the priority. `page`: `queue-YY`, 0 .. 99, as on ZooKeeper's page; `kazoo`: `entry-PPP-`, 0 .. 999, as kazoo's Queue, and its LockingQueue below
   * `entries`; `curator`: any of 32 bits, as Curator's DistributedPriorityQueue, whose data `curatorItemsCodec` knows. Default: `page`.
   */
  readonly naming?: PriorityNaming | undefined;
}

/** What a put of a priority queue can be asked for. */
export interface PriorityPutOptions extends WaitOptions {
  /** A whole number, lower first. */
  readonly priority: number;
}

/** Items with a lower number first, and of one number in the order of coming: the priority queue of ZooKeeper's recipes. */
export class PriorityQueue extends ItemQueue<number> {
  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: PriorityQueueOptions = {}) {
    checkSettings(options, 'PriorityQueue', arguments.length);
    super(source, { path, names: priorityNames(options.naming ?? 'page'), rankKind: 'priority' }, options);
  }

  /** Puts an item behind all those whose priority is not greater. Rejects as `Queue.put` does, and with a RangeError. */
  async put(data: Data, options: PriorityPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'put(data, options)');
    await this.putAll([data], options);
  }

  /** Puts several of one priority, one behind the other: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: PriorityPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, '{ priority: 5 }');
    checkCallOptions(options, callOptions.putPriority, 'put');
    const { signal, timeoutMs } = options;
    await this.putItems(items, () => options.priority, { signal, timeoutMs });
  }
}
