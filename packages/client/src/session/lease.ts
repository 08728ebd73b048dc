/**
 * How long the session is probably alive: for its time-out, counted from the moment when something
 * was sent that has been answered since. The arrival of the answer does not matter, as it may have
 * been on its way for long.
 *
 * This is not a guarantee. Only the leader expires sessions, based on what servers have forwarded
 * to it: a server that dies loses what it heard within its last half tick, and a server that was
 * cut off continues to answer, for syncLimit ticks at most. An action that must not happen after
 * the end of the session needs a fence: a check of a znode of the session.
 *
 * Only one request at a time is tracked, so the known moment may be too old by one round trip, and
 * is never too recent.
 */
import type { Millis } from '@tskeeper/protocol';

export class Lease {
  #provenMs: Millis;
  /** The tracked request, by its position among all sent ones; 0: none. */
  #order = 0;
  /** The last request that is known to be sent. */
  #orderSent = 0;
  #sentMs: Millis = 0;
  #pingSentMs: Millis | undefined;

  constructor(nowMs: Millis) {
    this.#provenMs = nowMs;
  }

  /** When the last answered request was sent, as far as known. */
  get provenMs(): Millis {
    return this.#provenMs;
  }

  /** A server has opened or resumed the session, in answer to something sent at `askedMs`. */
  opened(askedMs: Millis): void {
    this.#provenMs = askedMs;
  }

  /** All requests up to this one have been sent. */
  sent(order: number, nowMs: Millis): void {
    const isNew = order > this.#orderSent;
    this.#orderSent = order;
    if (!isNew || this.#order !== 0) return;
    this.#order = order;
    this.#sentMs = nowMs;
  }

  answered(order: number): void {
    if (this.#order === 0 || order < this.#order) return;
    this.#prove(this.#sentMs);
    this.#order = 0;
  }

  pinged(nowMs: Millis): void {
    this.#pingSentMs ??= nowMs;
  }

  ponged(): void {
    if (this.#pingSentMs !== undefined) this.#prove(this.#pingSentMs);
    this.#pingSentMs = undefined;
  }

  /** Sent requests will not be answered any more. */
  disconnected(): void {
    this.#order = 0;
    this.#pingSentMs = undefined;
  }

  #prove(ms: Millis): void {
    this.#provenMs = Math.max(this.#provenMs, ms);
  }
}
