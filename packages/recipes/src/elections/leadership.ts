/** A leadership: a hold, and its acknowledgement for observers. */
import { type CallOptions, type ClientView, formatSessionId, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { CallSignature, callOptionTypes, childPath, nameOf, optionTypes } from '@tskeeper/client/internal';
import { checkArgumentCount } from '../validation.ts';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import type { Hold, HoldState } from '../wait-queue/hold.ts';
import { connectionLossCodes, isUnanswered, retryForever } from '../waiting/own-znode.ts';

/** The znode by which the leader acknowledges its leadership. */
export function acknowledgedPath(election: string): string {
  return childPath(election, 'acknowledged');
}

const acknowledgeSignature = new CallSignature('acknowledge(options)', optionTypes(callOptionTypes.call));

/** The leadership, from its turn until `resign` or the loss. */
export class Leadership implements AsyncDisposable {
  readonly #held: Hold;
  readonly #acknowledgedPath: string;
  #hasAcknowledged = false;

  /** Made by `Election.lead`. */
  constructor(hold: Hold, election: string) {
    this.#held = hold;
    this.#acknowledgedPath = acknowledgedPath(election);
  }

  /** The znode of the candidate that leads. */
  get path(): string {
    return this.#held.path;
  }

  /** As `Hold.fencingToken`: grows from leader to leader. */
  get fencingToken(): bigint {
    return this.#held.fencingToken;
  }

  /** As `Hold.client`: the client of the session that leads. */
  get client(): ClientView {
    return this.#held.client;
  }

  /**
   * As `Hold.state`. While it is `suspended` there is no other leader yet, but there may be one at
   * any moment.
   */
  get state(): HoldState {
    return this.#held.state;
  }

  /** Aborted when the leadership is lost; not by `resign`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Hold.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#held.onStateChange(listener);
  }

  /** As `Hold.multi`: writes only while there is no other leader, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    return await this.#held.multi(ops, options);
  }

  /**
   * Shows observers that this leader knows that it leads, and has done its first steps. Survives
   * lost connections. Rejects with a RecipeError, Lost, when it no longer leads, and as
   * `Hold.multi` does.
   */
  async acknowledge(options: CallOptions = {}): Promise<void> {
    acknowledgeSignature.check(arguments.length, options);
    const own = op.create(this.#acknowledgedPath, nameOf(this.path), { mode: 'ephemeral' });
    while (!(await this.#tryWrite(own, 'NodeExists', options))) {
      // It belongs to an earlier leader, whose session still lives, or to this one, after a lost
      // reply.
      await this.#tryWrite(op.delete(this.#acknowledgedPath), 'NoNode', options);
    }
  }

  /** Whether it was applied; false if it was rejected for what exists, or the reply was lost. */
  async #tryWrite(write: WriteOp, refusal: 'NodeExists' | 'NoNode', options: CallOptions): Promise<boolean> {
    this.#hasAcknowledged = true;
    try {
      await this.#held.multi([write], { ...retryForever, ...options });
      return true;
    } catch (error) {
      if (!KeeperError.is(error, refusal, ...connectionLossCodes)) throw error;
      // The caller's own limit.
      if (options.timeoutMs !== undefined && KeeperError.is(error, 'RequestTimeout')) throw error;
      return false;
    }
  }

  /** Resigns, as `Hold.release`, and rejects as that does. */
  async resign(): Promise<void> {
    checkArgumentCount(arguments.length, 0, 'resign()');
    if (this.#hasAcknowledged && this.state === 'held') await this.#deleteAcknowledgement();
    await this.#held.release();
  }

  /**
   * Fenced, so that it never deletes the next leader's. If the znode stays, it acknowledges
   * nothing, as it names this leader.
   */
  async #deleteAcknowledgement(): Promise<void> {
    for (;;) {
      try {
        await this.#held.multi([op.delete(this.#acknowledgedPath)]);
        return;
      } catch (error) {
        if (!isUnanswered(error)) return;
      }
    }
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, path, fencingToken } = this;
    return inspectObject(this, { state, path, fencingToken, sessionId: formatSessionId(this.client.sessionId) }, options, inspect);
  }

  /** As `resign`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }
}
