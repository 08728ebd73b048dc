/**
 * Which session's time is up. A session is never ended for silence that was ours: while the server did something long nobody was listened
 * to, and everybody gets as long again to be heard.
 */
import type { Millis } from '@tskeeper/protocol';
import type { SessionSlot } from './session-table.ts';
import type { SessionTracker } from './session-tracker.ts';

export class Expiry {
  readonly #tracker: SessionTracker;
  readonly #putOffMaxMs: Millis;
  /** No session expires before. */
  #fromMs: Millis = 0;
  /** Since when a session that is due has been kept, Infinity while none is. */
  #putOffMs: Millis = Infinity;
  #due: SessionSlot = -1;
  /** To be ended whatever they say: an operator wants it so. */
  readonly #condemned: SessionSlot[] = [];
  readonly #noteDue = (slot: SessionSlot): void => {
    this.#due = slot;
  };

  /** @param putOffMaxMs the dead are not kept for longer, however many long jobs follow each other. */
  constructor(tracker: SessionTracker, putOffMaxMs: Millis) {
    this.#tracker = tracker;
    this.#putOffMaxMs = putOffMaxMs;
  }

  /** Nobody was listened to from `beganMs` until now. */
  wasDeaf(beganMs: Millis, nowMs: Millis): void {
    this.#fromMs = Math.max(this.#fromMs, nowMs + (nowMs - beganMs));
  }

  /** Ends a session as if its time were up. From here on it takes no touch, so that its client cannot save it. */
  condemn(slot: SessionSlot): void {
    this.#tracker.setClosing(slot);
    this.#condemned.push(slot);
  }

  /** When the next session may be due; undefined when there is none. */
  deadline(): Millis | undefined {
    if (this.#condemned.length > 0) return 0;
    const due = this.#tracker.deadline();
    return due === undefined ? undefined : Math.max(due, this.#fromMs);
  }

  /** The next session whose time is up, which no longer waits for its time; -1 when there is none. */
  next(nowMs: Millis): SessionSlot {
    const condemned = this.#condemned.shift();
    if (condemned !== undefined) return condemned;
    if (nowMs < this.#fromMs && nowMs - this.#putOffMs < this.#putOffMaxMs) {
      this.#putOffMs = Math.min(this.#putOffMs, nowMs);
      return -1;
    }
    this.#putOffMs = Infinity;
    this.#due = -1;
    this.#tracker.takeDue(nowMs, 1, this.#noteDue);
    return this.#due;
  }
}
