/**
 * How often a server gives the lead away because another has a higher priority. It outlives the
 * roles of the server: a preferred server that keeps losing the lead must not get it back each time
 * at once, so each attempt doubles the pause before the next.
 */
import type { Millis } from '@tskeeper/protocol';
import { type Fingerprint, msUntil } from '../fingerprint.ts';

/** 20 s, 40 s, ... with default settings, and no more than this. */
const pauseMsMax: Millis = 30 * 60 * 1000;

export class LeaderPreference {
  readonly #pauseMsMin: Millis;
  #pauseMs: Millis;
  #nextMs: Millis = -Infinity;

  /** @param pauseMs the pause after the first attempt: initLimit, in which the other can lead. */
  constructor(pauseMs: Millis) {
    this.#pauseMsMin = this.#pauseMs = Math.min(pauseMs, pauseMsMax);
  }

  isDue(nowMs: Millis): boolean {
    return nowMs >= this.#nextMs;
  }

  attempted(nowMs: Millis): void {
    // Long ago: whatever was wrong then is over.
    if (nowMs - this.#nextMs > pauseMsMax) this.#pauseMs = this.#pauseMsMin;
    this.#nextMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, pauseMsMax);
  }

  fingerprint(to: Fingerprint, nowMs: Millis): void {
    to.number(this.#pauseMs);
    to.number(this.#nextMs === -Infinity ? -1 : (msUntil(this.#nextMs, nowMs) ?? -1));
  }
}
