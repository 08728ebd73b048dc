/** The machine's clock. */
import { type Clock, timerMsMax } from '../clock.ts';

export const systemClock: Clock = {
  now: () => ({ elapsedMs: performance.now() }),
  after: (delayMs, callback) => (delayMs > timerMsMax ? new LongTimer(delayMs, callback) : setTimeout(callback, Math.ceil(delayMs))),
  cancel: (timer) => {
    if (timer instanceof LongTimer) timer.cancel();
    else clearTimeout(timer as NodeJS.Timeout);
  },
};

/** Piece by piece, as Node fires at once for what is longer than its timers can wait. */
class LongTimer {
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number, callback: () => void) {
    this.#wait(delayMs, callback);
  }

  #wait(leftMs: number, callback: () => void): void {
    this.#timer =
      leftMs > timerMsMax
        ? setTimeout(() => this.#wait(leftMs - timerMsMax, callback), timerMsMax)
        : setTimeout(callback, Math.ceil(leftMs));
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}
