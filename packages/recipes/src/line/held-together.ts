/** Several holds that count only together. */
import { type CallOptions, type ClientView, formatSessionId, type WriteOp, type WriteResults } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { checkCount, surplusOf } from '../given.ts';
import { type Inspect, inspected } from '../inspection.ts';
import { Listeners } from '../listeners.ts';
import { fencedBy } from './fenced.ts';
import type { Held, HoldState } from './held.ts';

/**
 * Several holds, from when all are acquired until `release`, or until the first of them is lost.
 */
export class HeldTogether implements AsyncDisposable {
  /** Each hold, with its own path and fencing token. */
  readonly holds: readonly Held[];
  readonly #end = new AbortController();
  readonly #listeners = new Listeners<HoldState>();
  readonly #forget: (() => void)[] = [];
  #state: HoldState = 'held';
  #released: Promise<void> | undefined;

  /** Made by the recipe, when it has acquired all of them. */
  constructor(holds: readonly Held[]) {
    this.holds = holds;
    for (const held of holds) {
      this.#forget.push(held.onStateChange(() => this.#look()));
      if (!held.signal.aborted) this.#forget.push(onAbort(held.signal, () => this.#look()));
    }
    this.#look();
  }

  /**
   * As `Held.state`: `lost` when the first is lost, `suspended` while one is. The other holds are
   * kept until `release`, which must still be called.
   */
  get state(): HoldState {
    return this.#state;
  }

  /** Aborted when the first of them is lost, with its reason; not by `release`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** As `Held.zk`: all of them belong to one session. */
  get zk(): ClientView {
    return this.holds[0]!.zk;
  }

  /** As `Held.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /** As `Held.multi`: writes only if none of the holds is over, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    return await fencedBy(this.zk, ops, this.holds, options);
  }

  /**
   * Releases all of them, the last acquired first. As `Held.release`; rejects as that does, after
   * all have been tried.
   */
  release(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#giveBack().catch((refusal: unknown) => {
      this.#released = undefined;
      throw refusal;
    });
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: Inspect): string {
    const { state, holds, zk } = this;
    const paths = holds.map(({ path }) => path);
    return inspected(this, { state, paths, sessionId: formatSessionId(zk.sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #giveBack(): Promise<void> {
    this.#become('released');
    await releaseAll(this.holds);
  }

  #look(): void {
    const states = new Set(this.holds.map(({ state }) => state));
    if (states.has('lost')) {
      this.#become('lost', this.holds.find(({ signal }) => signal.aborted)!.signal.reason);
    } else if (states.has('released')) this.#become('released');
    else this.#become(states.has('suspended') ? 'suspended' : 'held');
  }

  #become(state: HoldState, reason?: unknown): void {
    if (this.#state === state || this.#state === 'lost' || this.#state === 'released') return;
    this.#state = state;
    if (state === 'lost' || state === 'released') for (const forget of this.#forget) forget();
    // Before the listeners, which may read the reason.
    if (state === 'lost') this.#end.abort(reason);
    this.#listeners.tell(state);
  }
}

/** Releases the last acquired first. Throws the first error after all have been tried. */
export async function releaseAll(holds: readonly Held[]): Promise<void> {
  const results = await Promise.allSettled(holds.toReversed().map((held) => held.release()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
