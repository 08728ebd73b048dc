import { randomFillSync } from 'node:crypto';
import type { Random } from '@tskeeper/runtime';

/**
 * Unpredictable randomness; session ids and snapshot offsets come from here. Drawn in blocks,
 * because each draw costs a system call.
 */
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
