/**
 * For how long the session may be taken for alive: for its time-out, from when something was sent that has been answered since. When the
 * answer came says nothing, as it may have lain on its way for long.
 *
 * No promise follows from it. The leader alone ends sessions, by what servers have passed on to it: one that dies takes along what it heard within its
 * last half tick, and one that was cut off goes on answering, for syncLimit ticks at most. What must not happen after the end of the session
 * is to be fenced by a check on a znode of it.
 *
 * One request at a time is looked at, so what is known may be older than need be by one round trip, and is never too young.
 */
import type { Millis } from '@tskeeper/protocol';

export class Lease {
  #provenMs: Millis;
  /** The request that is looked at, by its place among all that were sent; 0: none. */
  #order = 0;
  /** The last that is known to have left. */
  #orderSent = 0;
  #sentMs: Millis = 0;
  #pingSentMs: Millis | undefined;

  constructor(nowMs: Millis) {
    this.#provenMs = nowMs;
  }

  /** When the last request was sent that was answered, as far as is known. */
  get provenMs(): Millis {
    return this.#provenMs;
  }

  /** A server has opened the session, or taken it up, in answer to what was sent then. */
  opened(askedMs: Millis): void {
    this.#provenMs = askedMs;
  }

  /** Everything up to this request is on its way. */
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

  /** What was sent will not be answered any more. */
  disconnected(): void {
    this.#order = 0;
    this.#pingSentMs = undefined;
  }

  #prove(ms: Millis): void {
    this.#provenMs = Math.max(this.#provenMs, ms);
  }
}
