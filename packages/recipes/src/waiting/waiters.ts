/**
 * Callers that wait for the same condition, each with its own limit. A caller that gives up leaves
 * nothing behind: others may wait for very long.
 */
import type { ClientView } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { Deadline } from './deadline.ts';
import type { WaitOptions } from './wait-options.ts';

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

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

  /** Later callers wait for the next `admit`. */
  #takeAll(): ReadonlySet<Waiter> {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    return waiters;
  }
}
