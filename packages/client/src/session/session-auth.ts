/**
 * The identities of a session: credentials, which are sent again on each connection, and the SASL
 * exchange, which precedes them.
 *
 * A server answers credentials in the order in which it received them. The first answer settles the
 * call that added them; after a reconnect the same credentials are answered again. A rejection ends
 * the session in both cases: a session meant for an identity must not continue without it.
 *
 * This class matches answers to what was sent, and reports to callers. The session machine decides
 * what an answer means for the session.
 */
import { ErrorCode, type Millis, OpCode, operations, type Reader, writeAuthRequest, Xid } from '@tskeeper/protocol';
import type { AuthCall } from '../auth/credentials.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { ServerAddress } from '../transport.ts';
import { Fifo } from '../fifo.ts';
import type { NegotiatedSession } from './negotiated-session.ts';
import type { Outbox } from './outbox.ts';
import type { Request } from './request.ts';

export interface SaslOutput {
  /**
   * Start a SASL exchange for this connection; then call `saslToken` or `saslFailed`, unless the
   * connection ends first.
   */
  startSasl(server: ServerAddress): void;
  /**
   * The server's answer to the last token; null: accepted without a token. The receiver owns the
   * bytes. Then call `saslToken` or `saslFailed`.
   */
  continueSasl(challenge: Buffer | null): void;
}

export interface AuthOutput {
  authenticated(call: AuthCall): void;
  authFailed(call: AuthCall, refusal: RequestFailure): void;
}

export class SessionAuth {
  readonly #session: NegotiatedSession;
  readonly #outbox: Outbox<Request>;
  readonly #output: AuthOutput;
  readonly #saslOutput: SaslOutput;

  /** Sent to every server, in this order. */
  readonly #credentials: AuthCall[];
  /** Credentials without a first answer: their callers wait. */
  readonly #callsWaiting: Set<AuthCall>;
  /** Sent on this connection and not answered. */
  readonly #pending = new Fifo<AuthCall>();
  /** Number of unanswered identities that were sent again when the connection was made. */
  #restoresUnanswered = 0;

  /** When the SASL exchange must be complete. */
  #saslDeadlineMs: Millis = 0;
  /** xid of the unanswered SASL token; 0 while a token is being created. */
  #saslXid = 0;

  constructor(calls: readonly AuthCall[], session: NegotiatedSession, outbox: Outbox<Request>, output: AuthOutput, saslOutput: SaslOutput) {
    this.#session = session;
    this.#outbox = outbox;
    this.#output = output;
    this.#saslOutput = saslOutput;
    this.#credentials = [...calls];
    this.#callsWaiting = new Set(calls);
  }

  // --- Credentials

  /** Some of the identities sent again are not answered. */
  get isRestoring(): boolean {
    return this.#restoresUnanswered > 0;
  }

  /** Adds credentials, and sends them if there is a connection for it. */
  add(call: AuthCall, isConnected: boolean): void {
    this.#credentials.push(call);
    this.#callsWaiting.add(call);
    if (isConnected) this.#write(call);
  }

  /** Sends all credentials on a new connection. */
  restore(): void {
    for (const call of this.#credentials) this.#write(call);
    this.#restoresUnanswered = this.#credentials.length;
  }

  #write(call: AuthCall): void {
    this.#outbox.writeRequest(Xid.auth, OpCode.auth, (writer) => writeAuthRequest(writer, { type: 0, ...call.credentials }));
    this.#pending.push(call);
  }

  /** An answer has arrived. Returns the call that it is for; undefined: none was sent. */
  answered(): AuthCall | undefined {
    const call = this.#pending.shift();
    if (call !== undefined && this.#restoresUnanswered > 0) this.#restoresUnanswered--;
    return call;
  }

  accepted(call: AuthCall): void {
    if (this.#callsWaiting.delete(call)) this.#output.authenticated(call);
  }

  rejected(call: AuthCall, reason: string): void {
    this.#callsWaiting.delete(call);
    this.#output.authFailed(call, new RequestFailure(ErrorCode.AuthFailed, 'refused', reason));
  }

  // --- SASL

  get saslDeadlineMs(): Millis {
    return this.#saslDeadlineMs;
  }

  /** A token was sent; otherwise one is being created. */
  get isSaslReplyDue(): boolean {
    return this.#saslXid !== 0;
  }

  startSasl(server: ServerAddress, nowMs: Millis): void {
    this.#saslDeadlineMs = nowMs + this.#session.effectiveTimeoutMs;
    this.#saslOutput.startSasl(server);
  }

  writeSaslToken(token: Uint8Array): void {
    this.#saslXid = this.#outbox.nextXid();
    this.#outbox.writeRequest(this.#saslXid, OpCode.sasl, (writer) => operations.sasl.request.write(writer, { token }));
  }

  /** An answer has arrived. Returns whether it is for the last token. */
  saslAnswered(xid: number): boolean {
    if (this.#saslXid === 0 || xid !== this.#saslXid) return false;
    this.#saslXid = 0;
    return true;
  }

  /** The server has accepted the last token: `reader` is at its answer. */
  continueSasl(reader: Reader): void {
    const { token } = operations.sasl.reply.read(reader);
    this.#saslOutput.continueSasl(token === null ? null : Buffer.from(token));
  }

  // --- The end

  /** Callers that wait for an answer get it from the next server. */
  disconnected(): void {
    this.#restoresUnanswered = 0;
    this.#saslXid = 0;
    this.#pending.clear();
  }

  /** The session has ended. */
  failAll(refusal: RequestFailure): void {
    for (const call of this.#callsWaiting) this.#output.authFailed(call, refusal);
    this.#callsWaiting.clear();
  }
}
