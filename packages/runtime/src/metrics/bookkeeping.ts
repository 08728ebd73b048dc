/** Metrics, and what an operator should read in the log besides: the `Observer` of a server at work. */
import type { Inspect, Notice } from '@tskeeper/core';
import { formatZxid, makeZxid, type Millis, type Sid, type Zxid } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import { LimitedLog } from '../ports/limited-log.ts';
import { ServerMetrics } from './server-metrics.ts';

export class Bookkeeping extends ServerMetrics {
  readonly #logger: Logger;
  readonly #limited: LimitedLog;
  readonly #clock: Clock;
  /** "server 1"; undefined for one that stands alone. */
  readonly #self: string | undefined;
  /** Why it looks for a leader, whom it has found, and when. */
  #reason = '';
  #leader: Sid | undefined;
  #epoch = 0;
  #lookingSinceMs: Millis = 0;
  #electedMs: Millis = 0;

  /** @param sid of a server of an ensemble, whose changes of role are logged. */
  constructor(logger: Logger, clock: Clock, sid?: Sid) {
    super();
    this.#self = sid === undefined ? undefined : `server ${sid}`;
    this.#logger = logger;
    this.#limited = new LimitedLog(logger);
    this.#clock = clock;
  }

  override roleEnded(reason: string): void {
    super.roleEnded(reason);
    this.#reason = `: ${reason}`;
  }

  override elected(leader: Sid, lookedMs: Millis): void {
    super.elected(leader, lookedMs);
    this.#leader = leader;
    this.#electedMs = this.#clock.now().elapsedMs;
    const elected = `server ${leader}`;
    const goesOn = elected === this.#self ? 'which waits for a quorum to follow it' : `which ${this.#self} goes to`;
    this.#logger.info(`the leader is to be ${elected}, ${goesOn}; it was found in ${Math.round(lookedMs)} ms`);
  }

  override epochBegun(epoch: number, historyEnd: Zxid): void {
    super.epochBegun(epoch, historyEnd);
    this.#epoch = epoch;
  }

  override roleChanged(role: ReturnType<Inspect['role']>): void {
    super.roleChanged(role);
    if (this.#self === undefined) return;
    const nowMs = this.#clock.now().elapsedMs;
    switch (role) {
      case 'looking':
        this.#logger.info(`${this.#self} looks for a leader${this.#reason}`);
        this.#reason = '';
        this.#lookingSinceMs = nowMs;
        return;
      case 'leader':
      case 'follower':
      case 'observer': {
        const what = role === 'leader' ? 'leads' : `${role === 'follower' ? 'follows' : 'observes'} server ${this.#leader}`;
        const from = formatZxid(makeZxid(this.#epoch, 0));
        this.#logger.info(`${this.#self} ${what} in epoch ${this.#epoch}, from zxid ${from}`);
        this.served(role, nowMs - this.#lookingSinceMs, nowMs - this.#electedMs);
        return;
      }
      case 'standalone':
      case 'read-only':
        return;
      default:
        role satisfies never;
    }
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
