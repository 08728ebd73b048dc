import type { Now } from '@tskeeper/core';
import type { Clock, TimerHandle } from '@tskeeper/runtime';

/**
 * Time as the operating system keeps it. Sessions expire by the monotonic clock, which neither an operator nor NTP can move; the wall
 * clock only ever ends up in ctime and mtime.
 */
export class SystemClock implements Clock {
  now(): Now {
    return { elapsedMs: Math.floor(performance.now()), wallMs: Date.now() };
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    // Node may fire a timer a fraction of a millisecond early, and `elapsedMs` is rounded down: one millisecond more keeps the promise
    // that whoever is woken finds its deadline passed.
    return setTimeout(callback, delayMs + 1);
  }

  cancel(timer: TimerHandle): void {
    clearTimeout(timer as NodeJS.Timeout);
  }

  soon(callback: () => void): void {
    setImmediate(callback);
  }
}
