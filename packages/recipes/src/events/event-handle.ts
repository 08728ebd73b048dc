/**
 * An event that is set or not, and lets through who waits for it: the "event handles" that ZooKeeper's recipes page names and does not give, as they are
 * known from other systems, in their two kinds.
 *
 *     /events/loaded
 *       ├─ set                                 while it is there, the event is set
 *       ├─ _c_2b7e...-waiting-0000000004       only with autoReset: waits for its turn to take `set` away
 *       └─ _c_91aa...-mark-0000000005          only with autoReset: of one who is about to set it
 *
 *     set     create set (PERSISTENT); there already: it is set
 *     set, autoReset
 *             the same beside a mark (marks/marks.ts): it may have been taken by the time that an answer turns out to be lost, and made once more it would let a second one through
 *     reset   delete set; not there: it is not set
 *     wait    exists of set, with a watch: there, or it comes: through. All who wait go on together, and may
 *     wait, autoReset
 *             1. a place in the line, until it is the first, as for a Lock
 *             2. exists of set, with a watch, until it is there
 *             3. multi: delete set, write `through` to the own znode: one goes through. Not there any more: 2. again
 *             4. no answer: what the own znode says is the answer
 *             5. delete the own znode: the next one's turn
 */
import { type Acl, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkCount, checkPlace, checkSettings } from '../given.ts';
import { deletedByOthers, Line, type LineOptions, nextAhead, type Place } from '../line/line.ts';
import { Marks } from '../marks/marks.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { eventUnless, untilTheEnd } from '../waiting/next-event.ts';
import { isUnsettled, unsettled } from '../waiting/unanswered.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** How an event is kept. All who use one have the same. */
export interface EventHandleOptions extends LineOptions {
  /** Whether each `set` lets one through, and is over by that. Default: false, it lets everyone through until `reset`. */
  readonly autoReset?: boolean | undefined;
}

const waitingKind = 'waiting-';
const through = 'through';

/** An event that is set or not, and lets through who waits for it. */
export class EventHandle {
  /** The znode of the event. */
  readonly path: string;
  /** As given. */
  readonly autoReset: boolean;
  readonly #source: SessionSource;
  readonly #set: string;
  readonly #line: Line;
  readonly #acl: readonly Acl[] | undefined;

  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: EventHandleOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'EventHandle', arguments.length);
    this.path = path;
    this.autoReset = options.autoReset ?? false;
    this.#source = source;
    this.#set = childPath(path, 'set');
    this.#line = new Line(path, [waitingKind], options);
    this.#acl = options.acl;
  }

  /**
   * Sets it: whoever waits goes on, or one of them with `autoReset`, whatever answers are lost. Nothing changes when it is set. Rejects with a RecipeError, TimedOut, with the
   * signal's reason, and as `Client.create` does. With `autoReset` neither `signal` nor `timeoutMs` ends it once it has been asked for.
   */
  async set(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'set(options)');
    using limit = this.#limit(options, 'an answer about');
    const { signal } = limit;
    try {
      await inSessions(this.#source, signal, (zk) => (this.autoReset ? this.#setOnce(zk, signal) : this.#setIn(zk, signal)), isUnsettled);
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) throw error;
    }
  }

  async #setIn(zk: ClientView, signal: AbortSignal): Promise<void> {
    await zk.create(this.#set, null, { parents: 'container', acl: this.#acl, idempotent: true, ...untilTheEnd, signal });
  }

  async #setOnce(zk: ClientView, signal: AbortSignal): Promise<void> {
    const acl = this.#acl;
    for (;;) {
      const marks = new Marks(zk, this.path, acl);
      try {
        await marks.write([op.create(this.#set, null, { acl })], signal);
        return;
      } catch (error) {
        // Somebody has deleted the event, and the mark with it.
        if (!KeeperError.is(error, 'NoNode') || error.failedIndex !== 0) throw error;
      } finally {
        await marks.close();
      }
    }
  }

  /** Makes it one that is not set, and those who come from now on wait. Rejects as `set` does. */
  async reset(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'reset(options)');
    using limit = this.#limit(options, 'an answer about');
    const { signal } = limit;
    try {
      await inSessions(this.#source, signal, (zk) => zk.delete(this.#set, { idempotent: true, ...untilTheEnd, signal }));
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  }

  /** Whether it is set. Rejects as `set` does. */
  async isSet(options: WaitOptions = {}): Promise<boolean> {
    checkCount(arguments.length, 1, 'isSet(options)');
    using limit = this.#limit(options, 'an answer about');
    const { signal } = limit;
    return (await inSessions(this.#source, signal, (zk) => this.#exists(zk, signal))) !== null;
  }

  /**
   * Resolves when it is set, at once if it is; with `autoReset` in the order of coming, and it is not set any more then. Without, one that is set and reset again
   * lets through who waited meanwhile with a connection. Rejects with a RecipeError, TimedOut, and, with `autoReset`, Lost, when somebody deletes the znode that stands
   * for the wait; with the signal's reason; with SessionExpired and the like. With `autoReset` neither `signal` nor `timeoutMs` ends it while the answer is awaited by which
   * it goes through, so that an event that was taken has let somebody through; when the session ends, or the znode is deleted, it may have been taken all the same.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'wait(options)');
    using limit = this.#limit(options, 'the setting of');
    const { signal } = limit;
    const pass = (zk: ClientView) => (this.autoReset ? this.#take(zk, signal) : this.#whenSet(zk, signal));
    await inSessions(this.#source, signal, pass, isUnsettled);
  }

  async #whenSet(zk: ClientView, signal: AbortSignal): Promise<void> {
    // What happened is that it was set, or the end of the session, which the next request tells.
    if (await this.#setOrEvent(zk, signal)) await this.#exists(zk, signal);
  }

  async #take(zk: ClientView, within: AbortSignal): Promise<void> {
    using limit = new Limit(zk, { signal: within }, `the setting of the event ${this.path}`);
    const { signal } = limit;
    const place = await this.#line.join(zk, waitingKind, null, signal);
    try {
      await place.turn(nextAhead, limit);
      do await this.#setOrEvent(zk, signal);
      while (!(await this.#goThrough(place)));
    } catch (error) {
      await place.leave();
      throw error;
    }
    // The event is taken, and lets nobody else through: what goes wrong with the place is not worth that. It goes with the session at the latest.
    await place.leave().catch(() => undefined);
  }

  /** False if it is set; true when it has been, since it was not. */
  #setOrEvent(zk: ClientView, signal: AbortSignal): Promise<boolean> {
    return eventUnless(
      zk,
      this.#set,
      (options) => zk.exists(this.#set, options),
      (stat) => stat !== null,
      signal,
    );
  }

  /** Whether it was we who took it. Once it is asked nothing but the end of the session ends that: what was taken must not be lost. */
  async #goThrough({ zk, path }: Place): Promise<boolean> {
    try {
      await zk.multi([op.delete(this.#set), op.setData(path, through)]);
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) {
        if (error.failedIndex === 1) throw deletedByOthers(path);
        return false;
      }
      if (!KeeperError.is(error)) throw error;
      if (!error.retryable) throw error.outcome === 'unknown' ? unsettled(error) : error;
    }
    try {
      const { data } = await zk.getData(path, { ...untilTheEnd, linearizable: true });
      return data !== null && new TextDecoder().decode(data) === through;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) throw unsettled(deletedByOthers(path));
      throw unsettled(error);
    }
  }

  #exists(zk: ClientView, signal: AbortSignal): ReturnType<ClientView['exists']> {
    return zk.exists(this.#set, { ...untilTheEnd, signal });
  }

  #limit(options: WaitOptions, what: string): Limit {
    return new Limit(this.#source, options, `${what} the event ${this.path}`);
  }
}
