/**
 * A keyed hash of a path's bytes: HalfSipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", in its 32-bit form).
 *
 * Clients choose the paths of znodes. Without a secret key, one could choose a million paths that
 * fall into one chain of the index and so make every look-up slow.
 */
export class PathHash {
  readonly #k0: number;
  readonly #k1: number;

  /** The seed may use up to 53 bits. */
  constructor(seed: number) {
    this.#k0 = seed | 0;
    // A seed of 32 bits leaves the other half constant, but not zero.
    this.#k1 = Math.floor(seed / 4294967296) ^ 0x5bd1e995;
  }

  /** An int32 for bytes [start, end). */
  of(bytes: Uint8Array, start: number, end: number): number {
    let v0 = this.#k0;
    let v1 = this.#k1;
    let v2 = 0x6c796765 ^ v0;
    let v3 = 0x74656462 ^ v1;
    const wordsEnd = end - ((end - start) & 3);
    let at = start;
    // Words of four bytes, then the rest together with the length, then three final rounds.
    for (let finishing = 0; finishing < 4;) {
      let word = 0;
      if (at < wordsEnd) {
        word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
        at += 4;
        v3 ^= word;
      } else if (finishing === 0) {
        word = (end - start) << 24;
        if (at + 2 < end) word |= bytes[at + 2]! << 16;
        if (at + 1 < end) word |= bytes[at + 1]! << 8;
        if (at < end) word |= bytes[at]!;
        v3 ^= word;
        finishing = 1;
      } else {
        if (finishing === 1) v2 ^= 0xff;
        finishing++;
      }
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    return v1 ^ v3;
  }
}
