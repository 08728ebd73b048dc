/**
 * How long the session is probably alive: for its time-out, counted from the moment when something
 * was sent that has been answered since. The arrival of the answer does not matter, as it may have
 * been on its way for long.
 *
 * This is not a guarantee. Only the leader expires sessions, based on what servers have forwarded
 * to it: a server that dies loses what it received within its last half tick, and a server that was
 * cut off continues to answer, for syncLimit ticks at most. An action that must not happen after
 * the end of the session needs a fence: a check of a znode of the session.
 *
 * Only one request at a time is tracked, so the known moment may be too old by one round trip, and
 * is never too recent.
 */
import type { Millis } from '@tskeeper/protocol';

export class SessionLiveness {
  #confirmedMs: Millis;
  /** The tracked request, by its position among all sent ones; 0: none. */
  #trackedOrdinal = 0;
  /** The last request that is known to be sent. */
  #sentOrdinal = 0;
  #sentMs: Millis = 0;
  #pingSentMs: Millis | undefined;

  constructor(nowMs: Millis) {
    this.#confirmedMs = nowMs;
  }

  /** When the last answered request was sent, as far as known. */
  get confirmedMs(): Millis {
    return this.#confirmedMs;
  }

  /**
   * A server has opened or resumed the session, in answer to a request sent at `requestSentMs`.
   */
  opened(requestSentMs: Millis): void {
    this.#confirmedMs = requestSentMs;
  }

  /** All requests up to this one have been sent. */
  sent(ordinal: number, nowMs: Millis): void {
    const isNew = ordinal > this.#sentOrdinal;
    this.#sentOrdinal = ordinal;
    if (!isNew || this.#trackedOrdinal !== 0) return;
    this.#trackedOrdinal = ordinal;
    this.#sentMs = nowMs;
  }

  answered(ordinal: number): void {
    if (this.#trackedOrdinal === 0 || ordinal < this.#trackedOrdinal) return;
    this.#confirm(this.#sentMs);
    this.#trackedOrdinal = 0;
  }

  pinged(nowMs: Millis): void {
    this.#pingSentMs ??= nowMs;
  }

  ponged(): void {
    if (this.#pingSentMs !== undefined) this.#confirm(this.#pingSentMs);
    this.#pingSentMs = undefined;
  }

  /** Sent requests will no longer be answered. */
  disconnected(): void {
    this.#trackedOrdinal = 0;
    this.#pingSentMs = undefined;
  }

  #confirm(ms: Millis): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, ms);
  }
}
