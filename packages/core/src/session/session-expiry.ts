/**
 * Finds sessions that have timed out. Expiry depends on received input, never on the clock alone:
 * it expires if it gave no sign of life before its due time, and all input that had arrived by then
 * has been read. So no delay of our own (a paused process, a long job, a leader whose learners have
 * not been asked) can expire it, and none delays the expiry of a dead session.
 */
import type { Millis } from '@tskeeper/protocol';
import type { SessionSlot } from './session-table.ts';
import type { SessionDueTimes, SessionTracker } from './session-tracker.ts';

export class SessionExpiry {
  readonly #tracker: SessionTracker;
  readonly #dueTimes: SessionDueTimes;
  #nextDue: SessionSlot = -1;
  /** To be expired whatever their clients send: an operator requested it. */
  readonly #forcedExpirations: SessionSlot[] = [];
  readonly #setNextDue = (slot: SessionSlot): void => {
    this.#nextDue = slot;
  };

  /** @param dueTimes `tracker.expiry` or `tracker.localExpiry`: the sessions to expire. */
  constructor(tracker: SessionTracker, dueTimes: SessionDueTimes) {
    this.#tracker = tracker;
    this.#dueTimes = dueTimes;
  }

  /**
   * Expires a session as if it had timed out. From here on it accepts no touch, so its client
   * cannot keep it alive.
   */
  expireNow(slot: SessionSlot): void {
    this.#tracker.setClosing(slot);
    this.#forcedExpirations.push(slot);
  }

  get hasForcedExpirations(): boolean {
    return this.#forcedExpirations.length > 0;
  }

  /**
   * Takes the next session that has timed out; -1 if there is none. All input that had arrived
   * anywhere by `inputWatermarkMs` has been delivered.
   */
  nextExpired(inputWatermarkMs: Millis): SessionSlot {
    const forced = this.#forcedExpirations.shift();
    if (forced !== undefined) return forced;
    do {
      this.#nextDue = -1;
      this.#dueTimes.takeDue(inputWatermarkMs, 1, this.#setNextDue);
    } while (this.#nextDue !== -1 && this.#tracker.maybeExtendAwaitingCreate(this.#nextDue, inputWatermarkMs));
    return this.#nextDue;
  }
}
