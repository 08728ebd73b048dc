/**
 * Is in an election as long as it is open, and enters it again after each loss: Curator's
 * LeaderLatch, and with `run` its LeaderSelector.
 *
 *     queues ──its turn──> leads ──close──> over
 *       ^────resigned, znode deleted, session over: queues again, at the end────┘
 *
 * With Sessions it continues in the next session; with one client it ends with that. A leadership
 * belongs to the session in which it was won: a znode left by an earlier session makes no process
 * the leader (see wait-queue/own-znode-watch.ts).
 */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkCallOptions,
  checkArgumentCount,
  checkFunction,
  checkSourceAndPath,
  checkConstructorOptions,
} from '../validation.ts';
import { Listeners } from '../listeners.ts';
import { RecipeError } from '../recipe-error.ts';
import { currentClient, isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { connectionLossCodes } from '../waiting/own-znode.ts';
import { Waiters } from '../waiting/promises.ts';
import type { WaitOptions } from '../wait-options.ts';
import { Election, type ElectionOptions } from './election.ts';
import type { Leadership } from './leadership.ts';

/** Is in an election until it is closed: leads whenever it is its turn. */
export class LeaderLatch implements AsyncDisposable {
  /** As `Election.path`. */
  readonly path: string;
  readonly #client: ClientView;
  /** What it waits for: `the leadership of /a`. */
  readonly #what: string;
  readonly #options: ElectionOptions;
  readonly #endController = new AbortController();
  readonly #listeners = new Listeners<Leadership | undefined>();
  readonly #waiters: Waiters;
  readonly #contending: Promise<void>;
  #leadership: Leadership | undefined;
  #isClosed = false;
  #isRunning = false;
  /** The current call of `run`'s function. */
  #currentWork: Promise<void> | undefined;

  /**
   * Enters the election at once. With Sessions it outlives the session of a client; with a client
   * it ends with that. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ElectionOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'LeaderLatch', arguments.length);
    this.path = path;
    this.#options = options;
    this.#client = currentClient(source);
    this.#what = `the leadership of ${path}`;
    this.#waiters = new Waiters(this.#client, this.#what);
    this.#contending = this.#contend(source);
  }

  /** Set while it leads: until the leadership is resigned or lost, or the candidate is closed. */
  get leadership(): Leadership | undefined {
    return this.#leadership;
  }

  /**
   * Aborted when it is no longer in the election. The reason is a RecipeError, Closed, when it was
   * closed or there is no further session; or an error such as NoAuth with which a server has
   * rejected it.
   */
  get signal(): AbortSignal {
    return this.#endController.signal;
  }

  /**
   * Calls the listener with the leadership when it leads, and with undefined when it no longer
   * does; returns a function that removes the listener.
   */
  onChange(listener: (leadership: Leadership | undefined) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves when it leads, at once if it does. Rejects with the reason of `signal` when it has
   * left the election; with a RecipeError, TimedOut; and with the reason of the given signal.
   */
  async waitForLeadership(options: WaitOptions = {}): Promise<Leadership> {
    checkArgumentCount(arguments.length, 1, 'waitForLeadership(options)');
    using deadline = new Deadline(this.#client, options, this.#what);
    const { signal } = deadline;
    this.#endController.signal.throwIfAborted();
    // After each turn the leadership may be over again, or a new one.
    while (this.#leadership === undefined) await this.#waiters.wait({ signal });
    return this.#leadership;
  }

  /**
   * Calls `work` each time that it leads, and resigns after it, so that the other candidates have
   * their turn; resolves when it is closed. The signal that `work` receives is aborted when it has
   * to stop: the leadership is lost, or has been resigned, the candidate is being closed, or the
   * given signal is aborted. Rejects with what `work` throws, after resigning, and as
   * `waitForLeadership` does.
   *
   * Two errors of `work` do not end `run`; it calls `work` again in the next term. One is the
   * reason of its signal, or Lost from a write, because the leadership is over. The other is a
   * ConnectionLoss after the connection was lost during this term: the candidate resigns and queues
   * again, so the first write of `work` may be repeated. Rejects with a TypeError while an earlier
   * `run` is active.
   */
  async run(
    work: (leadership: Leadership, signal: AbortSignal) => Promise<void> | void,
    options: Pick<WaitOptions, 'signal'> = {},
  ): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    checkCallOptions(options, callOptionTypes.loop, 'run');
    const { signal } = options;
    if (this.#isRunning)
      throw new TypeError(`the candidate for ${this.path} already runs a function, and resigns after it; do all work in that one`);
    this.#isRunning = true;
    try {
      for (;;) await this.#runTerm(work, await this.waitForLeadership({ signal }), signal);
    } catch (error) {
      if (!(this.#isClosed && error === this.signal.reason)) throw error;
    } finally {
      this.#isRunning = false;
    }
  }

  async #runTerm(
    work: (leadership: Leadership, signal: AbortSignal) => Promise<void> | void,
    leadership: Leadership,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const stop = new AbortController();
    const signals = [leadership.signal, this.signal, signal].filter((each) => each !== undefined);
    const cleanups = signals.map((each) => onAbort(each, () => stop.abort(each.reason)));
    for (const each of signals) if (each.aborted) stop.abort(each.reason);
    let wasSuspended = leadership.state === 'suspended';
    cleanups.push(leadership.onStateChange((state) => (wasSuspended ||= state === 'suspended')));
    const resigned = new RecipeError('Lost', 'the leadership was resigned while its work was running');
    cleanups.push(leadership.onStateChange((state) => state === 'released' && stop.abort(resigned)));
    if (leadership.state === 'released') stop.abort(resigned);
    await using leadershipInUse = leadership;
    try {
      // It ended in the same turn of the event loop in which it began.
      if (stop.signal.aborted) return;
      const working = Promise.resolve(work(leadershipInUse, stop.signal));
      this.#currentWork = working.catch(() => undefined);
      await working;
    } catch (error) {
      const isEndOfTerm = hasLeadershipEnded(leadership) && (error === stop.signal.reason || isLeadershipLoss(error));
      if (!isEndOfTerm && !(wasSuspended && KeeperError.is(error, ...connectionLossCodes))) throw error;
    } finally {
      for (const end of cleanups) end();
    }
  }

  /**
   * Resigns when the work of `run` has stopped, and leaves the election. Never rejects. That work
   * must not wait for `close`, as it would wait for its own end: it calls this without `await`, and
   * returns. (A caller that waits relies on the work having stopped, and the origin of a call
   * cannot be seen.)
   */
  async close(): Promise<void> {
    checkArgumentCount(arguments.length, 0, 'close()');
    this.#isClosed ||= !this.signal.aborted;
    this.#end(new RecipeError('Closed', `the candidate for ${this.path} was closed`));
    await this.#contending;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #contend(source: SessionSource): Promise<void> {
    try {
      for await (const zk of sessionsOf(source, this.signal)) await this.#contendInSession(zk);
      this.#end(
        new RecipeError(
          'Closed',
          `the session of the candidate for ${this.path} is over; create it with Sessions instead of a client, and it queues again in the next session`,
        ),
      );
    } catch (error) {
      this.#end(error);
    }
  }

  /** Until the session is over. */
  async #contendInSession(zk: ClientView): Promise<void> {
    const election = new Election(zk, this.path, this.#options);
    while (zk.endReason === undefined) {
      try {
        await this.#holdLeadership(await election.lead({ signal: this.signal }));
      } catch (error) {
        if (this.signal.aborted) throw error;
        if (isEndOfSession(error)) return;
        // Another client has deleted its znode: it queues again.
        if (!isLeadershipLoss(error)) throw error;
      }
    }
  }

  /** Until the leadership is lost or resigned, or the candidate is closed. */
  async #holdLeadership(leadership: Leadership): Promise<void> {
    const hasEnded = () => this.signal.aborted || hasLeadershipEnded(leadership);
    const cleanups: (() => void)[] = [];
    await new Promise<void>((resolve) => {
      const checkEnd = () => {
        if (!hasEnded()) return;
        // At once: a later caller must not receive a leadership that is over.
        this.#setLeadership(undefined);
        resolve();
      };
      cleanups.push(leadership.onStateChange(checkEnd), onAbort(this.signal, checkEnd));
      if (!hasEnded()) this.#setLeadership(leadership);
      checkEnd();
    });
    for (const end of cleanups) end();
    // No other candidate may lead while the work continues.
    await this.#currentWork;
    await leadership.resign();
  }

  #setLeadership(leadership: Leadership | undefined): void {
    if (this.#leadership === leadership) return;
    this.#leadership = leadership;
    if (leadership !== undefined) this.#waiters.resolveAll();
    this.#listeners.notify(leadership);
  }

  #end(reason: unknown): void {
    if (this.signal.aborted) return;
    this.#endController.abort(reason);
    this.#waiters.rejectAll(reason);
  }
}

function hasLeadershipEnded(leadership: Leadership): boolean {
  return leadership.state === 'lost' || leadership.state === 'released';
}

/** The errors of a call that finds the leadership lost. */
function isLeadershipLoss(error: unknown): boolean {
  return isEndOfSession(error) || (error instanceof RecipeError && error.code === 'Lost');
}
