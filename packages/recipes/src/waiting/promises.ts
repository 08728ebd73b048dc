/**
 * Waits for promises, for time, and for a condition that many callers wait for. A caller that gives
 * up leaves nothing behind: others may wait for very long.
 */
import type { ClientView, Clock } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import type { WaitOptions } from '../wait-options.ts';
import { Deadline } from './deadline.ts';

/**
 * Resolves when both are settled. It resolves without a value: in a chain of such promises each
 * result would keep the one before it alive, and so all earlier ones.
 */
export async function bothSettled(one: Promise<unknown>, other: Promise<unknown>): Promise<void> {
  await Promise.allSettled([one, other]);
}

/**
 * Resolves or rejects with the first of the waits, and aborts the signal that the others received.
 * Rejects with the reason of `signal`.
 */
export async function firstOf<Result>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<Result>)[]): Promise<Result> {
  signal.throwIfAborted();
  const othersController = new AbortController();
  const removeAbortListener = onAbort(signal, () => othersController.abort(signal.reason));
  try {
    return await Promise.race(waits.map((wait) => wait(othersController.signal)));
  } finally {
    removeAbortListener();
    othersController.abort();
  }
}

/** Resolves after this many milliseconds. Rejects with the signal's reason. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      clock.cancel(timer);
      reject(signal.reason);
    });
  });
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Callers that wait for the same condition, each with its own limit. */
export class Waiters {
  readonly #clockOwner: Pick<ClientView, 'clock'>;
  /** What they wait for: `the cache of /a`. */
  readonly #awaited: string;
  #waiters = new Set<Waiter>();

  constructor(zk: Pick<ClientView, 'clock'>, what: string) {
    this.#clockOwner = zk;
    this.#awaited = what;
  }

  /**
   * Resolves at the next `resolveAll`; rejects with the reason of `rejectAll`, and as `Deadline`
   * does.
   */
  async wait(options: WaitOptions): Promise<void> {
    using deadline = new Deadline(this.#clockOwner, options, this.#awaited);
    const { signal } = deadline;
    let cleanUp!: () => void;
    const settled = new Promise<void>((resolve, reject) => {
      const waiter: Waiter = { resolve, reject };
      this.#waiters.add(waiter);
      const removeAbortListener = onAbort(signal, () => reject(signal.reason));
      cleanUp = () => {
        this.#waiters.delete(waiter);
        removeAbortListener();
      };
    });
    await settled.finally(cleanUp);
  }

  resolveAll(): void {
    for (const { resolve } of this.#takeAll()) resolve();
  }

  rejectAll(reason: unknown): void {
    for (const { reject } of this.#takeAll()) reject(reason);
  }

  /** Later callers wait for the next `resolveAll`. */
  #takeAll(): ReadonlySet<Waiter> {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    return waiters;
  }
}
