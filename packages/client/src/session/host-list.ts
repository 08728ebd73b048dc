/**
 * In which order servers are tried: shuffled once, so that clients spread over an ensemble whatever order its servers are written in, and
 * then round and round, so that a client that has lost one server goes on to another.
 */
import type { Random } from '../clock.ts';
import { uniform } from '../clock.ts';
import type { ServerAddress } from '../transport.ts';

export class HostList {
  readonly #servers: readonly ServerAddress[];
  #at = -1;
  /** Attempts since one succeeded. */
  #tried = 0;

  constructor(servers: readonly ServerAddress[], random: Random) {
    const shuffled = [...servers];
    for (let left = shuffled.length - 1; left > 0; left--) {
      const pick = Math.floor(uniform(random, left + 1));
      [shuffled[left], shuffled[pick]] = [shuffled[pick]!, shuffled[left]!];
    }
    this.#servers = shuffled;
  }

  get size(): number {
    return this.#servers.length;
  }

  next(): ServerAddress {
    this.#at = (this.#at + 1) % this.#servers.length;
    this.#tried++;
    return this.#servers[this.#at]!;
  }

  connected(): void {
    this.#tried = 0;
  }

  /** Whether the attempt that was made last was the last of a round: each server has been tried in vain. */
  get roundOver(): boolean {
    return this.#tried > 0 && this.#tried % this.#servers.length === 0;
  }
}
