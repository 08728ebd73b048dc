/**
 * Is in an election as long as it is open, and enters it again after each loss: Curator's
 * LeaderLatch, and with `run` its LeaderSelector.
 *
 *     queues ──its turn──> leads ──close──> over
 *       ^────resigned, znode deleted, session over: queues again, at the end────┘
 *
 * With Sessions it continues in the next session; with one client it ends with that. A leadership
 * belongs to the session in which it was won: a znode left by an earlier session makes no process
 * the leader (see line/own-watch.ts).
 */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions, checkCount, checkFunction, checkPlace, checkSettings } from '../given.ts';
import { Listeners } from '../listeners.ts';
import { RecipeError } from '../recipe-error.ts';
import { clientOf, isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { WaitingRoom } from '../waiting/waiting-room.ts';
import { Election, type ElectionOptions } from './election.ts';
import type { Leadership } from './leadership.ts';
import { lossCodes } from '../waiting/unanswered.ts';

/** Is in an election until it is closed: leads whenever it is its turn. */
export class Candidate implements AsyncDisposable {
  /** As `Election.path`. */
  readonly path: string;
  readonly #zk: ClientView;
  /** What it waits for: `the leadership of /a`. */
  readonly #what: string;
  readonly #options: ElectionOptions;
  readonly #over = new AbortController();
  readonly #listeners = new Listeners<Leadership | undefined>();
  readonly #room: WaitingRoom;
  readonly #standing: Promise<void>;
  #leadership: Leadership | undefined;
  #isClosed = false;
  #isRunning = false;
  /** The current call of `run`'s function. */
  #working: Promise<void> | undefined;

  /**
   * Enters the election at once. With Sessions it outlives the session of a client; with a client
   * it ends with that. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ElectionOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Candidate', arguments.length);
    this.path = path;
    this.#options = options;
    this.#zk = clientOf(source);
    this.#what = `the leadership of ${path}`;
    this.#room = new WaitingRoom(this.#zk, this.#what);
    this.#standing = this.#stand(source);
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
    return this.#over.signal;
  }

  /**
   * Calls the listener with the leadership when it leads, and with undefined when it no longer
   * does; returns a function that removes the listener.
   */
  onChange(listener: (leadership: Leadership | undefined) => void): () => void {
    checkCount(arguments.length, 1, 'onChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves when it leads, at once if it does. Rejects with the reason of `signal` when it has
   * left the election; with a RecipeError, TimedOut; and with the reason of the given signal.
   */
  async leading(options: WaitOptions = {}): Promise<Leadership> {
    checkCount(arguments.length, 1, 'leading(options)');
    using limit = new Limit(this.#zk, options, this.#what);
    const { signal } = limit;
    this.#over.signal.throwIfAborted();
    // After each turn the leadership may be over again, or a new one.
    while (this.#leadership === undefined) await this.#room.wait({ signal });
    return this.#leadership;
  }

  /**
   * Calls `work` each time that it leads, and resigns after it, so that the other candidates have
   * their turn; resolves when it is closed. The signal that `work` receives is aborted when it has
   * to stop: the leadership is lost, or has been resigned, the candidate is being closed, or the
   * given signal is aborted. Rejects with what `work` throws, after resigning, and as `leading`
   * does.
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
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    checkCallOptions(options, callOptions.loop, 'run');
    const { signal } = options;
    if (this.#isRunning)
      throw new TypeError(`the candidate for ${this.path} already runs a function, and resigns after it; do all work in that one`);
    this.#isRunning = true;
    try {
      for (;;) await this.#term(work, await this.leading({ signal }), signal);
    } catch (error) {
      if (!(this.#isClosed && error === this.signal.reason)) throw error;
    } finally {
      this.#isRunning = false;
    }
  }

  async #term(
    work: (leadership: Leadership, signal: AbortSignal) => Promise<void> | void,
    leadership: Leadership,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const stop = new AbortController();
    const signals = [leadership.signal, this.signal, signal].filter((each) => each !== undefined);
    const endings = signals.map((each) => onAbort(each, () => stop.abort(each.reason)));
    for (const each of signals) if (each.aborted) stop.abort(each.reason);
    let wasCut = leadership.state === 'suspended';
    endings.push(leadership.onStateChange((state) => (wasCut ||= state === 'suspended')));
    const resigned = new RecipeError('Lost', 'the leadership was resigned while its work was running');
    endings.push(leadership.onStateChange((state) => state === 'released' && stop.abort(resigned)));
    if (leadership.state === 'released') stop.abort(resigned);
    await using mine = leadership;
    try {
      // It ended in the same turn of the event loop in which it began.
      if (stop.signal.aborted) return;
      const working = Promise.resolve(work(mine, stop.signal));
      this.#working = working.catch(() => undefined);
      await working;
    } catch (error) {
      const isOfTerm = isOver(leadership) && (error === stop.signal.reason || isLoss(error));
      if (!isOfTerm && !(wasCut && KeeperError.is(error, ...lossCodes))) throw error;
    } finally {
      for (const end of endings) end();
    }
  }

  /**
   * Resigns when the work of `run` has stopped, and leaves the election. Never rejects. That work
   * must not wait for `close`, as it would wait for its own end: it calls this without `await`, and
   * returns. (A caller that waits relies on the work having stopped, and the origin of a call
   * cannot be seen.)
   */
  async close(): Promise<void> {
    checkCount(arguments.length, 0, 'close()');
    this.#isClosed ||= !this.signal.aborted;
    this.#end(new RecipeError('Closed', `the candidate for ${this.path} was closed`));
    await this.#standing;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #stand(source: SessionSource): Promise<void> {
    try {
      for await (const zk of sessionsOf(source, this.signal)) await this.#standIn(zk);
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
  async #standIn(zk: ClientView): Promise<void> {
    const election = new Election(zk, this.path, this.#options);
    while (zk.closedBecause === undefined) {
      try {
        await this.#lead(await election.lead({ signal: this.signal }));
      } catch (error) {
        if (this.signal.aborted) throw error;
        if (isEndOfSession(error)) return;
        // Another client has deleted its znode: it queues again.
        if (!isLoss(error)) throw error;
      }
    }
  }

  /** Until the leadership is lost or resigned, or the candidate is closed. */
  async #lead(leadership: Leadership): Promise<void> {
    const hasEnded = () => this.signal.aborted || isOver(leadership);
    const endings: (() => void)[] = [];
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!hasEnded()) return;
        // At once: a later caller must not receive a leadership that is over.
        this.#become(undefined);
        resolve();
      };
      endings.push(leadership.onStateChange(look), onAbort(this.signal, look));
      if (!hasEnded()) this.#become(leadership);
      look();
    });
    for (const end of endings) end();
    // No other candidate may lead while the work continues.
    await this.#working;
    await leadership.resign();
  }

  #become(leadership: Leadership | undefined): void {
    if (this.#leadership === leadership) return;
    this.#leadership = leadership;
    if (leadership !== undefined) this.#room.admit();
    this.#listeners.tell(leadership);
  }

  #end(reason: unknown): void {
    if (this.signal.aborted) return;
    this.#over.abort(reason);
    this.#room.dismiss(reason);
  }
}

function isOver(leadership: Leadership): boolean {
  return leadership.state === 'lost' || leadership.state === 'released';
}

/** The errors of a call that finds the leadership lost. */
function isLoss(error: unknown): boolean {
  return isEndOfSession(error) || (error instanceof RecipeError && error.code === 'Lost');
}
