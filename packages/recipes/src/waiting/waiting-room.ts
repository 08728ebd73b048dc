/** Many who wait for one and the same thing, each with an end of its own. */
import type { ClientView } from '@tskeeper/client';
import { Limit, unlessAborted } from './limit.ts';
import type { WaitOptions } from './wait-options.ts';

export class WaitingRoom {
  readonly #zk: Pick<ClientView, 'clock'>;
  /** What they wait for: `the cache of /a, in step,`. */
  readonly #what: string;
  #turn: Promise<void>;
  #admit!: () => void;
  #dismiss!: (reason: unknown) => void;

  constructor(zk: Pick<ClientView, 'clock'>, what: string) {
    this.#zk = zk;
    this.#what = what;
    this.#turn = this.#nextTurn();
  }

  /** Resolves with the next `admit`; rejects with the reason of `dismiss`, and as limits say. */
  async wait(options: WaitOptions): Promise<void> {
    using limit = new Limit(this.#zk, options, this.#what);
    await unlessAborted(this.#turn, limit.signal);
  }

  admit(): void {
    const admit = this.#admit;
    this.#turn = this.#nextTurn();
    admit();
  }

  dismiss(reason: unknown): void {
    const dismiss = this.#dismiss;
    this.#turn = this.#nextTurn();
    dismiss(reason);
  }

  #nextTurn(): Promise<void> {
    const turn = new Promise<void>((resolve, reject) => {
      this.#admit = resolve;
      this.#dismiss = reject;
    });
    // Nobody may be waiting.
    turn.catch(() => undefined);
    return turn;
  }
}
