/**
 * Which session's time is up. A session is judged by what was heard, never by the time of the day: it ends when it had not been heard of by
 * the time it was due, and everything that had arrived by then has been listened to. So no silence of our own (a stopped process, a long job,
 * a leader whose learners have not been asked) can end it, and none of it puts off the end of one that is dead.
 */
import type { Millis } from '@tskeeper/protocol';
import type { SessionSlot } from './session-table.ts';
import type { SessionTracker } from './session-tracker.ts';

export class Expiry {
  readonly #tracker: SessionTracker;
  #due: SessionSlot = -1;
  /** To be ended whatever they say: an operator wants it so. */
  readonly #condemned: SessionSlot[] = [];
  readonly #noteDue = (slot: SessionSlot): void => {
    this.#due = slot;
  };

  constructor(tracker: SessionTracker) {
    this.#tracker = tracker;
  }

  /** Ends a session as if its time were up. From here on it takes no touch, so that its client cannot save it. */
  condemn(slot: SessionSlot): void {
    this.#tracker.setClosing(slot);
    this.#condemned.push(slot);
  }

  get hasCondemned(): boolean {
    return this.#condemned.length > 0;
  }

  /** When the next session may be due that nobody has condemned; undefined when there is none. */
  deadline(): Millis | undefined {
    return this.#tracker.deadline();
  }

  /**
   * The next session whose time is up, which no longer waits for its time; -1 when there is none. Everything that had arrived anywhere by
   * `heardMs` has been heard.
   */
  next(heardMs: Millis): SessionSlot {
    const condemned = this.#condemned.shift();
    if (condemned !== undefined) return condemned;
    this.#due = -1;
    this.#tracker.takeDue(heardMs, 1, this.#noteDue);
    return this.#due;
  }
}
