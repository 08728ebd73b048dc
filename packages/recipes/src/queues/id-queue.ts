/** Items that can be removed by an id (Curator's DistributedIdQueue). */
import type { Data } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkCount, checkOptions, checkSettings } from '../given.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { idNames } from './item-names.ts';
import { ItemQueue, type ItemQueueOptions } from './item-queue.ts';

/** The options of a put to an id queue. */
export interface IdPutOptions extends WaitOptions {
  /** A non-empty string without `/` and `|`. Several items may have the same id. */
  readonly id: string;
}

/** First in, first out, with an id for each item. */
export class IdQueue extends ItemQueue<string> {
  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ItemQueueOptions = {}) {
    checkSettings(options, 'IdQueue', arguments.length);
    super(source, { path, names: idNames, rankKind: undefined }, options);
  }

  /**
   * Puts an item at the end. Rejects as `Queue.put` does, and with a TypeError for an invalid id.
   */
  async put(data: Data, options: IdPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'put(data, options)');
    await this.putAll([data], options);
  }

  /** Puts several items with the same id, in this order: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: IdPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, "{ id: 'a' }");
    checkCallOptions(options, callOptions.putId, 'put');
    const { signal, timeoutMs } = options;
    await this.putItems(items, () => options.id, { signal, timeoutMs });
  }

  /**
   * Removes all items with this id, except those in process; resolves with how many it has removed.
   * Rejects as `take` does.
   */
  async remove(id: string, options: WaitOptions = {}): Promise<number> {
    checkCount(arguments.length, 2, 'remove(id, options)');
    // Throws for an invalid id, as `put` does.
    idNames.prefixOf(id);
    return await this.takeAll((item) => item.id === id, options);
  }
}
