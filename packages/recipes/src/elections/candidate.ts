/**
 * Stands in an election for as long as it is open, and again whenever it has lost: Curator's LeaderLatch, and with `run` its LeaderSelector.
 *
 *     stands ──its turn──> leads ──close──> over
 *       ^────resigned, znode deleted, session over: stands anew, behind the others────┘
 *
 * With Sessions it goes on with the next session; with one client it is over with that. A leadership is always of the session in which it was won: what is left of a
 * session of the past leads nobody (see line/own-watch.ts).
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

/** Stands in an election until it is closed: leads whenever it is its turn. */
export class Candidate implements AsyncDisposable {
  /** As `Election.path`. */
  readonly path: string;
  readonly #zk: ClientView;
  /** What is stood for: `the leadership of /a`. */
  readonly #what: string;
  readonly #options: ElectionOptions;
  readonly #over = new AbortController();
  readonly #listeners = new Listeners<Leadership | undefined>();
  readonly #room: WaitingRoom;
  readonly #standing: Promise<void>;
  #leadership: Leadership | undefined;
  #isClosed = false;
  #isRunning = false;
  /** What `run` has under way. */
  #working: Promise<void> | undefined;

  /**
   * Stands at once. With Sessions it outlives the session of a client; with a client it is over when that is. Throws a TypeError for what is no client or no
   * path.
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

  /** While it leads: until it resigns that, loses it, or is closed. */
  get leadership(): Leadership | undefined {
    return this.#leadership;
  }

  /**
   * Aborted when it does not stand any more, with what has ended it as its reason: a RecipeError, Closed, when it was closed or there is no other session; or what a
   * server refused, such as NoAuth.
   */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Listens to when it leads, with the leadership, and when it does not any more, with undefined; returns a function that ends it. */
  onChange(listener: (leadership: Leadership | undefined) => void): () => void {
    checkCount(arguments.length, 1, 'onChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves when it leads, at once if it does. Rejects with the reason of `signal` when it stands no more; with a RecipeError, TimedOut; and with the reason
   * of the signal given.
   */
  async leading(options: WaitOptions = {}): Promise<Leadership> {
    checkCount(arguments.length, 1, 'leading(options)');
    using limit = new Limit(this.#zk, options, this.#what);
    const { signal } = limit;
    this.#over.signal.throwIfAborted();
    // Behind each turn it may be over again, or another one.
    while (this.#leadership === undefined) await this.#room.wait({ signal });
    return this.#leadership;
  }

  /**
   * Calls `work` whenever it leads, and resigns after it, so that the others have their turn; and again, until it is closed, when this resolves. The signal that
   * `work` is given says that it is to stop: the leadership is lost, or somebody else has resigned it, the candidate is being closed, or the signal given has come.
   * Rejects with what `work` throws, having resigned, and as `leading` does. That work has stopped because the leadership is over, and throws the reason of its signal, or that a write
   * was Lost, is not a failure: it is called again. Nor is a ConnectionLoss, when the connection was lost during this term: the candidate resigns, stands anew, and calls it again, so what
   * it writes first may be written twice. Rejects with a TypeError when it runs something already.
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
      throw new TypeError(`the candidate for ${this.path} runs something already, and resigns after it; give what else there is to that`);
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
    const resigned = new RecipeError('Lost', 'the leadership was resigned while its work was under way');
    endings.push(leadership.onStateChange((state) => state === 'released' && stop.abort(resigned)));
    if (leadership.state === 'released') stop.abort(resigned);
    await using mine = leadership;
    try {
      // It is over in the very turn in which it came.
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
   * Resigns, when the work of `run` has stopped, and stands no more. Never rejects. That work itself must not wait for it, as it would wait for its own end: let it call
   * this without `await`, and return. (Who waits relies on it that nothing is at work any more, and whose call it is cannot be seen.)
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
          `the session of the candidate for ${this.path} is over; give it Sessions instead of a client, and it stands again in the next session`,
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
        // Somebody has deleted its znode: it stands anew.
        if (!isLoss(error)) throw error;
      }
    }
  }

  /** Until it is lost, or resigned by whoever it was given to, or the candidate is closed. */
  async #lead(leadership: Leadership): Promise<void> {
    const hasEnded = () => this.signal.aborted || isOver(leadership);
    const endings: (() => void)[] = [];
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!hasEnded()) return;
        // At once: whoever asks next must not be given one that is over.
        this.#become(undefined);
        resolve();
      };
      endings.push(leadership.onStateChange(look), onAbort(this.signal, look));
      if (!hasEnded()) this.#become(leadership);
      look();
    });
    for (const end of endings) end();
    // Nobody else is to lead while it is still at work.
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

/** What a call fails with by which one finds out that the leadership is lost. */
function isLoss(error: unknown): boolean {
  return isEndOfSession(error) || (error instanceof RecipeError && error.code === 'Lost');
}
