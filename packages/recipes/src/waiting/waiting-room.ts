/**
 * Callers that wait for the same condition, each with its own limit. A caller that gives up leaves
 * nothing behind: others may wait for very long.
 */
import type { ClientView } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { Limit } from './limit.ts';
import type { WaitOptions } from './wait-options.ts';

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class WaitingRoom {
  readonly #zk: Pick<ClientView, 'clock'>;
  /** What they wait for: `the cache of /a`. */
  readonly #what: string;
  #waiters = new Set<Waiter>();

  constructor(zk: Pick<ClientView, 'clock'>, what: string) {
    this.#zk = zk;
    this.#what = what;
  }

  /** Resolves at the next `admit`; rejects with the reason of `dismiss`, and as `Limit` does. */
  async wait(options: WaitOptions): Promise<void> {
    using limit = new Limit(this.#zk, options, this.#what);
    const { signal } = limit;
    let leave!: () => void;
    const turn = new Promise<void>((resolve, reject) => {
      const waiter: Waiter = { resolve, reject };
      this.#waiters.add(waiter);
      const forget = onAbort(signal, () => reject(signal.reason));
      leave = () => {
        this.#waiters.delete(waiter);
        forget();
      };
    });
    await turn.finally(leave);
  }

  admit(): void {
    for (const { resolve } of this.#empty()) resolve();
  }

  dismiss(reason: unknown): void {
    for (const { reject } of this.#empty()) reject(reason);
  }

  /** Later callers wait for the next `admit`. */
  #empty(): ReadonlySet<Waiter> {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    return waiters;
  }
}
