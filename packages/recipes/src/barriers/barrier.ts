/**
 * Many wait until one lets them go on. The barrier of ZooKeeper's recipes page: it is in place as long as its znode exists.
 *
 *     set      create b
 *     wait     1. exists on b, with a watch
 *              2. it is not there: go on
 *              3. it is: wait for the event
 *              4. and 1. again, since the event may be of something else
 *     remove   delete b
 */
import { type Acl, type Data, KeeperError } from '@tskeeper/client';
import { checkCount, checkPlace, checkSettings } from '../given.ts';
import { Limit } from '../waiting/limit.ts';
import { nextEvent, untilTheEnd } from '../waiting/next-event.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** What the znode of a barrier is like. Matters to whoever sets it. */
export interface BarrierOptions {
  /** Data of the znode: for people, why there is a barrier. Default: none. */
  readonly data?: Data | undefined;
  /** Whether the barrier goes with the session of whoever has set it. Default: false; it stays until somebody removes it. */
  readonly ephemeral?: boolean | undefined;
  /** Of the znode, and of its parents if they have to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** Many wait until one lets them go on: the barrier of ZooKeeper's recipes. */
export class Barrier {
  /** The znode: while it is there, the barrier is in place. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #options: BarrierOptions;

  /** Nothing is asked of a server yet. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: BarrierOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Barrier', arguments.length);
    this.path = path;
    this.#source = source;
    this.#options = options;
  }

  /**
   * Puts the barrier in place; one that is there already stays as it is. Rejects as `Client.create` does, but for NodeExists and NoNode; with a RecipeError, TimedOut; and with
   * the signal's reason. In the last two cases it may be in place, as a request may have been sent.
   */
  async set(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'set(options)');
    using limit = new Limit(this.#source, options, `an answer about the barrier ${this.path}`);
    const { signal } = limit;
    const { data = null, ephemeral = false, acl } = this.#options;
    const mode = ephemeral ? 'ephemeral' : 'persistent';
    try {
      await inSessions(this.#source, signal, (zk) =>
        zk.create(this.path, data, { mode, acl, parents: true, idempotent: true, ...untilTheEnd, signal }),
      );
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) throw error;
    }
  }

  /** Lets all go on who wait. Resolves also if there was no barrier. Rejects as `set` does, and with NotEmpty when somebody has put a znode below it. */
  async remove(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'remove(options)');
    using limit = new Limit(this.#source, options, `an answer about the barrier ${this.path}`);
    const { signal } = limit;
    try {
      await inSessions(this.#source, signal, (zk) => zk.delete(this.path, { idempotent: true, ...untilTheEnd, signal }));
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  }

  /**
   * Resolves when the barrier is not in place: at once, if that is so. Survives lost connections. Rejects with a RecipeError, TimedOut; with the signal's
   * reason; and with SessionExpired and the like.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'wait(options)');
    using limit = new Limit(this.#source, options, `the end of the barrier ${this.path}`);
    const { signal } = limit;
    await inSessions(this.#source, signal, async (zk) => {
      while (await nextEvent(zk, this.path, signal));
    });
  }
}
