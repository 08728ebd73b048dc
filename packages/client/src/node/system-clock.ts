/** The machine's clock. */
import { type Clock, timerMsMax } from '../clock.ts';

/** A timer of Node that is to wait longer than it can would come at once: so one follows the other. */
class Alarm {
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number, callback: () => void) {
    this.#wait(delayMs, callback);
  }

  #wait(leftMs: number, callback: () => void): void {
    const ms = Math.min(leftMs, timerMsMax);
    this.#timer = setTimeout(() => (ms === leftMs ? callback() : this.#wait(leftMs - ms, callback)), ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}

export const systemClock: Clock = {
  now: () => ({ elapsedMs: performance.now() }),
  after(delayMs, callback) {
    const ms = Math.ceil(delayMs);
    return ms > timerMsMax ? new Alarm(ms, callback) : setTimeout(callback, ms);
  },
  cancel(timer) {
    if (timer instanceof Alarm) timer.cancel();
    else clearTimeout(timer as NodeJS.Timeout);
  },
};
