/** A leadership: a hold, and its acknowledgement for observers. */
import { type CallOptions, type ClientView, formatSessionId, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { CallForm, callKinds, childPath, nameOf, optionKinds } from '@tskeeper/client/internal';
import { checkCount } from '../given.ts';
import { type Inspect, inspected } from '../inspection.ts';
import type { Held, HoldState } from '../line/held.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered, lossCodes } from '../waiting/unanswered.ts';

/** The znode by which the leader acknowledges its leadership. */
export function acknowledgedPath(election: string): string {
  return childPath(election, 'acknowledged');
}

const acknowledgeForm = new CallForm('acknowledge(options)', optionKinds(callKinds.call));

/** The leadership, from its turn until `resign` or the loss. */
export class Leadership implements AsyncDisposable {
  readonly #held: Held;
  readonly #acknowledged: string;
  #hasAcknowledged = false;

  /** Made by `Election.lead`. */
  constructor(held: Held, election: string) {
    this.#held = held;
    this.#acknowledged = acknowledgedPath(election);
  }

  /** The znode of the candidate that leads. */
  get path(): string {
    return this.#held.path;
  }

  /** As `Held.fencingToken`: grows from leader to leader. */
  get fencingToken(): bigint {
    return this.#held.fencingToken;
  }

  /** As `Held.zk`: the client of the session that leads. */
  get zk(): ClientView {
    return this.#held.zk;
  }

  /**
   * As `Held.state`. While it is `suspended` there is no other leader yet, but there may be one at
   * any moment.
   */
  get state(): HoldState {
    return this.#held.state;
  }

  /** Aborted when the leadership is lost; not by `resign`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Held.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#held.onStateChange(listener);
  }

  /** As `Held.multi`: writes only while there is no other leader, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    return await this.#held.multi(ops, options);
  }

  /**
   * Shows observers that this leader knows that it leads, and has done its first steps. Survives
   * lost connections. Rejects with a RecipeError, Lost, when it no longer leads, and as
   * `Held.multi` does.
   */
  async acknowledge(options: CallOptions = {}): Promise<void> {
    acknowledgeForm.check(arguments.length, options);
    const own = op.create(this.#acknowledged, nameOf(this.path), { mode: 'ephemeral' });
    while (!(await this.#settles(own, 'NodeExists', options))) {
      // It belongs to an earlier leader, whose session still lives, or to this one, after a lost
      // reply.
      await this.#settles(op.delete(this.#acknowledged), 'NoNode', options);
    }
  }

  /** Whether it was applied; false if it was rejected for what exists, or the reply was lost. */
  async #settles(write: WriteOp, refusal: 'NodeExists' | 'NoNode', options: CallOptions): Promise<boolean> {
    this.#hasAcknowledged = true;
    try {
      await this.#held.multi([write], { ...untilTheEnd, ...options });
      return true;
    } catch (error) {
      if (!KeeperError.is(error, refusal, ...lossCodes)) throw error;
      // The caller's own limit.
      if (options.timeoutMs !== undefined && KeeperError.is(error, 'RequestTimeout')) throw error;
      return false;
    }
  }

  /** Resigns, as `Held.release`, and rejects as that does. */
  async resign(): Promise<void> {
    checkCount(arguments.length, 0, 'resign()');
    if (this.#hasAcknowledged && this.state === 'held') await this.#retract();
    await this.#held.release();
  }

  /**
   * Fenced, so that it never deletes the next leader's. If the znode stays, it acknowledges
   * nothing, as it names this leader.
   */
  async #retract(): Promise<void> {
    for (;;) {
      try {
        await this.#held.multi([op.delete(this.#acknowledged)]);
        return;
      } catch (error) {
        if (!isUnanswered(error)) return;
      }
    }
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: Inspect): string {
    const { state, path, fencingToken } = this;
    return inspected(this, { state, path, fencingToken, sessionId: formatSessionId(this.zk.sessionId) }, options, inspect);
  }

  /** As `resign`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }
}
