/** A participation in a barrier: a hold that ends together with the others'. */
import { type CallOptions, type ClientView, formatSessionId, type WriteOp, type WriteResults } from '@tskeeper/client';
import { checkArgumentCount, argumentCountError } from '../validation.ts';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import type { Hold, HoldState } from '../wait-queue/hold.ts';
import { Deadline } from '../waiting/deadline.ts';
import type { WaitOptions } from '../wait-options.ts';

/** A participation, between entering the barrier and `leave` or the loss. */
export class Participation implements AsyncDisposable {
  readonly #zk: ClientView;
  readonly #held: Hold;
  readonly #leaveBarrier: (release: () => Promise<void>, signal: AbortSignal) => Promise<void>;
  #leaving: Promise<void> | undefined;

  /**
   * Made by the barrier. `leaveBarrier` deletes the znode by `release` when it is time to, and
   * resolves when the others have left as well.
   */
  constructor(zk: ClientView, hold: Hold, leaveBarrier: (release: () => Promise<void>, signal: AbortSignal) => Promise<void>) {
    this.#zk = zk;
    this.#held = hold;
    this.#leaveBarrier = leaveBarrier;
  }

  /** The znode of this participant. */
  get path(): string {
    return this.#held.path;
  }

  /**
   * As `Hold.fencingToken`: no two participants have the same, and a later one has a greater one.
   */
  get fencingToken(): bigint {
    return this.#held.fencingToken;
  }

  /**
   * As `Hold.state`. While it is `suspended` the session may end at any moment, and the others
   * leave without this participant.
   */
  get state(): HoldState {
    return this.#held.state;
  }

  /**
   * Aborted when the others leave without this participant, as its znode is gone; not by `leave`.
   */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Hold.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#held.onStateChange(listener);
  }

  /**
   * As `Hold.multi`: writes only while the others wait for this participant, and rejects as that
   * does.
   */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    return await this.#held.multi(ops, options);
  }

  /**
   * Ends the work of this participant, and resolves when the others have ended theirs: all that
   * were inside at the call have left or died. Survives lost connections. Rejects with a
   * RecipeError: TimedOut; Lost, when the participation is lost already; with the signal's reason;
   * and with SessionExpired and the like. In each case its znode is deleted, and the others do not
   * wait for it. If the znode may not be deleted, this rejects with NoAuth, and they wait for the
   * end of the session. A second call waits for the first.
   */
  leave(options: WaitOptions = {}): Promise<void> {
    const surplus = argumentCountError(arguments.length, 1, 'leave(options)');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#leaving ??= this.#leave(options);
    return this.#leaving;
  }

  async #leave(options: WaitOptions): Promise<void> {
    const release = () => this.#held.release();
    try {
      if (this.state === 'lost') throw this.signal.reason;
      using deadline = new Deadline(this.#zk, options, `the other participants to leave, at ${this.path}`);
      await this.#leaveBarrier(release, deadline.signal);
    } finally {
      await release();
    }
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, path, fencingToken } = this;
    return inspectObject(this, { state, path, fencingToken, sessionId: formatSessionId(this.#held.client.sessionId) }, options, inspect);
  }

  /**
   * As `leave`, without a limit, and rejects as that does; an earlier call of `leave` has reported
   * its own error.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#leaving === undefined) await this.leave();
    else await this.#leaving.catch(() => undefined);
  }
}

/**
 * Calls `work`, and leaves. Resolves with its result when the others have left, too; rejects as
 * `work` does, without waiting for them, and as `Participation.leave` does.
 */
export async function runInside<Result>(
  participation: Participation,
  work: (participation: Participation) => Promise<Result> | Result,
  options: WaitOptions,
): Promise<Result> {
  let result: Result;
  try {
    result = await work(participation);
  } catch (error) {
    await participation.leave({ signal: AbortSignal.abort(error) }).catch(() => undefined);
    throw error;
  }
  await participation.leave(options);
  return result;
}
