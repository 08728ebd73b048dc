/**
 * The end of a session: the request that closes it, and what later calls fail with.
 *
 * Requests before the closing one are answered first, so each answer extends its time. If the
 * server answers nothing for as long as the session's time-out, the client closes the connection;
 * the session then expires by itself, as it gets no more pings.
 */
import { ErrorCode, type Millis, OpCode } from '@tskeeper/protocol';
import { RequestFailure } from '../keeper-error.ts';
import { type CnxnLimit, GraceDeadline } from './grace-deadline.ts';
import type { NegotiatedSession } from './negotiated-session.ts';
import type { Outbox } from './outbox.ts';
import type { Request } from './request.ts';

/**
 * Why a client has ended.
 *
 * - `closed`: `close` was called.
 * - `expired`: the ensemble has expired the session, and its ephemerals are gone.
 * - `authFailed`: a server has rejected an identity.
 * - `moved`: the client has left the session to another client of it (`yieldSession`); the session
 *   continues there.
 */
export type EndReason = 'closed' | 'expired' | 'authFailed' | 'moved';

export class SessionEnd implements CnxnLimit {
  readonly #session: NegotiatedSession;
  readonly #outbox: Outbox<Request>;
  /** Of the request that closes the session; undefined until it is written. */
  #closeXid: number | undefined;
  /** While closing: when the next answer is due at the latest. */
  readonly #deadline = new GraceDeadline();
  #reason: EndReason | undefined;
  /** Why the session was closed, if the program did not close it. */
  #closeReason: string | undefined;

  constructor(session: NegotiatedSession, outbox: Outbox<Request>) {
    this.#session = session;
    this.#outbox = outbox;
  }

  get reason(): EndReason | undefined {
    return this.#reason;
  }

  /** Asks the server to close the session. */
  requestClose(nowMs: Millis): void {
    this.#deadline.set(nowMs + this.#session.effectiveTimeoutMs);
    this.#closeXid = this.#outbox.nextXid();
    this.#outbox.writeRequest(this.#closeXid, OpCode.closeSession);
  }

  isCloseReply(xid: number): boolean {
    return xid === this.#closeXid;
  }

  /** The server has answered a request. */
  requestAnswered(nowMs: Millis): void {
    if (this.#closeXid !== undefined) this.#deadline.set(nowMs + this.#session.effectiveTimeoutMs);
  }

  // --- The limit

  get deadlineMs(): Millis {
    return this.#deadline.dueMs;
  }

  isDue(nowMs: Millis): boolean {
    return this.#deadline.isDue(nowMs);
  }

  maybeExtend(nowMs: Millis): boolean {
    return this.#deadline.maybeExtend(nowMs);
  }

  get overdueReason(): string {
    return `closing the session timed out after ${this.#session.effectiveTimeoutMs} ms without an answer`;
  }

  // --- After the end

  ended(reason: EndReason, closeReason: string | undefined): void {
    this.#reason = reason;
    this.#closeReason = closeReason;
  }

  /** What a request after the end fails with, or at the end, for this reason. */
  failure(reason?: string): RequestFailure {
    switch (this.#reason) {
      case 'authFailed':
        return new RequestFailure(ErrorCode.AuthFailed, 'notSent', reason ?? 'the credentials of this client were rejected; connect again');
      case 'moved':
        return new RequestFailure(
          ErrorCode.SessionMoved,
          'notSent',
          reason ?? 'another client uses the session of this client; connect again',
        );
      case 'expired':
        return new RequestFailure(ErrorCode.SessionExpired, 'notSent', reason ?? 'the session of this client has expired; connect again');
      default:
        return new RequestFailure(
          ErrorCode.SessionExpired,
          'notSent',
          reason ?? `this client was closed${this.#closeReason === undefined ? '' : `: ${this.#closeReason}`}`,
        );
    }
  }
}
