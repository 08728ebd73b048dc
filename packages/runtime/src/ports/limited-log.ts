/**
 * One log line per bad connection is right until somebody opens a million of them. Each kind of line gets a few places per interval;
 * what did not fit is counted, and the count is told with the first line of the next interval.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Logger } from '../logger.ts';

const intervalMs = 10_000;
const linesPerInterval = 20;

export class LimitedLog {
  readonly #logger: Logger;
  readonly #kinds = new Map<string, { sinceMs: Millis; lines: number; leftOut: number }>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `kind` is one of a fixed few: it names the counter, and never comes from the network. */
  warn(kind: string, elapsedMs: Millis, message: string): void {
    let counter = this.#kinds.get(kind);
    if (counter === undefined) {
      counter = { sinceMs: elapsedMs, lines: 0, leftOut: 0 };
      this.#kinds.set(kind, counter);
    }
    if (elapsedMs - counter.sinceMs >= intervalMs) {
      if (counter.leftOut > 0) this.#logger.warn(`${counter.leftOut} more lines like the next one were left out.`);
      counter.sinceMs = elapsedMs;
      counter.lines = 0;
      counter.leftOut = 0;
    }
    if (counter.lines++ < linesPerInterval) this.#logger.warn(message);
    else counter.leftOut++;
  }
}
