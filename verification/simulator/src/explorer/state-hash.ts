/**
 * Reduces the fingerprint of a machine to a number of 53 bits. Two states collide with a
 * probability of 10^-16: among ten million states the chance of any collision is about one in two
 * hundred.
 */
import type { Fingerprint } from '@tskeeper/core/internal';

const highFactor = 0x85ebca6b;
const lowFactor = 0xc2b2ae35;
/** 2^32, the factor of the high half. */
const half = 4_294_967_296;
/** So that the text '1' differs from the number 1. */
const textMark = 0x7e57;

/** Longer texts are configurations and packets: few different ones, and most states have them. */
const longTextMin = 12;
const knownTextsMax = 100_000;
/** The hashes of long texts, so that each is computed once. */
const knownTexts = new Map<string, number>();

function hashOfLongText(text: string): number {
  let hash = knownTexts.get(text);
  if (hash === undefined) {
    hash = StateHash.ofText(text);
    if (knownTexts.size >= knownTextsMax) knownTexts.clear();
    knownTexts.set(text, hash);
  }
  return hash;
}

export class StateHash implements Fingerprint {
  #high = 0x9e3779b9;
  #low = 0x1b873593;

  number(value: number): void {
    this.#mix(value | 0);
    // Infinity has no remainder; only "no limit" is infinite.
    this.#mix(Number.isFinite(value) ? Math.floor(value / half) | 0 : textMark);
  }

  text(value: string): void {
    if (value.length > longTextMin) this.number(hashOfLongText(value));
    else this.#mixText(value);
  }

  static ofText(value: string): number {
    const hash = new StateHash();
    hash.#mixText(value);
    return hash.value;
  }

  #mixText(value: string): void {
    this.#mix(value.length ^ textMark);
    for (let at = 0; at < value.length; at++) this.#mix(value.charCodeAt(at));
  }

  #mix(word: number): void {
    this.#high = Math.imul(this.#high ^ word, highFactor);
    this.#high ^= this.#high >>> 13;
    this.#low = Math.imul(this.#low ^ word ^ (this.#high << 5), lowFactor);
    this.#low ^= this.#low >>> 16;
  }

  get value(): number {
    return (this.#high & 0x1fffff) * half + (this.#low >>> 0);
  }
}
