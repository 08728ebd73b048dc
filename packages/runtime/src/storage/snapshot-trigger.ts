/**
 * Decides when a snapshot and a new log are due: after a number of txns or of bytes, each with a
 * random part, so that the servers of an ensemble do not all pause at the same txn.
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

  /** `sizeLimitBytes` of 0 or less disables the rule of sizes. */
  constructor(snapCount: number, sizeLimitBytes: number, random: Random) {
    this.#snapCount = Math.max(2, snapCount);
    this.#sizeLimitBytes = sizeLimitBytes;
    this.#random = random;
    this.#restart();
  }

  /** Counts an appended txn; returns whether a snapshot is due, and restarts the count if so. */
  txnAppended(bytes: number): boolean {
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
