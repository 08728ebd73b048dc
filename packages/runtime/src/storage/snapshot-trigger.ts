/**
 * When it is time for a snapshot and a new log: after a number of txns or of bytes, each with a random part, so that the members of an
 * ensemble do not all stop for breath at the same txn.
 */
import type { Random } from '../random.ts';

export class SnapshotTrigger {
  readonly #snapCount: number;
  readonly #sizeLimitBytes: number;
  readonly #random: Random;
  #count = 0;
  #bytes = 0;
  #countLimit = 0;
  #bytesLimit = 0;

  /** `sizeLimitBytes` of 0 or less turns the rule of sizes off. */
  constructor(snapCount: number, sizeLimitBytes: number, random: Random) {
    this.#snapCount = Math.max(2, snapCount);
    this.#sizeLimitBytes = sizeLimitBytes;
    this.#random = random;
    this.#restart();
  }

  /** A txn has been appended; returns whether the time has come, and starts to count anew if so. */
  note(bytes: number): boolean {
    this.#count++;
    this.#bytes += bytes;
    if (this.#count <= this.#countLimit && (this.#sizeLimitBytes <= 0 || this.#bytes <= this.#bytesLimit)) return false;
    this.#restart();
    return true;
  }

  #restart(): void {
    this.#count = 0;
    this.#bytes = 0;
    this.#countLimit = this.#halfAndRandomHalf(this.#snapCount);
    this.#bytesLimit = this.#halfAndRandomHalf(this.#sizeLimitBytes);
  }

  #halfAndRandomHalf(limit: number): number {
    const half = Math.floor(limit / 2);
    return half + Math.floor((this.#random.uint32() / 0x1_0000_0000) * half);
  }
}
