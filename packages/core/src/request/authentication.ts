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
import type { AuthRegistry, AuthTicket, AuthResult } from '../auth/auth-provider.ts';
import type { Identities, IdentityLimits } from '../auth/identities.ts';

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
  readonly #enforcedSchemes: readonly string[];
  readonly #identityLimits: IdentityLimits;
  readonly #cnxns: CnxnTable;
  readonly #replyWriter: ReplyWriter;
  readonly #observer: Observer;
  readonly #pending = new Map<AuthTicket, PendingAuth>();
  #nextTicket: AuthTicket = 1;

  constructor(registry: AuthRegistry, options: CoreOptions, cnxns: CnxnTable, answers: ReplyWriter, observer: Observer) {
    this.#registry = registry;
    this.#enforcedSchemes = options.enforcedAuthSchemes;
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
    // Tokens of an exchange are sent in sasl requests only.
    const provider = opCode === OpCode.auth && scheme === 'sasl' ? undefined : this.#registry.get(scheme);
    if (provider === undefined) {
      // Without a sasl mechanism, an empty token ends the exchange; the client gets no identity
      // from it.
      if (opCode === OpCode.sasl) this.#replySasl(pending, ErrorCode.Ok, null, now);
      else this.#applyResult(pending, { kind: 'refused' }, now);
      return;
    }
    const ticket = this.#nextTicket++;
    const outcome = provider.authenticate(credentials, cnxn.context, ticket);
    if (outcome.kind === 'later') {
      cnxn.state = 'parked';
      this.#pending.set(ticket, pending);
    } else {
      this.#applyResult(pending, outcome, now);
    }
  }

  /**
   * Applies a result decided elsewhere. Returns the connection that is served again; undefined if
   * it is closed, or was closed by the result.
   */
  complete(ticket: AuthTicket, result: AuthResult, now: Now): Cnxn | undefined {
    const pending = this.#pending.get(ticket);
    if (pending === undefined) throw new Error(`no authentication waits for ticket ${ticket}: it already has a result`);
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
    const { cnxn, scheme } = pending;
    switch (result.kind) {
      case 'done': {
        const identities = cnxn.identities.with(result.identities, this.#identityLimits);
        if (identities === undefined) {
          this.#rejectCredentials(pending, 'too many identities', now);
          return;
        }
        cnxn.identities = identities;
        for (const { id } of result.identities) this.#observer.authenticated(cnxn.id, scheme, id, true);
        this.#reply(pending, ErrorCode.Ok, result.reply ?? null, now);
        return;
      }
      case 'continue':
        this.#reply(pending, ErrorCode.Ok, result.reply, now);
        return;
      case 'refused':
        this.#rejectCredentials(pending, 'authentication failed', now);
        return;
      default:
        result satisfies never;
    }
  }

  /**
   * A client that receives AuthFailed gives up. If its connection were only closed, it would
   * reconnect and send the same credentials again, forever.
   */
  #rejectCredentials(pending: PendingAuth, reason: CloseReason, now: Now): void {
    const { cnxn, scheme } = pending;
    this.#observer.authenticated(cnxn.id, scheme, '', false);
    this.#reply(pending, ErrorCode.AuthFailed, null, now);
    this.#cnxns.close(cnxn, reason);
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

/** Credentials outlive their frame if the result arrives later. */
function copyCredentials(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes);
}
