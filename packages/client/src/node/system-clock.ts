/** The machine's clock. */
import { type Clock, timerMsMax } from '../clock.ts';

export const systemClock: Clock = {
  now: () => ({ elapsedMs: performance.now() }),
  after: (delayMs, callback) => (delayMs > timerMsMax ? new LongTimer(delayMs, callback) : setTimeout(callback, Math.ceil(delayMs))),
  cancel: (timer) => (timer instanceof LongTimer ? timer.cancel() : clearTimeout(timer as NodeJS.Timeout)),
};

/** One of Node's after another: one alone that is to wait longer than it can fires at once. */
class LongTimer {
  readonly #callback: () => void;
  #timer: NodeJS.Timeout;

  constructor(delayMs: number, callback: () => void) {
    this.#callback = callback;
    this.#timer = this.#wait(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #wait(leftMs: number): NodeJS.Timeout {
    if (leftMs <= timerMsMax) return setTimeout(this.#callback, Math.ceil(leftMs));
    return setTimeout(() => (this.#timer = this.#wait(leftMs - timerMsMax)), timerMsMax);
  }
}
