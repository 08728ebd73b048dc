/**
 * Reproducible randomness from one seed. Small and fast; good enough to choose faults and delays,
 * and never to be used for secrets.
 */
import type { Random } from '../random.ts';

export class SeededRandom implements Random {
  // The four words of sfc32 (Chris Doty-Humphrey's "small fast counting" generator).
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 4294967296) | 0;
    this.#c = 0x9e3779b9 | 0;
    // Seeds that differ in one bit give related first numbers; a dozen rounds separate them.
    for (let i = 0; i < 12; i++) this.uint32();
  }

  uint32(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A whole number in 0 .. below - 1. */
  below(below: number): number {
    return Math.floor((this.uint32() / 4294967296) * below);
  }
}
