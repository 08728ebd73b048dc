import { randomFillSync } from 'node:crypto';
import type { Random } from '@tskeeper/runtime';

/** Randomness nobody can predict; session ids and snapshot offsets come from here. Drawn in blocks, since each draw costs a system call. */
export class SystemRandom implements Random {
  readonly #block = new Uint32Array(256);
  #next = this.#block.length;

  uint32(): number {
    if (this.#next === this.#block.length) {
      randomFillSync(this.#block);
      this.#next = 0;
    }
    return this.#block[this.#next++]!;
  }
}
