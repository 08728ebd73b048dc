/**
 * Session events in the log. A hundred thousand clients that reconnect at once must not cause as
 * many lines, so each event may have some lines a second; the rest is counted, and one line after
 * that second gives the number.
 */
import type { CloseReason, CnxnContext } from '@tskeeper/core';
import { formatHostPort, formatSessionId, type Millis, type SessionId } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from './clock.ts';
import { type LogEvent, logEvents } from './log-events.ts';
import type { Logger } from './logger.ts';

/** Lines of one event per second. */
const linesPerSecond = 50;
const intervalMs: Millis = 1000;

type SessionEvent = Extract<LogEvent, `session.${string}`>;

/** The lines of one event in the current second. */
interface Window {
  readonly sinceMs: Millis;
  lines: number;
  leftOut: number;
  /** Set from the first line that is left out to the end of the second. */
  timer: TimerHandle | undefined;
}

export class SessionLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #windows = new Map<SessionEvent, Window>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** A handshake was accepted. ZooKeeper's "Established session". */
  accepted(session: SessionId, timeoutMs: Millis, context: CnxnContext, isNew: boolean): void {
    const event = isNew ? 'session.opened' : 'session.resumed';
    if (!this.#mayLog(event)) return;
    const fields = { session: formatSessionId(session), timeoutMs, address: addressOf(context) };
    const what = isNew ? 'opened' : 'resumed';
    this.#logger.info(`session ${fields.session} ${what} by ${fields.address}, with a time-out of ${timeoutMs} ms`, { event, ...fields });
  }

  /** A local session becomes global. */
  upgraded(session: SessionId, timeoutMs: Millis): void {
    if (!this.#mayLog('session.upgraded')) return;
    const id = formatSessionId(session);
    this.#logger.info(`session ${id}, until now local, becomes global: it creates an ephemeral`, {
      event: 'session.upgraded',
      session: id,
      timeoutMs,
    });
  }

  ephemeralRefused(session: SessionId): void {
    if (!this.#mayLog('session.ephemeral-refused')) return;
    const id = formatSessionId(session);
    this.#logger.warn(
      `session ${id} was refused an ephemeral (EphemeralOnLocalSession): it is local, and localSessionsUpgradingEnabled is false. Set it to true on all servers if clients create ephemerals.`,
      { event: 'session.ephemeral-refused', session: id },
    );
  }

  refused(session: SessionId, context: CnxnContext): void {
    if (!this.#mayLog('session.refused')) return;
    const fields = { session: formatSessionId(session), address: addressOf(context) };
    this.#logger.info(
      `session ${fields.session} refused to ${fields.address}: the session has expired or was closed, or its password does not match`,
      { event: 'session.refused', ...fields },
    );
  }

  /**
   * Every server of an ensemble applies the end of every session. It matters at the server of the
   * client and, because an expired session often has no connection, at the server that decides on
   * expiry. All others log it at debug.
   *
   * @param decides whether this server decides when the session expires.
   */
  ended(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined, decides: boolean): void {
    if (context === undefined && !decides) {
      if (!this.#mayLog('session.ended-elsewhere')) return;
      const id = formatSessionId(session);
      const reason = expired ? 'expired' : 'closed';
      this.#logger.debug(`session ${id} ${reason} at another server`, { event: 'session.ended-elsewhere', session: id, reason });
      return;
    }
    const event = expired ? 'session.expired' : 'session.closed';
    if (!this.#mayLog(event)) return;
    const fields = { session: formatSessionId(session), ...(context === undefined ? {} : { address: addressOf(context) }) };
    if (event === 'session.expired') {
      const where = fields.address === undefined ? '' : `; its client ${fields.address} is disconnected`;
      this.#logger.info(`session ${fields.session} expired after its time-out of ${timeoutMs} ms${where}`, { event, ...fields, timeoutMs });
    } else {
      const by = fields.address === undefined ? 'its client' : `its client ${fields.address}`;
      this.#logger.info(`session ${fields.session} closed by ${by}`, { event, ...fields });
    }
  }

  /** A connection is closed; `session` is 0 when it never had one. */
  disconnected(session: SessionId, context: CnxnContext, reason: CloseReason | undefined): void {
    if (session === 0n) return;
    if (reason === 'session moved') {
      if (!this.#mayLog('session.moved')) return;
      const fields = { session: formatSessionId(session), address: addressOf(context) };
      this.#logger.info(`session ${fields.session} moved to another server; its old connection from ${fields.address} is closed`, {
        event: 'session.moved',
        ...fields,
      });
      return;
    }
    if (!this.#mayLog('session.disconnected')) return;
    const id = formatSessionId(session);
    const address = addressOf(context);
    const why = reason ?? 'closed by the other side';
    this.#logger.debug(`the connection of session ${id} from ${address} is closed: ${why}`, {
      event: 'session.disconnected',
      session: id,
      address,
      reason: why,
    });
  }

  /** Logs how many lines were left out in the current second, and cancels its timers. */
  close(): void {
    for (const event of this.#windows.keys()) this.#end(event);
  }

  /**
   * Whether one more line of this event may be logged. Called before a line is composed, because
   * that is the costly part.
   */
  #mayLog(event: SessionEvent): boolean {
    const { elapsedMs } = this.#clock.now();
    let window = this.#windows.get(event);
    if (window === undefined || (window.timer === undefined && elapsedMs - window.sinceMs >= intervalMs)) {
      this.#windows.set(event, (window = { sinceMs: elapsedMs, lines: 0, leftOut: 0, timer: undefined }));
    }
    if (window.lines < linesPerSecond) {
      window.lines++;
      return true;
    }
    window.leftOut++;
    window.timer ??= this.#clock.after(Math.max(0, window.sinceMs + intervalMs - elapsedMs), () => this.#end(event));
    return false;
  }

  #end(event: SessionEvent): void {
    const { leftOut, timer } = this.#windows.get(event)!;
    this.#windows.delete(event);
    if (timer === undefined) return;
    this.#clock.cancel(timer);
    this.#logger[logEvents[event].level](
      `${leftOut} more lines of ${event} were left out: a server logs ${linesPerSecond} of them per second`,
      { event: 'log.left-out', of: event, count: leftOut },
    );
  }
}

function addressOf({ remoteAddress, remotePort }: CnxnContext): string {
  return formatHostPort({ host: remoteAddress, port: remotePort });
}
