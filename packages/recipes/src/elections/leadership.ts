/** To lead: a hold, with a word to those who look on. */
import { type CallOptions, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { childPath, nameOf } from '@tskeeper/client/internal';
import type { Held, HoldState } from '../line/held.ts';

/** The znode that says that the leader knows. */
export function acknowledgedPath(election: string): string {
  return childPath(election, 'acknowledged');
}

/** The lead, from the turn until `resign` or the loss. */
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

  /** As `Held.state`. While it is `suspended` there is no other leader yet, but there may be one at any moment. */
  get state(): HoldState {
    return this.#held.state;
  }

  /** Aborted when the leadership is lost; not by `resign`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Held.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    return this.#held.onStateChange(listener);
  }

  /** As `Held.multi`: writes only as long as there is no other leader, and rejects as that does. */
  multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    return this.#held.multi(ops, options);
  }

  /**
   * Says to those who look on that this leader knows that it leads, and has done what a leader does first. Rejects with a RecipeError, Lost, when it
   * does not lead any more.
   */
  async acknowledge(options: CallOptions = {}): Promise<void> {
    const name = nameOf(this.path);
    for (;;) {
      try {
        this.#hasAcknowledged = true;
        await this.#held.multi([op.create(this.#acknowledged, name, { mode: 'ephemeral' })], options);
        return;
      } catch (error) {
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
      // Of a leader of the past, whose session lives on, or of this one, whose answer was lost.
      try {
        await this.#held.multi([op.delete(this.#acknowledged)], options);
      } catch (error) {
        if (!KeeperError.is(error, 'NoNode')) throw error;
      }
    }
  }

  /** Gives the leadership back, as `Held.release`, and rejects as that does. */
  async resign(): Promise<void> {
    // Fenced, so that it can never be the next leader's. Should it stay, it says nothing, as it names this one.
    if (this.#hasAcknowledged && this.state === 'held') await this.#held.multi([op.delete(this.#acknowledged)]).catch(() => undefined);
    await this.#held.release();
  }

  /** As `resign`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }
}
