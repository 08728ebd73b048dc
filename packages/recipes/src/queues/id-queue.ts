/** Items that can be removed by an id (Curator's DistributedIdQueue). */
import type { Data } from '@tskeeper/client';
import { callOptionTypes, checkCallOptions, checkArgumentCount, checkOptions, checkConstructorOptions } from '../validation.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { idNaming } from './item-names.ts';
import { BaseQueue, type BaseQueueOptions } from './base-queue.ts';

/** The options of a put to an id queue. */
export interface IdPutOptions extends WaitOptions {
  /** A non-empty string without `/` and `|`. Several items may have the same id. */
  readonly id: string;
}

/** First in, first out, with an id for each item. */
export class IdQueue extends BaseQueue<string> {
  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: BaseQueueOptions = {}) {
    checkConstructorOptions(options, 'IdQueue', arguments.length);
    super(source, { path, naming: idNaming, rankKind: undefined }, options);
  }

  /**
   * Puts an item at the end. Rejects as `Queue.put` does, and with a TypeError for an invalid id.
   */
  async put(data: Data, options: IdPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'put(data, options)');
    await this.putAll([data], options);
  }

  /** Puts several items with the same id, in this order: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: IdPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, "{ id: 'a' }");
    checkCallOptions(options, callOptionTypes.putId, 'put');
    const { signal, timeoutMs } = options;
    await this.putItems(items, () => options.id, { signal, timeoutMs });
  }

  /**
   * Removes all items with this id, except those in process; resolves with how many it has removed.
   * Rejects as `take` does.
   */
  async remove(id: string, options: WaitOptions = {}): Promise<number> {
    checkArgumentCount(arguments.length, 2, 'remove(id, options)');
    // Throws for an invalid id, as `put` does.
    idNaming.prefixOf(id);
    return await this.takeAll((item) => item.id === id, options);
  }
}
