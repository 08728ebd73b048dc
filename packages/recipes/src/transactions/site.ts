/** One of those who have to agree, from the time it hears of the transaction until it has done what was decided. */
import { checkCount } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { clientOf, inSessions, type SessionSource } from '../sessions/session-source.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { decide, type Transaction } from './decision.ts';
import { clear, leave } from './ending.ts';
import { takeBack } from './own-ephemeral.ts';
import { type Ballot, cast, presencePath, type Vote } from './votes.ts';

/** A site of a transaction, as `TwoPhaseCommit.join` gives it. */
export class Site implements AsyncDisposable {
  /** Its znode, which holds its vote. */
  readonly path: string;
  /** What the transaction is, as whoever began it has put it. */
  readonly data: Uint8Array | null;
  readonly #source: SessionSource;
  readonly #settings: Omit<Transaction, 'zk'>;
  readonly #seen: Ballot;
  readonly #end = new AbortController();
  readonly #decision: Promise<Vote>;
  #outcome: Vote | undefined;

  /** Made by `TwoPhaseCommit.join`. `seen`: its znode as it was read. */
  constructor(source: SessionSource, settings: Omit<Transaction, 'zk'>, path: string, data: Uint8Array | null, seen: Ballot) {
    this.path = path;
    this.data = data;
    this.#source = source;
    this.#settings = settings;
    this.#seen = seen;
    // Votes are watched from now on, as on the page, though nobody may have asked for the outcome yet.
    const { signal } = this.#end;
    this.#decision = inSessions(source, signal, (zk) => decide({ zk, ...settings }, signal));
    this.#decision.catch(() => undefined);
  }

  /**
   * Votes, and resolves with the vote that stands: an earlier one of this site, or `abort` if another has voted so in its place, as it took it for gone or
   * was tired of waiting. Whoever votes `commit` is bound by it, also after a crash, so what was promised has to be kept somewhere durable before. Rejects
   * with a RecipeError, TimedOut; with the signal's reason; with NoNode, when the site has acknowledged the outcome before; with SessionExpired and the like.
   * When it rejects it may have voted.
   */
  async vote(vote: Vote, options: WaitOptions = {}): Promise<Vote> {
    checkCount(arguments.length, 2, 'vote(vote, options)');
    if (vote !== 'commit' && vote !== 'abort') throw new TypeError(`a vote is "commit" or "abort", not "${String(vote)}"`);
    using limit = new Limit(this.#source, options, `the vote ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => cast(zk, this.path, vote, this.#seen, signal));
  }

  /**
   * Resolves with what was decided: `commit` when every site has voted so, `abort` as soon as one has not. Rejects with a RecipeError: TimedOut; Closed,
   * after `close`; with the signal's reason; with NoNode, when the transaction is over, or was deleted by hand; with SessionExpired and the like. None of
   * these says anything of the outcome: a site that has voted `commit` joins again and asks.
   */
  async outcome(options: WaitOptions = {}): Promise<Vote> {
    checkCount(arguments.length, 1, 'outcome(options)');
    using limit = new Limit(this.#source, options, `the outcome of ${this.#settings.path}`);
    this.#outcome = await unlessAborted(this.#decision, limit.signal);
    return this.#outcome;
  }

  /**
   * Says that this site has done what was decided, and will not ask for it again: the last one that does deletes the transaction. Resolves also if it was
   * said before. Rejects with a TypeError when nobody has asked for the `outcome` yet; with a RecipeError, TimedOut; with the signal's reason; with
   * SessionExpired and the like; then it may have been said, and saying it again does no harm.
   */
  async acknowledge(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'acknowledge(options)');
    if (this.#outcome === undefined)
      throw new TypeError('what was decided is not known here yet; await outcome(), do what it says, and acknowledge it then');
    const outcome = this.#outcome;
    using limit = new Limit(this.#source, options, `the acknowledgement of ${this.path}`);
    const { signal } = limit;
    await inSessions(this.#source, signal, async (zk) => {
      const transaction = { zk, ...this.#settings };
      await leave(transaction, this.path, outcome, signal);
      await clear(transaction, signal);
    });
  }

  /**
   * Ends the watching. The vote, if there is one, stands; with `presence`, a site that leaves without one is taken for gone, so the others abort. Never
   * rejects: an ephemeral that cannot be deleted now is deleted in the background, or goes with the session.
   */
  async close(): Promise<void> {
    checkCount(arguments.length, 0, 'close()');
    const isFirst = !this.#end.signal.aborted;
    this.#end.abort(new RecipeError('Closed', `${this.path} was closed`));
    if (isFirst && this.#settings.presence) await takeBack(clientOf(this.#source), presencePath(this.path));
  }

  /** As `close`, and never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
