import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';

/** A timer that has been set. */
export type TimerHandle = object;

/** Time, as the runtime sees it. The simulator brings a virtual one. */
export interface Clock {
  /** Read anew after each wait; never remembered over one. */
  now(): Now;
  /** Calls back once, not before `delayMs` have passed on the monotonic clock. */
  after(delayMs: Millis, callback: () => void): TimerHandle;
  cancel(timer: TimerHandle): void;
  /** Calls back once, after what has already arrived from network and disk has been delivered. */
  soon(callback: () => void): void;
}
