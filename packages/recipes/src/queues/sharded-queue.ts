/**
 * One queue over several znodes (Curator's QueueSharder). A consumer lists a znode, and that reply
 * has to be shorter than jute.maxbuffer, 1 MiB by default: some 50 000 names. A queue that may grow
 * longer is sharded.
 *
 *     /jobs
 *       ├─ shard-00
 *       │    └─ queue-0000000007
 *       └─ shard-01
 *            └─ queue-0000000003
 */
import type { Data } from '@tskeeper/client';
import { checkArgumentCount, checkOptions, checkConstructorOptions } from '../validation.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { plainNaming } from './item-names.ts';
import { BaseQueue, type BaseQueueOptions } from './base-queue.ts';

/** How a queue is sharded. All its clients use the same options. */
export interface ShardedQueueOptions extends Omit<BaseQueueOptions, 'maxItems' | 'claimsPath'> {
  /**
   * How many znodes: 1 to 100. To increase it, update the consumers first, and the producers after
   * all consumers.
   */
  readonly shards: number;
}

/** Several znodes: in the order of arrival only within each of them. */
export class ShardedQueue extends BaseQueue<undefined> {
  /**
   * Sends no request. The znodes need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ShardedQueueOptions) {
    checkOptions(options, '{ shards: 4 }');
    checkConstructorOptions(options, 'ShardedQueue', arguments.length);
    const { shards: count } = options;
    if (!Number.isInteger(count) || count < 1 || count > 100)
      throw new RangeError(`shards must be a whole number from 1 to 100, not ${count}`);
    const shards = Array.from({ length: count }, (_, at) => `shard-${String(at).padStart(2, '0')}`);
    super(source, { path, shards, naming: plainNaming('queue-'), rankKind: undefined }, options);
  }

  /** Puts an item into the next znode in turn. Rejects as `Queue.put` does. */
  async put(data: Data, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'put(data, options)');
    return await this.putItems([data], () => undefined, options);
  }

  /** Puts several items into one znode, in this order: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'putAll(items, options)');
    return await this.putItems(items, () => undefined, options);
  }
}
