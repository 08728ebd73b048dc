/**
 * A deadline for the server's answers that a pause of this process does not use up. Timers run
 * before input: after a pause the answers may have arrived and not been read, so a wake that is
 * very late extends the deadline instead of ending the wait.
 */
import type { Millis } from '@tskeeper/protocol';
import { lateWakeGraceMs, lateWakeMs } from './timings.ts';

/** A limit of a connection: when it is exceeded, the client leaves the server. */
export interface CnxnLimit {
  /** Infinity if nothing is unanswered. */
  readonly deadlineMs: Millis;
  isDue(nowMs: Millis): boolean;
  /** Extends a deadline that is due only because the process was paused. Returns whether it did. */
  maybeExtend(nowMs: Millis): boolean;
  /** Why the client leaves, if the limit is due and was not extended. */
  readonly overdueReason: string;
}

export class GraceDeadline {
  #dueMs: Millis = Infinity;

  get dueMs(): Millis {
    return this.#dueMs;
  }

  set(dueMs: Millis): void {
    this.#dueMs = dueMs;
  }

  isDue(nowMs: Millis): boolean {
    return nowMs >= this.#dueMs;
  }

  /** Extends a deadline that is due only because the process was paused. Returns whether it did. */
  maybeExtend(nowMs: Millis): boolean {
    if (nowMs - this.#dueMs <= lateWakeMs) return false;
    this.#dueMs = nowMs + lateWakeGraceMs;
    return true;
  }
}
