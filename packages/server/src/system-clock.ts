import type { Now } from '@tskeeper/core';
import type { Clock, TimerHandle } from '@tskeeper/runtime';

/**
 * Time as the operating system keeps it. Sessions expire by the monotonic clock, which neither an operator nor NTP can move; the wall
 * clock only ever ends up in ctime and mtime.
 */
export class SystemClock implements Clock {
  readonly #run: (callback: () => void) => void;

  /**
   * `onRefusal` is told what the system has refused to a callback, as a descriptor when there is none left: what is done for the sake of a figure
   * or a line must not end the process. Every other error goes through. Without `onRefusal` all do.
   */
  constructor(onRefusal?: (error: Error) => void) {
    this.#run = onRefusal === undefined ? (callback) => callback() : (callback) => runGuarded(callback, onRefusal);
  }

  now(): Now {
    return { elapsedMs: Math.floor(performance.now()), wallMs: Date.now() };
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    // Node may fire a timer a fraction of a millisecond early, and `elapsedMs` is rounded down: one millisecond more keeps the promise
    // that whoever is woken finds its deadline passed.
    return setTimeout(this.#run, delayMs + 1, callback);
  }

  cancel(timer: TimerHandle): void {
    clearTimeout(timer as NodeJS.Timeout);
  }

  soon(callback: () => void): void {
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
