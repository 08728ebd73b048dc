/** Metrics, and what an operator should read in the log besides: the `Observer` of a server at work. */
import type { Notice } from '@tskeeper/core';
import { formatZxid } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import { LimitedLog } from '../ports/limited-log.ts';
import { ServerMetrics } from './server-metrics.ts';

export class Bookkeeping extends ServerMetrics {
  readonly #logger: Logger;
  readonly #limited: LimitedLog;
  readonly #clock: Clock;

  constructor(logger: Logger, clock: Clock) {
    super();
    this.#logger = logger;
    this.#limited = new LimitedLog(logger);
    this.#clock = clock;
  }

  override notice(notice: Notice): void {
    super.notice(notice);
    switch (notice.kind) {
      case 'quotaSoftLimit':
        this.#limited.warn(
          notice.kind,
          this.#clock.now().elapsedMs,
          `${notice.path} is over its quota: ${notice.what} ${notice.usage}, limit ${notice.limit}.`,
        );
        return;
      case 'digestMismatch':
        this.#limited.warn(
          notice.kind,
          this.#clock.now().elapsedMs,
          `The tree at ${formatZxid(notice.zxid)} is not the one its txn was written for: this server's data differs from what was logged. Compare it with a backup, or with other servers by the command hash.`,
        );
        return;
      case 'containerSwept':
        this.#logger.debug(`${notice.path} had no children and no use any more, and is deleted`);
        return;
      default:
        notice satisfies never;
    }
  }
}
