/** The machine's clock. */
import type { Millis } from '@tskeeper/protocol';
import { type Clock, timerMsMax } from '../clock.ts';

export const systemClock: Clock = {
  now: () => ({ elapsedMs: performance.now() }),
  after: (delayMs, callback) => (delayMs > timerMsMax ? new LongTimer(delayMs, callback) : setTimeout(callback, Math.ceil(delayMs))),
  cancel: (timer) => {
    if (timer instanceof LongTimer) timer.cancel();
    else clearTimeout(timer as NodeJS.Timeout);
  },
};

/** Node fires a timer at once that is longer than it can wait, so such a one is made of several. */
class LongTimer {
  readonly #callback: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: Millis, callback: () => void) {
    this.#callback = callback;
    this.#set(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #set(leftMs: Millis): void {
    this.#timer =
      leftMs > timerMsMax ? setTimeout(() => this.#set(leftMs - timerMsMax), timerMsMax) : setTimeout(this.#callback, Math.ceil(leftMs));
  }
}
