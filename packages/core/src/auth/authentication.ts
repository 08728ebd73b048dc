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
import type { Answers } from '../request/answer.ts';
import type { AuthRegistry, AuthTicket, AuthVerdict } from './auth-provider.ts';
import type { Identities, IdentityLimits } from './identities.ts';

/** An authentication that waits for its verdict. */
interface Pending {
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
  readonly #answers: Answers;
  readonly #observer: Observer;
  readonly #pending = new Map<AuthTicket, Pending>();
  #nextTicket: AuthTicket = 1;

  constructor(registry: AuthRegistry, options: CoreOptions, cnxns: CnxnTable, answers: Answers, observer: Observer) {
    this.#registry = registry;
    this.#enforcedSchemes = options.enforcedAuthSchemes;
    // A learner forwards a client's identities with each request, and a leader accepts no more than
    // this.
    const bytes = Math.min(options.identityBytesPerCnxnMax, options.juteMaxBuffer + options.juteMaxBufferExtra);
    this.#identityLimits = { count: options.identitiesPerCnxnMax, bytes };
    this.#cnxns = cnxns;
    this.#answers = answers;
    this.#observer = observer;
  }

  /** Handles an auth or sasl request. Afterwards the connection may be parked or closed. */
  request(cnxn: Cnxn, opCode: number, xid: number, reader: Reader, now: Now): void {
    let scheme: string;
    let credentials: Buffer | null;
    try {
      if (opCode === OpCode.sasl) {
        scheme = 'sasl';
        credentials = copied(readSaslRequest(reader).token);
      } else {
        const request = readAuthRequest(reader);
        scheme = request.scheme ?? '';
        credentials = copied(request.auth);
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
      if (opCode === OpCode.sasl) this.#answerSasl(pending, ErrorCode.Ok, null, now);
      else this.#decide(pending, { kind: 'refused' }, now);
      return;
    }
    const ticket = this.#nextTicket++;
    const outcome = provider.authenticate(credentials, cnxn.context, ticket);
    if (outcome.kind === 'later') {
      cnxn.state = 'parked';
      this.#pending.set(ticket, pending);
    } else {
      this.#decide(pending, outcome, now);
    }
  }

  /**
   * Takes a verdict decided elsewhere. Returns the connection that is served again; undefined if it
   * is closed, or was closed by the verdict.
   */
  decided(ticket: AuthTicket, verdict: AuthVerdict, now: Now): Cnxn | undefined {
    const pending = this.#pending.get(ticket);
    if (pending === undefined) throw new Error(`no authentication waits for ticket ${ticket}: it already has a verdict`);
    this.#pending.delete(ticket);
    const { cnxn } = pending;
    if (cnxn.isClosed) return undefined;
    cnxn.state = 'open';
    this.#decide(pending, verdict, now);
    return cnxn.isClosed ? undefined : cnxn;
  }

  /** Whether clients with these identities may send requests. */
  mayWork(identities: Identities): boolean {
    const schemes = this.#enforcedSchemes;
    return schemes.length === 0 || identities.toList().some(({ scheme }) => schemes.includes(scheme));
  }

  /** Refuses a request of a client that is not authenticated as required. */
  refuse(cnxn: Cnxn, opCode: number, xid: number, now: Now): void {
    const error = ErrorCode.SessionClosedRequireSaslAuth;
    this.#observer.refused(cnxn.id, opCode, error);
    this.#answers.header(cnxn, opCode, xid, 0, error, now.elapsedMs, now.elapsedMs, false);
    this.#cnxns.close(cnxn, 'authentication failed');
  }

  #decide(pending: Pending, verdict: AuthVerdict, now: Now): void {
    const { cnxn, scheme } = pending;
    switch (verdict.kind) {
      case 'done': {
        const identities = cnxn.identities.with(verdict.identities, this.#identityLimits);
        if (identities === undefined) {
          this.#turnAway(pending, 'too many identities', now);
          return;
        }
        cnxn.identities = identities;
        for (const { id } of verdict.identities) this.#observer.authenticated(cnxn.id, scheme, id, true);
        this.#answer(pending, ErrorCode.Ok, verdict.reply ?? null, now);
        return;
      }
      case 'continue':
        this.#answer(pending, ErrorCode.Ok, verdict.reply, now);
        return;
      case 'refused':
        this.#turnAway(pending, 'authentication failed', now);
        return;
      default:
        verdict satisfies never;
    }
  }

  /**
   * A client that receives AuthFailed gives up. If its connection were only closed, it would
   * reconnect and send the same credentials again, for ever.
   */
  #turnAway(pending: Pending, reason: CloseReason, now: Now): void {
    const { cnxn, scheme } = pending;
    this.#observer.authenticated(cnxn.id, scheme, '', false);
    this.#answer(pending, ErrorCode.AuthFailed, null, now);
    this.#cnxns.close(cnxn, reason);
  }

  #answer(pending: Pending, error: number, token: Buffer | null, now: Now): void {
    const { cnxn, opCode, xid, arrivedMs } = pending;
    if (opCode === OpCode.sasl) this.#answerSasl(pending, error, token, now);
    else this.#answers.header(cnxn, opCode, xid, 0, error, arrivedMs, now.elapsedMs, false);
  }

  #answerSasl({ cnxn, opCode, xid, arrivedMs }: Pending, error: number, token: Buffer | null, now: Now): void {
    const writer = this.#answers.begin(cnxn, xid, 0, error);
    writer.buffer(token);
    this.#answers.end(cnxn, writer, opCode, xid, 0, error, arrivedMs, now.elapsedMs, false);
  }
}

/** Credentials outlive their frame if the verdict comes later. */
function copied(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes);
}
