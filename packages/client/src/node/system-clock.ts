/** The machine's clock. */
import type { Millis } from '@tskeeper/protocol';
import { type Clock, timerMsMax } from '../clock.ts';

/** Its timers keep the process running. */
export const systemClock: Clock = createClock((timer) => timer);

/** The same clock; its timers do not keep the process running. */
export const backgroundClock: Clock = createClock((timer) => timer.unref());

function createClock(prepareTimer: (timer: NodeJS.Timeout) => NodeJS.Timeout): Clock {
  return {
    now: () => ({ elapsedMs: performance.now() }),
    after: (delayMs, callback) =>
      delayMs > timerMsMax ? new LongTimer(delayMs, callback, prepareTimer) : prepareTimer(setTimeout(callback, Math.ceil(delayMs))),
    cancel: (timer) => {
      if (timer instanceof LongTimer) timer.cancel();
      else clearTimeout(timer as NodeJS.Timeout);
    },
  };
}

/**
 * Node fires a timer at once if its delay is too long, so a longer delay consists of several
 * timers.
 */
class LongTimer {
  readonly #callback: () => void;
  readonly #prepareTimer: (timer: NodeJS.Timeout) => NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: Millis, callback: () => void, prepareTimer: (timer: NodeJS.Timeout) => NodeJS.Timeout) {
    this.#callback = callback;
    this.#prepareTimer = prepareTimer;
    this.#set(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #set(leftMs: Millis): void {
    this.#timer = this.#prepareTimer(
      leftMs > timerMsMax ? setTimeout(() => this.#set(leftMs - timerMsMax), timerMsMax) : setTimeout(this.#callback, Math.ceil(leftMs)),
    );
  }
}
