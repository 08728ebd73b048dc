/**
 * One of the sites that have to agree, from when it learns of the transaction until it has done
 * what was decided.
 */
import { checkArgumentCount } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { currentClient, runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import type { WaitOptions } from '../wait-options.ts';
import { decide, type Transaction } from './decision.ts';
import { deleteIfAcknowledged, acknowledgeSite } from './ending.ts';
import { deleteOwnPresence } from './own-ephemeral.ts';
import { type Ballot, castVote, presencePath, type Vote } from './votes.ts';

/** A site of a transaction, from `TwoPhaseCommit.join`. */
export class Site implements AsyncDisposable {
  /** Its znode, which contains its vote. */
  readonly path: string;
  /** What the transaction is about, as the client that began it has written it. */
  readonly data: Uint8Array | null;
  readonly #source: SessionSource;
  readonly #settings: Omit<Transaction, 'zk'>;
  readonly #ballot: Ballot;
  readonly #endController = new AbortController();
  readonly #decision: Promise<Vote>;
  #outcome: Vote | undefined;

  /** Made by `TwoPhaseCommit.join`. `data`: that of its znode as read. */
  constructor(source: SessionSource, settings: Omit<Transaction, 'zk'>, path: string, data: Uint8Array | null, ballot: Ballot) {
    this.path = path;
    this.data = data;
    this.#source = source;
    this.#settings = settings;
    this.#ballot = ballot;
    // Watches the votes from now on, as on the page, even before `outcome` is called.
    const { signal } = this.#endController;
    this.#decision = runAcrossSessions(source, signal, (zk) => decide({ zk, ...settings }, signal));
    this.#decision.catch(() => undefined);
  }

  /**
   * Votes, and resolves with the vote that counts: an earlier one of this site, or `abort` if
   * another client has voted in its place, because it took the site for dead or stopped waiting. A
   * vote of `commit` is binding, also after a crash, so store durably what it promises before.
   * Rejects with a RecipeError, TimedOut; with the signal's reason; with NoNode, when the site has
   * already acknowledged the outcome; with SessionExpired and the like. When it rejects, it may
   * have voted.
   */
  async vote(vote: Vote, options: WaitOptions = {}): Promise<Vote> {
    checkArgumentCount(arguments.length, 2, 'vote(vote, options)');
    if (vote !== 'commit' && vote !== 'abort') throw new TypeError(`a vote must be "commit" or "abort", not "${String(vote)}"`);
    using deadline = new Deadline(this.#source, options, `the vote of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => castVote(zk, this.path, vote, this.#ballot, signal));
  }

  /**
   * Resolves with the decision: `commit` when every site has voted so, `abort` as soon as one has
   * voted otherwise. Rejects with a RecipeError: TimedOut; Closed, after `close`; with the signal's
   * reason; with NoNode, when the transaction is over, or was deleted by hand; with SessionExpired
   * and the like. None of these shows the outcome: a site that has voted `commit` joins again and
   * calls this again.
   */
  async outcome(options: WaitOptions = {}): Promise<Vote> {
    checkArgumentCount(arguments.length, 1, 'outcome(options)');
    using deadline = new Deadline(this.#source, options, `the outcome of ${this.#settings.path}`);
    this.#outcome = await unlessAborted(this.#decision, deadline.signal);
    return this.#outcome;
  }

  /**
   * States that this site has done what was decided, and will not ask for it again: the last
   * acknowledgement deletes the transaction. Resolves also if the site has acknowledged before.
   * Rejects with a TypeError before `outcome` has resolved; with a RecipeError, TimedOut; with the
   * signal's reason; with SessionExpired and the like; then it may be acknowledged, and a second
   * call does no harm.
   */
  async acknowledge(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'acknowledge(options)');
    if (this.#outcome === undefined)
      throw new TypeError('the outcome is not known yet; await outcome(), do what it says, and then acknowledge it');
    const outcome = this.#outcome;
    using deadline = new Deadline(this.#source, options, `the acknowledgement of ${this.path}`);
    const { signal } = deadline;
    await runAcrossSessions(this.#source, signal, async (zk) => {
      const transaction = { zk, ...this.#settings };
      await acknowledgeSite(transaction, this.path, outcome, signal);
      await deleteIfAcknowledged(transaction, signal);
    });
  }

  /**
   * Stops watching. A vote still counts; with `presence`, a site that closes before its vote is
   * taken for dead, so the others abort. Never rejects: an ephemeral that cannot be deleted now is
   * deleted in the background, or ends with the session.
   */
  async close(): Promise<void> {
    checkArgumentCount(arguments.length, 0, 'close()');
    const isFirst = !this.#endController.signal.aborted;
    this.#endController.abort(new RecipeError('Closed', `${this.path} was closed`));
    if (isFirst && this.#settings.presence) await deleteOwnPresence(currentClient(this.#source), presencePath(this.path));
  }

  /** As `close`, and never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
