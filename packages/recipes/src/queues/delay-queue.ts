/**
 * Items that are available from some time on (Curator's DistributedDelayQueue).
 *
 * The time is that of the ensemble: the wall clock of the leader, which the reply to each write
 * shows. So the clocks of producers and consumers need not agree. No consumer gets an item too
 * early: one that finds an item due, and has not received the leader's time for a minute, requests
 * it, since the leader's clock may have been set and its own may run fast. How late an item is
 * available depends on the network, and on leaders whose clocks differ or are set forward.
 */
import type { Data } from '@tskeeper/client';
import { callOptionTypes, checkCallOptions, checkArgumentCount, checkOptions, checkConstructorOptions } from '../validation.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { delayNaming } from './item-names.ts';
import { BaseQueue, type BaseQueueOptions } from './base-queue.ts';

/** When an item is available: after some time, or at a time. */
export type Delay =
  | {
      /** This many milliseconds from now. */
      readonly delayMs: number;
      readonly dueAtMs?: undefined;
    }
  | {
      /** In ms since 1970, by the clock of the ensemble's leader. */
      readonly dueAtMs: number;
      readonly delayMs?: undefined;
    };

/** The options of a put to a delay queue. */
export type DelayPutOptions = WaitOptions & Delay;

/** Items that are available from some time on, the earliest time first. */
export class DelayQueue extends BaseQueue<number> {
  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: BaseQueueOptions = {}) {
    checkConstructorOptions(options, 'DelayQueue', arguments.length);
    super(source, { path, naming: delayNaming, rankKind: 'dueAtMs' }, options);
  }

  /**
   * Puts an item that is available once it is due. Rejects as `Queue.put` does, and with a
   * RangeError.
   */
  async put(data: Data, options: DelayPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'put(data, options)');
    return await this.putAll([data], options);
  }

  /** Puts several items for the same time, in this order: all or none. Rejects as `put` does. */
  async putAll(items: readonly Data[], options: DelayPutOptions): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'putAll(items, options)');
    checkOptions(options, '{ delayMs: 5000 }');
    checkCallOptions(options, callOptionTypes.putDelay, 'put');
    const { signal, timeoutMs } = options;
    const { delayMs, dueAtMs } = options;
    if (delayMs === undefined && dueAtMs === undefined)
      throw new TypeError('put to a DelayQueue needs delayMs or dueAtMs: write { delayMs: 5000 }');
    if (delayMs !== undefined && !(Number.isFinite(delayMs) && delayMs >= 0))
      throw new RangeError(`delayMs must be a number of milliseconds from 0, not ${delayMs}`);
    await this.putItems(items, async (within) => dueAtMs ?? Math.ceil((await this.ensembleTimeMs(within)) + delayMs), {
      signal,
      timeoutMs,
    });
  }
}
