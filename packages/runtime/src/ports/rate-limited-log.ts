/**
 * One log line per bad connection is right until a million of them are opened. Each event gets a
 * few lines per interval; further lines are counted, and the count is logged before the first line
 * of the next interval.
 */
import type { Millis } from '@tskeeper/protocol';
import type { FieldsAt } from '../log-events.ts';
import type { Logger } from '../logger.ts';

const intervalMs = 10_000;
const linesPerInterval = 20;

export class RateLimitedLog {
  readonly #logger: Logger;
  readonly #events = new Map<string, { sinceMs: Millis; lines: number; leftOut: number }>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  warn(elapsedMs: Millis, message: string, fields: FieldsAt<'warn'>): void {
    const { event } = fields;
    let counter = this.#events.get(event);
    if (counter === undefined) {
      counter = { sinceMs: elapsedMs, lines: 0, leftOut: 0 };
      this.#events.set(event, counter);
    }
    if (elapsedMs - counter.sinceMs >= intervalMs) {
      if (counter.leftOut > 0) {
        const count = counter.leftOut;
        this.#logger.warn(`${count} more lines like the next one were left out.`, { event: 'log.left-out', of: event, count });
      }
      counter.sinceMs = elapsedMs;
      counter.lines = 0;
      counter.leftOut = 0;
    }
    if (counter.lines++ < linesPerInterval) this.#logger.warn(message, fields);
    else counter.leftOut++;
  }
}
