import type { Now } from '@tskeeper/core';
import type { Clock, TimerHandle } from '@tskeeper/runtime';

/**
 * Time of the operating system. Sessions expire by the monotonic clock, which neither an operator
 * nor NTP can move; the wall clock is used for ctime and mtime only.
 */
export class SystemClock implements Clock {
  readonly #run: (callback: () => void) => void;

  /**
   * `onRefusal` receives what the system refused to a callback, such as a descriptor when none is
   * left: work for a figure or a line of the log must not end the process. Every other error is
   * thrown. Without `onRefusal` all are.
   */
  constructor(onRefusal?: (error: Error) => void) {
    this.#run = onRefusal === undefined ? (callback) => callback() : (callback) => runGuarded(callback, onRefusal);
  }

  now(): Now {
    return { elapsedMs: Math.floor(performance.now()), wallMs: Date.now() };
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    // Node may fire a timer a fraction of a millisecond early, and `elapsedMs` is rounded down: one
    // more millisecond guarantees that the callback finds its deadline passed.
    return setTimeout(this.#run, delayMs + 1, callback);
  }

  cancel(timer: TimerHandle): void {
    clearTimeout(timer as NodeJS.Timeout);
  }

  setImmediate(callback: () => void): void {
    setImmediate(this.#run, callback);
  }
}

function runGuarded(callback: () => void, onRefusal: (error: Error) => void): void {
  try {
    callback();
  } catch (error) {
    if (!(error instanceof Error) || !('syscall' in error)) throw error;
    onRefusal(error);
  }
}
