/**
 * Authenticates clients. Credentials are validated at once and answered before waiting requests,
 * since they concern the connection, not the tree. Earlier requests keep the identities with which
 * they arrived.
 */
import { ErrorCode, type Millis, OpCode, ProtocolError, type Reader, readAuthRequest, readSaslRequest } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { CloseReason } from '../client-output.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { AuthOutcome, AuthRegistry, AuthTicket, AuthResult } from '../auth/auth-provider.ts';
import type { Identities, IdentityLimits } from '../auth/identities.ts';
import type { SaslMechanism } from '../auth/sasl-mechanism.ts';

/** An authentication that waits for its result. */
interface PendingAuth {
  readonly cnxn: Cnxn;
  readonly opCode: number;
  readonly xid: number;
  readonly scheme: string;
  readonly arrivedMs: Millis;
}

export class Authentication {
  readonly #registry: AuthRegistry;
  readonly #sasl: SaslMechanism | undefined;
  readonly #requiresSasl: boolean;
  readonly #allowsFailedSasl: boolean;
  readonly #enforcedSchemes: readonly string[];
  readonly #identityLimits: IdentityLimits;
  readonly #cnxns: CnxnTable;
  readonly #replyWriter: ReplyWriter;
  readonly #observer: Observer;
  /** Weak: a provider may never decide. */
  readonly #pending = new WeakMap<AuthTicket, PendingAuth>();

  constructor(
    registry: AuthRegistry,
    sasl: SaslMechanism | undefined,
    options: CoreOptions,
    cnxns: CnxnTable,
    answers: ReplyWriter,
    observer: Observer,
  ) {
    this.#registry = registry;
    this.#sasl = sasl;
    this.#enforcedSchemes = options.enforcedAuthSchemes;
    this.#requiresSasl = this.#enforcedSchemes.includes('sasl');
    this.#allowsFailedSasl = options.allowsFailedSasl && !this.#requiresSasl;
    // A learner forwards a client's identities with each request, and a leader accepts no more than
    // this.
    const bytes = Math.min(options.identityBytesPerCnxnMax, options.juteMaxBuffer + options.juteMaxBufferExtra);
    this.#identityLimits = { count: options.identitiesPerCnxnMax, bytes };
    this.#cnxns = cnxns;
    this.#replyWriter = answers;
    this.#observer = observer;
  }

  /** Handles an auth or sasl request. Afterwards the connection may be parked or closed. */
  authenticate(cnxn: Cnxn, opCode: number, xid: number, reader: Reader, now: Now): void {
    let scheme: string;
    let credentials: Buffer | null;
    try {
      if (opCode === OpCode.sasl) {
        scheme = 'sasl';
        credentials = copyCredentials(readSaslRequest(reader).token);
      } else {
        const request = readAuthRequest(reader);
        scheme = request.scheme ?? '';
        credentials = copyCredentials(request.auth);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cnxns.close(cnxn, 'malformed request');
      return;
    }
    const pending = { cnxn, opCode, xid, scheme, arrivedMs: now.elapsedMs };
    if (opCode === OpCode.sasl && cnxn.sasl === 'ended') {
      // ZooKeeper answers forever a client that does not notice the end, such as kazoo.
      this.#refuse(pending, 'authentication failed', 'it goes on after the end of its exchange', now);
      return;
    }
    const ticket: AuthTicket = { scheme };
    const outcome =
      opCode === OpCode.sasl ? this.#saslOutcome(cnxn, credentials, ticket) : this.#outcome(cnxn, scheme, credentials, ticket);
    if (outcome.kind === 'later') {
      cnxn.state = 'parked';
      this.#pending.set(ticket, pending);
    } else {
      this.#applyResult(pending, outcome, now);
    }
  }

  #outcome(cnxn: Cnxn, scheme: string, credentials: Buffer | null, ticket: AuthTicket): AuthOutcome {
    const provider = this.#registry.get(scheme);
    if (provider === undefined) return { kind: 'refused', reason: 'this server does not have the scheme' };
    return provider.authenticate(credentials, cnxn.context, ticket);
  }

  #saslOutcome(cnxn: Cnxn, token: Buffer | null, ticket: AuthTicket): AuthOutcome {
    // Without a mechanism each token is answered with an empty one, and the client gets no identity.
    if (this.#sasl === undefined) return { kind: 'done', identities: [] };
    const exchange = cnxn.sasl === undefined || cnxn.sasl === 'ended' ? this.#sasl.start(cnxn.context) : cnxn.sasl;
    cnxn.sasl = exchange;
    return exchange.next(token ?? noBytes, ticket);
  }

  /**
   * Applies a result decided elsewhere. Returns the connection that is served again; undefined if
   * it is closed, was closed by the result, or belonged to an earlier role of this server.
   */
  complete(ticket: AuthTicket, result: AuthResult, now: Now): Cnxn | undefined {
    const pending = this.#pending.get(ticket);
    if (pending === undefined) return undefined;
    this.#pending.delete(ticket);
    const { cnxn } = pending;
    if (cnxn.isClosed) return undefined;
    cnxn.state = 'open';
    this.#applyResult(pending, result, now);
    return cnxn.isClosed ? undefined : cnxn;
  }

  /** Whether clients with these identities may send requests. */
  isAuthenticated(identities: Identities): boolean {
    const schemes = this.#enforcedSchemes;
    return schemes.length === 0 || identities.toList().some(({ scheme }) => schemes.includes(scheme));
  }

  /** Refuses a request of a client that is not authenticated as required. */
  rejectUnauthenticated(cnxn: Cnxn, opCode: number, xid: number, now: Now): void {
    const error = ErrorCode.SessionClosedRequireSaslAuth;
    this.#observer.requestRejected(cnxn.id, opCode, error);
    this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, 0, error, now.elapsedMs, now.elapsedMs, false);
    this.#cnxns.close(cnxn, 'authentication failed');
  }

  #applyResult(pending: PendingAuth, result: AuthResult, now: Now): void {
    const { cnxn, scheme, opCode } = pending;
    if (opCode === OpCode.sasl && this.#sasl !== undefined && result.kind !== 'continue') cnxn.sasl = 'ended';
    switch (result.kind) {
      case 'done': {
        const identities = cnxn.identities.with(result.identities, this.#identityLimits);
        if (identities === undefined) {
          this.#refuse(pending, 'too many identities', 'the connection has too many identities', now);
          return;
        }
        cnxn.identities = identities;
        for (const { id } of result.identities) this.#observer.authenticated(cnxn.id, scheme, id);
        this.#reply(pending, ErrorCode.Ok, result.reply ?? null, now);
        return;
      }
      case 'continue':
        this.#reply(pending, ErrorCode.Ok, result.reply, now);
        return;
      case 'elsewhere':
        this.#observer.authenticationRefused(cnxn.id, scheme, result.reason, cnxn.context);
        this.#cnxns.close(cnxn, 'meant for another ensemble');
        return;
      case 'refused':
        this.#rejectCredentials(pending, result.reason ?? 'the credentials are wrong', now);
        return;
      default:
        result satisfies never;
    }
  }

  #rejectCredentials(pending: PendingAuth, reason: string, now: Now): void {
    const { cnxn, scheme, opCode } = pending;
    if (opCode !== OpCode.sasl || !this.#allowsFailedSasl) {
      this.#refuse(pending, 'authentication failed', reason, now);
      return;
    }
    this.#observer.authenticationRefused(cnxn.id, scheme, reason, cnxn.context);
    this.#reply(pending, ErrorCode.Ok, null, now);
  }

  /**
   * A client that receives AuthFailed gives up. If its connection were only closed, it would
   * reconnect and send the same credentials again, forever.
   */
  #refuse(pending: PendingAuth, closeReason: CloseReason, reason: string, now: Now): void {
    const { cnxn, scheme, opCode } = pending;
    this.#observer.authenticationRefused(cnxn.id, scheme, reason, cnxn.context);
    const error = opCode === OpCode.sasl && this.#requiresSasl ? ErrorCode.SessionClosedRequireSaslAuth : ErrorCode.AuthFailed;
    this.#reply(pending, error, null, now);
    this.#cnxns.close(cnxn, closeReason);
  }

  #reply(pending: PendingAuth, error: number, token: Buffer | null, now: Now): void {
    const { cnxn, opCode, xid, arrivedMs } = pending;
    if (opCode === OpCode.sasl) this.#replySasl(pending, error, token, now);
    else this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, 0, error, arrivedMs, now.elapsedMs, false);
  }

  #replySasl({ cnxn, opCode, xid, arrivedMs }: PendingAuth, error: number, token: Buffer | null, now: Now): void {
    const writer = this.#replyWriter.begin(cnxn, xid, 0, error);
    writer.buffer(token);
    this.#replyWriter.end(cnxn, writer, opCode, xid, 0, error, arrivedMs, now.elapsedMs, false);
  }
}

const noBytes = Buffer.alloc(0);

/** Credentials outlive their frame if the result arrives later. */
function copyCredentials(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes);
}
