/**
 * Connections to a port between servers that have not introduced themselves. An honest server does
 * so at once, so there are few of them, and they are young. A source of thousands of silent
 * connections gets a limited number of places; when these are taken, the oldest of the address that
 * holds most of them is dropped, so that a flood from one address costs another address no place.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Endpoint } from '../network.ts';

export interface HalfOpenStream {
  readonly remote: Endpoint;
  readonly openedMs: Millis;
}

export class HalfOpenStreams<T extends HalfOpenStream> {
  readonly #countMax: number;
  readonly #timeoutMs: Millis;
  /** Oldest first. */
  readonly #cnxns = new Set<T>();
  readonly #countByAddress = new Map<string, number>();

  constructor(countMax: number, timeoutMs: Millis) {
    this.#countMax = countMax;
    this.#timeoutMs = timeoutMs;
  }

  get count(): number {
    return this.#cnxns.size;
  }

  /** Returns the connection that must be dropped for it, which is no longer counted here. */
  add(cnxn: T): T | undefined {
    this.#cnxns.add(cnxn);
    const { address } = cnxn.remote;
    this.#countByAddress.set(address, (this.#countByAddress.get(address) ?? 0) + 1);
    if (this.#cnxns.size <= this.#countMax) return undefined;
    const most = Math.max(...this.#countByAddress.values());
    for (const oldest of this.#cnxns) {
      if (this.#countByAddress.get(oldest.remote.address) !== most) continue;
      this.delete(oldest);
      return oldest;
    }
    return undefined;
  }

  delete(cnxn: T): void {
    if (!this.#cnxns.delete(cnxn)) return;
    const { address } = cnxn.remote;
    const left = this.#countByAddress.get(address)! - 1;
    if (left === 0) this.#countByAddress.delete(address);
    else this.#countByAddress.set(address, left);
  }

  deadline(): Millis | undefined {
    for (const { openedMs } of this.#cnxns) return openedMs + this.#timeoutMs;
    return undefined;
  }

  /** Connections that have timed out, which are no longer counted here. */
  takeDue(elapsedMs: Millis): T[] {
    const due: T[] = [];
    for (const cnxn of this.#cnxns) {
      if (elapsedMs - cnxn.openedMs < this.#timeoutMs) break;
      due.push(cnxn);
    }
    for (const cnxn of due) this.delete(cnxn);
    return due;
  }
}
