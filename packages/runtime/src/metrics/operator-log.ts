/**
 * The `Observer` of a running server: its metrics, and the events that an operator should see in
 * the log.
 */
import type { CloseReason, CnxnContext, CnxnId, Inspector, Notice, RoleEndReason } from '@tskeeper/core';
import { formatHostPort, formatZxid, makeZxid, type Millis, type SessionId, type Sid, type Zxid } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import { RateLimitedLog } from '../ports/rate-limited-log.ts';
import { SessionLog } from '../session-log.ts';
import { ServerMetrics } from './server-metrics.ts';

export class OperatorLog extends ServerMetrics {
  readonly #logger: Logger;
  readonly #rateLimitedLog: RateLimitedLog;
  readonly #sessions: SessionLog;
  readonly #clock: Clock;
  /** "server 1"; undefined for a standalone server. */
  readonly #serverName: string | undefined;
  /** Why it looks for a leader, which leader it has found, and when. */
  #lookingReason: string | undefined;
  #leader: Sid | undefined;
  #epoch = 0;
  #role: ReturnType<Inspector['role']> = 'looking';
  #lookingSinceMs: Millis = 0;
  #electedMs: Millis = 0;

  /** @param sid the sid of a server of an ensemble, whose changes of role are logged. */
  constructor(logger: Logger, clock: Clock, sid?: Sid) {
    super();
    this.#serverName = sid === undefined ? undefined : `server ${sid}`;
    this.#logger = logger;
    this.#rateLimitedLog = new RateLimitedLog(logger);
    this.#sessions = new SessionLog(logger, clock);
    this.#clock = clock;
  }

  override cnxnClosed(cnxn: CnxnId, reason: CloseReason | undefined, context: CnxnContext, session: SessionId): void {
    super.cnxnClosed(cnxn, reason, context, session);
    this.#sessions.disconnected(session, context, reason);
  }

  override authenticationRefused(cnxn: CnxnId, scheme: string, reason: string, context: CnxnContext): void {
    super.authenticationRefused(cnxn, scheme, reason, context);
    const { remoteAddress: host, remotePort: port } = context;
    const address = formatHostPort({ host, port });
    this.#rateLimitedLog.warn(this.#clock.now().elapsedMs, `${address} could not authenticate with the scheme ${scheme}: ${reason}.`, {
      event: 'auth.refused',
      address,
      scheme,
      reason,
    });
  }

  override sessionAccepted(session: SessionId, timeoutMs: Millis, context: CnxnContext, isNew: boolean): void {
    super.sessionAccepted(session, timeoutMs, context, isNew);
    this.#sessions.accepted(session, timeoutMs, context, isNew);
  }

  override sessionRevalidated(session: SessionId, accepted: boolean, context: CnxnContext): void {
    super.sessionRevalidated(session, accepted, context);
    if (!accepted) this.#sessions.refused(session, context);
  }

  override sessionClosed(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined): void {
    super.sessionClosed(session, expired, timeoutMs, context);
    const decides = this.#role === 'standalone' || this.#role === 'leader';
    this.#sessions.ended(session, expired, timeoutMs, context, decides);
  }

  override localSessionClosed(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined): void {
    super.localSessionClosed(session, expired, timeoutMs, context);
    this.#sessions.ended(session, expired, timeoutMs, context, true);
  }

  override sessionUpgraded(session: SessionId, timeoutMs: Millis): void {
    super.sessionUpgraded(session, timeoutMs);
    this.#sessions.upgraded(session, timeoutMs);
  }

  override ephemeralRefused(session: SessionId): void {
    super.ephemeralRefused(session);
    this.#sessions.ephemeralRefused(session);
  }

  /** The server closes: logs the numbers of lines left out. */
  close(): void {
    this.#sessions.close();
  }

  override roleEnded(reason: RoleEndReason, text: string): void {
    super.roleEnded(reason, text);
    this.#lookingReason = text;
  }

  override elected(leader: Sid, lookedMs: Millis): void {
    super.elected(leader, lookedMs);
    this.#leader = leader;
    this.#electedMs = this.#clock.now().elapsedMs;
    const elected = `server ${leader}`;
    const role = elected === this.#serverName ? 'leading' : `following ${elected}`;
    this.#logger.info(`election finished in ${Math.round(lookedMs)} ms: ${role}`, {
      event: 'leader.elected',
      leader,
      durationMs: Math.round(lookedMs),
    });
  }

  override leaderAppointed(leader: Sid): void {
    super.leaderAppointed(leader);
    this.#leader = leader;
    this.#electedMs = this.#clock.now().elapsedMs;
  }

  override epochStarted(epoch: number, historyEnd: Zxid): void {
    super.epochStarted(epoch, historyEnd);
    this.#epoch = epoch;
  }

  override roleChanged(role: ReturnType<Inspector['role']>): void {
    super.roleChanged(role);
    this.#role = role;
    if (this.#serverName === undefined) return;
    const nowMs = this.#clock.now().elapsedMs;
    switch (role) {
      case 'looking':
        this.#logger.info(`${this.#serverName} looks for a leader${this.#lookingReason === undefined ? '' : `: ${this.#lookingReason}`}`, {
          event: 'role.looking',
          reason: this.#lookingReason,
        });
        this.#lookingReason = undefined;
        this.#lookingSinceMs = nowMs;
        return;
      case 'leader':
      case 'follower':
      case 'observer': {
        const what = role === 'leader' ? 'leads' : `${role === 'follower' ? 'follows' : 'observes'} server ${this.#leader}`;
        const from = formatZxid(makeZxid(this.#epoch, 0));
        this.#logger.info(`${this.#serverName} ${what} in epoch ${this.#epoch}, from zxid ${from}`, {
          event: 'role.serving',
          role,
          leader: this.#leader,
          epoch: this.#epoch,
          zxid: from,
        });
        this.servingStarted(role, nowMs - this.#lookingSinceMs, nowMs - this.#electedMs);
        return;
      }
      case 'read-only':
        this.#logger.warn(
          `${this.#serverName} has no leader for ${Math.round(nowMs - this.#lookingSinceMs)} ms: it serves stale reads to read-only clients`,
          { event: 'role.read-only', durationMs: Math.round(nowMs - this.#lookingSinceMs) },
        );
        return;
      case 'standalone':
        return;
      default:
        role satisfies never;
    }
  }

  override readOnlyEnded(): void {
    super.readOnlyEnded();
    this.#role = 'looking';
    this.#logger.info(`${this.#serverName} leaves read-only mode, and closes the connections of its clients`, {
      event: 'role.read-only-ended',
    });
  }

  override notice(notice: Notice): void {
    super.notice(notice);
    switch (notice.kind) {
      case 'quotaSoftLimit':
        this.#rateLimitedLog.warn(
          this.#clock.now().elapsedMs,
          `${notice.path} is over its quota: ${notice.what} ${notice.usage}, limit ${notice.limit}.`,
          { event: 'quota.exceeded', path: notice.path, what: notice.what, count: notice.usage, limit: notice.limit },
        );
        return;
      case 'digestMismatch':
        this.#rateLimitedLog.warn(
          this.#clock.now().elapsedMs,
          `The tree at ${formatZxid(notice.zxid)} does not have the digest that its txn was logged with: this server's data differs from what was logged. Compare it with a backup or, by the four letter word hash, with other servers.`,
          { event: 'digest.mismatch', zxid: formatZxid(notice.zxid) },
        );
        return;
      case 'containerSwept':
        this.#logger.debug(`deleted ${notice.path}, an empty container or an expired TTL znode`, {
          event: 'container.deleted',
          path: notice.path,
        });
        return;
      case 'transferBegan': {
        const { target, byPriority } = notice;
        const why = byPriority ? 'it has a higher priority' : 'on request';
        this.#logger.info(`gives the lead to server ${target}, ${why}: writes wait until it has everything`, {
          event: 'leader.transfer-began',
          leader: target,
          reason: byPriority ? 'priority' : 'request',
        });
        return;
      }
      case 'transferEnded': {
        const { target, outcome } = notice;
        const durationMs = Math.round(notice.heldMs);
        if (outcome === 'handed over') {
          this.#logger.info(`server ${target} leads next; writes waited here for ${durationMs} ms`, {
            event: 'leader.transferred',
            leader: target,
            durationMs,
          });
          return;
        }
        const reason =
          outcome === 'target lost'
            ? 'it has disconnected'
            : 'it has not acknowledged everything within half of syncLimit; look at its disk and its load';
        this.#logger.warn(
          `does not give the lead to server ${target}, and goes on leading: ${reason}. Writes waited for ${durationMs} ms.`,
          {
            event: 'leader.transfer-failed',
            leader: target,
            reason: outcome,
            durationMs,
          },
        );
        return;
      }
      case 'shedBegan':
        this.#logger.info(`closes ${notice.count} of ${notice.cnxnCount} connections on request, so that their clients connect elsewhere`, {
          event: 'cnxn.shed-began',
          count: notice.count,
        });
        return;
      default:
        notice satisfies never;
    }
  }
}
