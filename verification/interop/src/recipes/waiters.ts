/** Waiters, each for its turn. */
import type { Crowd } from './traffic.ts';

/** Clients that wait for something, each for its own share. */
export class Waiters<Got> {
  readonly got: Got[] = [];
  #notify = () => {};

  constructor(takes: readonly (() => Promise<Got>)[]) {
    for (const take of takes) {
      void take()
        .then((got) => this.got.push(got))
        .then(() => this.#notify())
        .catch(() => undefined);
    }
  }

  /** Resolves when one more client has it than at the time of the call. */
  next(): Promise<void> {
    return new Promise((resolve) => (this.#notify = resolve));
  }
}

/** The holder releases it, and the next one gets it. */
export async function handOverCrowd<Hold>(takes: readonly (() => Promise<Hold>)[], give: (hold: Hold) => Promise<void>): Promise<Crowd> {
  const [first, ...others] = takes;
  const held = await first!();
  const waiters = new Waiters(others);
  waiters.got.push(held);
  return {
    // Each watches its own znode, and all but one the znode before it.
    watches: 2 * takes.length - 1,
    async step() {
      const next = waiters.next();
      await give(waiters.got.shift()!);
      await next;
    },
  };
}

/** Something is put, and one of the waiters gets it. */
export async function feedCrowd<Got>(takes: readonly (() => Promise<Got>)[], watches: number, put: () => Promise<unknown>): Promise<Crowd> {
  const waiters = new Waiters(takes);
  return {
    watches,
    async step() {
      const next = waiters.next();
      await put();
      await next;
    },
  };
}
