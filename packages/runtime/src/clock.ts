import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';

/** A pending timer. */
export type TimerHandle = object;

/** The clock of the runtime. The simulator has a virtual one. */
export interface Clock {
  /** Read it again after each wait; never keep it across one. */
  now(): Now;
  /** Calls back once, not before `delayMs` have passed on the monotonic clock. */
  after(delayMs: Millis, callback: () => void): TimerHandle;
  cancel(timer: TimerHandle): void;
  /**
   * Calls back once, after everything that has already arrived from network and disk has been
   * delivered.
   */
  setImmediate(callback: () => void): void;
}
