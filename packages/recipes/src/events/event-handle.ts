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
 *             the same, with a mark (markers/idempotency-markers.ts): when a reply turns out to be lost, a waiter
 *             may have taken the event, and a second create would let a second waiter proceed
 *     reset   delete set; it does not exist: it is not set
 *     wait    exists of set, with a watch: it exists, or is created: proceed. All waiters proceed
 *             together, as they may
 *     wait, autoReset
 *             1. a place in the queue, until it is the first, as for a Lock
 *             2. exists of set, with a watch, until it exists
 *             3. multi: delete set, write `through` to the own znode: one waiter proceeds.
 *                set no longer exists: 2. again
 *             4. no reply: the data of the own znode show the outcome
 *             5. delete the own znode: the next one's turn
 */
import { type Acl, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkArgumentCount, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { nodeDeletedError, WaitQueue, type ContenderOptions, previousContender, type QueueNode } from '../wait-queue/wait-queue.ts';
import { IdempotencyMarkers } from '../markers/idempotency-markers.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { isUnsettled, markUnsettled, retryForever } from '../waiting/own-znode.ts';
import { waitForEventUnless } from '../waiting/watch-once.ts';
import type { WaitOptions } from '../wait-options.ts';

/** How an event is kept. All clients of an event use the same options. */
export interface EventHandleOptions extends ContenderOptions {
  /**
   * Whether each `set` lets one waiter proceed, and is then over. Default: false, all waiters
   * proceed until `reset`.
   */
  readonly autoReset?: boolean | undefined;
}

const waitPrefix = 'waiting-';
const consumedMark = 'through';

/** An event that is set or not, for clients that wait for it. */
export class EventHandle {
  /** The znode of the event. */
  readonly path: string;
  /** As given. */
  readonly autoReset: boolean;
  readonly #source: SessionSource;
  readonly #setPath: string;
  readonly #queue: WaitQueue;
  readonly #acl: readonly Acl[] | undefined;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: EventHandleOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'EventHandle', arguments.length);
    this.path = path;
    this.autoReset = options.autoReset ?? false;
    this.#source = source;
    this.#setPath = childPath(path, 'set');
    this.#queue = new WaitQueue(path, [waitPrefix], options);
    this.#acl = options.acl;
  }

  /**
   * Sets it: all waiters proceed, or with `autoReset` one of them, whatever replies are lost.
   * Changes nothing if it is set. Rejects with a RecipeError, TimedOut, with the signal's reason,
   * and as `Client.create` does. With `autoReset` neither `signal` nor `timeoutMs` ends it after
   * its request was sent.
   */
  async set(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'set(options)');
    using deadline = this.#deadline(options, 'a reply about');
    const { signal } = deadline;
    try {
      await runAcrossSessions(
        this.#source,
        signal,
        (zk) => (this.autoReset ? this.#setAutoReset(zk, signal) : this.#setInSession(zk, signal)),
        isUnsettled,
      );
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) throw error;
    }
  }

  async #setInSession(zk: ClientView, signal: AbortSignal): Promise<void> {
    await zk.create(this.#setPath, null, { parents: 'container', acl: this.#acl, idempotent: true, ...retryForever, signal });
  }

  async #setAutoReset(zk: ClientView, signal: AbortSignal): Promise<void> {
    const acl = this.#acl;
    for (;;) {
      const marks = new IdempotencyMarkers(zk, this.path, acl);
      try {
        await marks.write([op.create(this.#setPath, null, { acl })], signal);
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
    checkArgumentCount(arguments.length, 1, 'reset(options)');
    using deadline = this.#deadline(options, 'a reply about');
    const { signal } = deadline;
    try {
      await runAcrossSessions(this.#source, signal, (zk) => zk.delete(this.#setPath, { idempotent: true, ...retryForever, signal }));
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  }

  /** Whether it is set. Rejects as `set` does. */
  async isSet(options: WaitOptions = {}): Promise<boolean> {
    checkArgumentCount(arguments.length, 1, 'isSet(options)');
    using deadline = this.#deadline(options, 'a reply about');
    const { signal } = deadline;
    return (await runAcrossSessions(this.#source, signal, (zk) => this.#exists(zk, signal))) !== null;
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
   * ends, or the znode is deleted, the event may still have been taken.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'wait(options)');
    using deadline = this.#deadline(options, 'the setting of');
    const { signal } = deadline;
    const pass = (zk: ClientView) => (this.autoReset ? this.#waitAndConsume(zk, signal) : this.#waitUntilSet(zk, signal));
    await runAcrossSessions(this.#source, signal, pass, isUnsettled);
  }

  async #waitUntilSet(zk: ClientView, signal: AbortSignal): Promise<void> {
    // It was set, or the session has ended, which the next request reports.
    if (await this.#waitForSet(zk, signal)) await this.#exists(zk, signal);
  }

  async #waitAndConsume(zk: ClientView, outerSignal: AbortSignal): Promise<void> {
    using deadline = new Deadline(zk, { signal: outerSignal }, `the setting of event ${this.path}`);
    const { signal } = deadline;
    const node = await this.#queue.join(zk, waitPrefix, null, signal);
    try {
      await node.waitForTurn(previousContender, deadline);
      do await this.#waitForSet(zk, signal);
      while (!(await this.#tryConsume(node)));
    } catch (error) {
      await node.leave();
      throw error;
    }
    // The event is taken, and lets no other waiter proceed, so an error here must not reject. The
    // place ends with the session at the latest.
    await node.leave().catch(() => undefined);
  }

  /** False if it is set; true if it was set since, or after another event. */
  #waitForSet(zk: ClientView, signal: AbortSignal): Promise<boolean> {
    return waitForEventUnless(
      zk,
      this.#setPath,
      (options) => zk.exists(this.#setPath, options),
      (stat) => stat !== null,
      signal,
    );
  }

  /**
   * Whether this client has taken the event. After the request only the end of the session ends
   * this: an event that was taken must not be lost.
   */
  async #tryConsume({ zk, path }: QueueNode): Promise<boolean> {
    try {
      await zk.multi([op.delete(this.#setPath), op.setData(path, consumedMark)]);
      return true;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) {
        if (error.failedIndex === 1) throw nodeDeletedError(path);
        return false;
      }
      if (!KeeperError.is(error)) throw error;
      if (!error.retryable) throw error.outcome === 'unknown' ? markUnsettled(error) : error;
    }
    try {
      const { data } = await zk.getData(path, { ...retryForever, linearizable: true });
      return data !== null && new TextDecoder().decode(data) === consumedMark;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) throw markUnsettled(nodeDeletedError(path));
      throw markUnsettled(error);
    }
  }

  #exists(zk: ClientView, signal: AbortSignal): ReturnType<ClientView['exists']> {
    return zk.exists(this.#setPath, { ...retryForever, signal });
  }

  #deadline(options: WaitOptions, what: string): Deadline {
    return new Deadline(this.#source, options, `${what} event ${this.path}`);
  }
}
