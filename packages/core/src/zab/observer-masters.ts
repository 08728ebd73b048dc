/**
 * The servers that an observer may learn from where observerMasterPort is set: every voter, the
 * leader included, in an order of its own, so that observers spread over them
 * (QuorumPeer.nextObserverMaster). A leader refuses them at that port, and the next one is tried.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Random } from '../random.ts';

export class ObserverMasters {
  readonly #random: Random;
  readonly #reconnectDelayMsMax: Millis;
  #voters: readonly Sid[] = [];
  #order: Sid[] = [];
  #next = 0;

  constructor(random: Random, reconnectDelayMsMax: Millis) {
    this.#random = random;
    this.#reconnectDelayMsMax = reconnectDelayMsMax;
  }

  get count(): number {
    return this.#order.length;
  }

  /** The voters of the active configuration. Others get another order. */
  setVoters(voters: readonly Sid[]): void {
    if (voters.length === this.#voters.length && voters.every((sid, at) => sid === this.#voters[at])) return;
    this.#voters = [...voters];
    this.#order = [...voters];
    for (let at = this.#order.length - 1; at > 0; at--) {
      const other = this.#random.uint32() % (at + 1);
      [this.#order[at], this.#order[other]] = [this.#order[other]!, this.#order[at]!];
    }
    this.#next = 0;
  }

  /**
   * The next one, and for how long to wait before it is dialled: after all have been tried, a
   * random part of `observer.reconnectDelayMs`.
   */
  take(): { readonly sid: Sid; readonly delayMs: Millis } {
    let delayMs = 0;
    if (this.#next >= this.#order.length) {
      this.#next = 0;
      delayMs = this.#reconnectDelayMsMax > 0 ? this.#random.uint32() % this.#reconnectDelayMsMax : 0;
    }
    return { sid: this.#order[this.#next++]!, delayMs };
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#order.length);
    for (const sid of [...this.#order, this.#next]) to.number(sid);
  }
}
