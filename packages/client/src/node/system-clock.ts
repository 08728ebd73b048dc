/** The machine's clock. */
import type { Clock } from '../clock.ts';

export const systemClock: Clock = {
  now: () => ({ elapsedMs: performance.now() }),
  after: (delayMs, callback) => setTimeout(callback, Math.ceil(delayMs)),
  cancel: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
