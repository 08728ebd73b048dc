/**
 * An event that is set or not, for clients that wait for it: the "event handles" that ZooKeeper's
 * recipes page mentions without giving them, in the two kinds known from other systems.
 *
 *     /events/loaded
 *       ├─ set                                 while it exists, the event is set
 *       ├─ _c_2b7e...-waiting-0000000004       with autoReset: waits for its turn to delete `set`
 *       └─ _c_91aa...-mark-0000000005          with autoReset: of a client that is about to set it
 *
 *     set     create set (PERSISTENT); it exists already: it is set
 *     set, autoReset
 *             the same, with a mark (marks/marks.ts): when a reply turns out to be lost, a waiter
 *             may have taken the event, and a second create would let a second waiter proceed
 *     reset   delete set; it does not exist: it is not set
 *     wait    exists of set, with a watch: it exists, or is created: proceed. All waiters proceed
 *             together, as they may
 *     wait, autoReset
 *             1. a place in the queue, until it is the first, as for a Lock
 *             2. exists of set, with a watch, until it exists
 *             3. multi: delete set, write `through` to the own znode: one waiter proceeds.
 *                set does not exist any more: 2. again
 *             4. no reply: the data of the own znode show the outcome
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

/** How an event is kept. All clients of an event use the same options. */
export interface EventHandleOptions extends LineOptions {
  /**
   * Whether each `set` lets one waiter proceed, and is then over. Default: false, all waiters
   * proceed until `reset`.
   */
  readonly autoReset?: boolean | undefined;
}

const waitingKind = 'waiting-';
const through = 'through';

/** An event that is set or not, for clients that wait for it. */
export class EventHandle {
  /** The znode of the event. */
  readonly path: string;
  /** As given. */
  readonly autoReset: boolean;
  readonly #source: SessionSource;
  readonly #set: string;
  readonly #line: Line;
  readonly #acl: readonly Acl[] | undefined;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
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
   * Sets it: all waiters proceed, or with `autoReset` one of them, whatever replies are lost.
   * Changes nothing if it is set. Rejects with a RecipeError, TimedOut, with the signal's reason,
   * and as `Client.create` does. With `autoReset` neither `signal` nor `timeoutMs` ends it after
   * its request was sent.
   */
  async set(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'set(options)');
    using limit = this.#limit(options, 'a reply about');
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
        // Another client has deleted the event, and the mark with it.
        if (!KeeperError.is(error, 'NoNode') || error.failedIndex !== 0) throw error;
      } finally {
        await marks.close();
      }
    }
  }

  /** Resets it: later waiters wait. Rejects as `set` does. */
  async reset(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'reset(options)');
    using limit = this.#limit(options, 'a reply about');
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
    using limit = this.#limit(options, 'a reply about');
    const { signal } = limit;
    return (await inSessions(this.#source, signal, (zk) => this.#exists(zk, signal))) !== null;
  }

  /**
   * Resolves when it is set, at once if it is. With `autoReset` in the order of arrival, and then
   * it is no longer set. Without `autoReset`, an event that is set and reset again lets all proceed
   * that waited meanwhile with a connection. Rejects with a RecipeError, TimedOut, and, with
   * `autoReset`, Lost, when another client deletes the znode of the wait; with the signal's reason;
   * with SessionExpired and the like.
   *
   * With `autoReset` neither `signal` nor `timeoutMs` ends it while it waits for the reply that
   * lets it proceed, so that an event that was taken has let a waiter proceed. When the session
   * ends, or the znode is deleted, the event may have been taken all the same.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'wait(options)');
    using limit = this.#limit(options, 'the setting of');
    const { signal } = limit;
    const pass = (zk: ClientView) => (this.autoReset ? this.#take(zk, signal) : this.#whenSet(zk, signal));
    await inSessions(this.#source, signal, pass, isUnsettled);
  }

  async #whenSet(zk: ClientView, signal: AbortSignal): Promise<void> {
    // It was set, or the session has ended, which the next request reports.
    if (await this.#setOrEvent(zk, signal)) await this.#exists(zk, signal);
  }

  async #take(zk: ClientView, within: AbortSignal): Promise<void> {
    using limit = new Limit(zk, { signal: within }, `the setting of event ${this.path}`);
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
    // The event is taken, and lets no other waiter proceed, so an error here must not reject. The
    // place ends with the session at the latest.
    await place.leave().catch(() => undefined);
  }

  /** False if it is set; true if it was set since, or after another event. */
  #setOrEvent(zk: ClientView, signal: AbortSignal): Promise<boolean> {
    return eventUnless(
      zk,
      this.#set,
      (options) => zk.exists(this.#set, options),
      (stat) => stat !== null,
      signal,
    );
  }

  /**
   * Whether this client has taken the event. After the request only the end of the session ends
   * this: an event that was taken must not be lost.
   */
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
    return new Limit(this.#source, options, `${what} event ${this.path}`);
  }
}
