/** Items that can be taken out again by an id (Curator's DistributedIdQueue). */
import type { Data } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkCount, checkOptions, checkSettings } from '../given.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { idNames } from './item-names.ts';
import { ItemQueue, type ItemQueueOptions } from './item-queue.ts';

/** What a put of an id queue can be asked for. */
export interface IdPutOptions extends WaitOptions {
  /** A text without `/` and `|`. Several items may have one id. */
  readonly id: string;
}

/** First come, first served, of items that have ids. */
export class IdQueue extends ItemQueue<string> {
  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: ItemQueueOptions = {}) {
    checkSettings(options, 'IdQueue', arguments.length);
    super(source, { path, names: idNames, rankKind: undefined }, options);
  }

  /** Puts an item behind all others. Rejects as `Queue.put` does, and with a TypeError for what cannot be an id. */
  async put(data: Data, options: IdPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'put(data, options)');
    await this.putAll([data], options);
  }

  /** Puts several of one id, one behind the other: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: IdPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, "{ id: 'a' }");
    checkCallOptions(options, callOptions.putId, 'put');
    const { signal, timeoutMs } = options;
    await this.putItems(items, () => options.id, { signal, timeoutMs });
  }

  /** Takes all items with this id out, but for those that somebody works on; resolves with how many they were. Rejects as `take` does. */
  async remove(id: string, options: WaitOptions = {}): Promise<number> {
    checkCount(arguments.length, 2, 'remove(id, options)');
    // As it is refused by `put`.
    idNames.prefixOf(id);
    return await this.takeAll((item) => item.id === id, options);
  }
}
