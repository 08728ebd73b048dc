/** Waiting, as every recipe does it: with an end that the program can set by a signal or by a time. */
import type { Clock } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { RecipeError } from './recipe-error.ts';

/** How long to wait. */
export interface WaitOptions {
  /** Ends the waiting, which then rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the waiting after so many milliseconds; it then rejects with a RecipeError, TimedOut. Default: none. */
  readonly timeoutMs?: number | undefined;
}

export interface Waiter {
  done(): void;
  failed(reason: unknown): void;
}

/** Those who wait for one and the same thing. */
export class WaitingRoom {
  readonly #clock: Clock;
  /** What they wait for, to be said when it has not come: `the cache of /a is in step`. */
  readonly #what: string;
  readonly #waiters = new Set<Waiter>();

  constructor(clock: Clock, what: string) {
    this.#clock = clock;
    this.#what = what;
  }

  wait({ signal, timeoutMs }: WaitOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const over = () => {
        this.#waiters.delete(waiter);
        forget?.();
        if (timer !== undefined) this.#clock.cancel(timer);
      };
      const waiter: Waiter = {
        done: () => {
          over();
          resolve();
        },
        failed: (reason) => {
          over();
          reject(reason);
        },
      };
      const late = () => waiter.failed(new RecipeError('TimedOut', `it took more than ${timeoutMs} ms until ${this.#what}`));
      const forget = signal && onAbort(signal, () => waiter.failed(signal.reason));
      const timer = timeoutMs === undefined ? undefined : this.#clock.after(timeoutMs, late);
      this.#waiters.add(waiter);
    });
  }

  admit(): void {
    for (const waiter of this.#waiters) waiter.done();
  }

  dismiss(reason: unknown): void {
    for (const waiter of this.#waiters) waiter.failed(reason);
  }
}
