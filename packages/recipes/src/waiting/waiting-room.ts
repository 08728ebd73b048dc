/** Many who wait for one and the same thing, each with an end of its own. */
import type { Clock } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { RecipeError } from '../recipe-error.ts';
import type { WaitOptions } from './wait-options.ts';

export interface Waiter {
  done(): void;
  failed(reason: unknown): void;
}

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
