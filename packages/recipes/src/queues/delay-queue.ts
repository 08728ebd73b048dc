/**
 * Items that may be had from some time on (Curator's DistributedDelayQueue).
 *
 * The time is that of the ensemble: the wall clock of the leader, which is told with each write. So producers and consumers need no clocks that agree. Nobody has an item
 * too early: who finds one due, and has not heard of the leader's clock for a minute, asks, since that may have been set and the own one may run fast. How late an item may be
 * had is a matter of the wire, and of clocks of leaders that differ or are set ahead.
 */
import type { Data } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkCount, checkOptions, checkSettings } from '../given.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { delayNames } from './item-names.ts';
import { ItemQueue, type ItemQueueOptions } from './item-queue.ts';

/** When an item may be had: after some time, or at a time. */
export type Delay =
  | {
      /** So many milliseconds from now. */
      readonly delayMs: number;
      readonly dueMs?: undefined;
    }
  | {
      /** In ms since 1970, by the clock of the ensemble's leader. */
      readonly dueMs: number;
      readonly delayMs?: undefined;
    };

/** What a put of a delay queue can be asked for. */
export type DelayPutOptions = WaitOptions & Delay;

/** Items that may be had from some time on, the one whose time comes first ahead. */
export class DelayQueue extends ItemQueue<number> {
  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: ItemQueueOptions = {}) {
    checkSettings(options, 'DelayQueue', arguments.length);
    super(source, { path, names: delayNames, rankKind: 'dueMs' }, options);
  }

  /** Puts an item that may be had when its time has come. Rejects as `Queue.put` does, and with a RangeError. */
  async put(data: Data, options: DelayPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'put(data, options)');
    return await this.putAll([data], options);
  }

  /** Puts several of one time, one behind the other: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: DelayPutOptions): Promise<void> {
    checkCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, '{ delayMs: 5000 }');
    checkCallOptions(options, callOptions.putDelay, 'put');
    const { signal, timeoutMs } = options;
    const { delayMs, dueMs } = options;
    if (delayMs === undefined && dueMs === undefined)
      throw new TypeError('an item of a DelayQueue is put with delayMs or dueMs, and neither is there');
    if (delayMs !== undefined && !(Number.isFinite(delayMs) && delayMs >= 0))
      throw new RangeError(`delayMs is a number of milliseconds from 0 on, not ${delayMs}`);
    await this.putItems(items, async (within) => dueMs ?? Math.ceil((await this.ensembleTimeMs(within)) + delayMs), { signal, timeoutMs });
  }
}
