/** Several holds that count only together. */
import { type CallOptions, type ClientView, formatSessionId, type WriteOp, type WriteResults } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { checkArgumentCount, argumentCountError } from '../validation.ts';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import { Listeners } from '../listeners.ts';
import { multiWhileHeld } from './fenced-multi.ts';
import type { Hold, HoldState } from './hold.ts';

/**
 * Several holds, from when all are acquired until `release`, or until the first of them is lost.
 */
export class HoldSet implements AsyncDisposable {
  /** Each hold, with its own path and fencing token. */
  readonly holds: readonly Hold[];
  readonly #endController = new AbortController();
  readonly #listeners = new Listeners<HoldState>();
  readonly #cleanups: (() => void)[] = [];
  #state: HoldState = 'held';
  #released: Promise<void> | undefined;

  /** Made by the recipe, when it has acquired all of them. */
  constructor(holds: readonly Hold[]) {
    this.holds = holds;
    for (const hold of holds) {
      this.#cleanups.push(hold.onStateChange(() => this.#updateState()));
      if (!hold.signal.aborted) this.#cleanups.push(onAbort(hold.signal, () => this.#updateState()));
    }
    this.#updateState();
  }

  /**
   * As `Hold.state`: `lost` when the first is lost, `suspended` while one is. The other holds are
   * kept until `release`, which must still be called.
   */
  get state(): HoldState {
    return this.#state;
  }

  /** Aborted when the first of them is lost, with its reason; not by `release`. */
  get signal(): AbortSignal {
    return this.#endController.signal;
  }

  /** As `Hold.client`: all of them belong to one session. */
  get client(): ClientView {
    return this.holds[0]!.client;
  }

  /** As `Hold.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /** As `Hold.multi`: writes only if none of the holds is over, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    return await multiWhileHeld(this.client, ops, this.holds, options);
  }

  /**
   * Releases all of them, the last acquired first. As `Hold.release`; rejects as that does, after
   * all have been tried.
   */
  release(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#release().catch((refusal: unknown) => {
      this.#released = undefined;
      throw refusal;
    });
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, holds, client } = this;
    const paths = holds.map(({ path }) => path);
    return inspectObject(this, { state, paths, sessionId: formatSessionId(client.sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #release(): Promise<void> {
    this.#setState('released');
    await releaseAll(this.holds);
  }

  #updateState(): void {
    const states = new Set(this.holds.map(({ state }) => state));
    if (states.has('lost')) {
      this.#setState('lost', this.holds.find(({ signal }) => signal.aborted)!.signal.reason);
    } else if (states.has('released')) this.#setState('released');
    else this.#setState(states.has('suspended') ? 'suspended' : 'held');
  }

  #setState(state: HoldState, reason?: unknown): void {
    if (this.#state === state || this.#state === 'lost' || this.#state === 'released') return;
    this.#state = state;
    if (state === 'lost' || state === 'released') for (const forget of this.#cleanups) forget();
    // Before the listeners, which may read the reason.
    if (state === 'lost') this.#endController.abort(reason);
    this.#listeners.notify(state);
  }
}

/** Releases the last acquired first. Throws the first error after all have been tried. */
export async function releaseAll(holds: readonly Hold[]): Promise<void> {
  const results = await Promise.allSettled(holds.toReversed().map((hold) => hold.release()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
