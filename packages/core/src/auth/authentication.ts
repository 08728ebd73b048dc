/**
 * Who a client says it is. Credentials are judged at once and answered ahead of whatever waits: they concern the connection, not the tree.
 * What came before them keeps the identities it came with.
 */
import { ErrorCode, type Millis, OpCode, ProtocolError, type Reader, readAuthRequest, readSaslRequest } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { Answers } from '../request/answer.ts';
import type { AuthOutcome, AuthRegistry } from './auth-provider.ts';
import type { Identity } from './identity.ts';

export class Authentication {
  readonly #registry: AuthRegistry;
  readonly #enforcedSchemes: readonly string[];
  readonly #cnxns: CnxnTable;
  readonly #answers: Answers;
  readonly #observer: Observer;

  /** @param enforcedSchemes see `CoreOptions.enforcedAuthSchemes`. */
  constructor(registry: AuthRegistry, enforcedSchemes: readonly string[], cnxns: CnxnTable, answers: Answers, observer: Observer) {
    this.#registry = registry;
    this.#enforcedSchemes = enforcedSchemes;
    this.#cnxns = cnxns;
    this.#answers = answers;
    this.#observer = observer;
  }

  /** Takes an auth or sasl request. The connection may be parked or closed when this returns. */
  request(cnxn: Cnxn, opCode: number, xid: number, reader: Reader, now: Now): void {
    try {
      if (opCode === OpCode.sasl) {
        readSaslRequest(reader);
        // No mechanism is set up: an empty token, which a client takes as the end of the exchange.
        this.#answerSasl(cnxn, xid, null, now);
        return;
      }
      const { scheme, auth } = readAuthRequest(reader);
      const provider = scheme === null ? undefined : this.#registry.get(scheme);
      const outcome = provider?.authenticate(auth === null ? null : Buffer.from(auth), cnxn.context) ?? { kind: 'refused' };
      if (outcome.kind === 'later') {
        cnxn.state = 'parked';
        cnxn.parkedXid = xid;
        return;
      }
      this.#decided(cnxn, scheme ?? '', xid, outcome, now.elapsedMs, now);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cnxns.close(cnxn, 'malformed request');
    }
  }

  /** The outcome of a parked connection's authentication has come: it is open again, or closed. */
  unpark(cnxn: Cnxn, scheme: string, outcome: Exclude<AuthOutcome, { kind: 'later' }>, now: Now): void {
    cnxn.state = 'open';
    this.#decided(cnxn, scheme, cnxn.parkedXid, outcome, now.elapsedMs, now);
  }

  /** Whether clients with these identities are served at all. */
  mayWork(identities: readonly Identity[]): boolean {
    const schemes = this.#enforcedSchemes;
    return schemes.length === 0 || identities.some(({ scheme }) => schemes.includes(scheme));
  }

  /** Turns away a request of a client that has not said who it is. */
  refuse(cnxn: Cnxn, opCode: number, xid: number, now: Now): void {
    const error = ErrorCode.SessionClosedRequireSaslAuth;
    this.#observer.refused(cnxn.id, opCode, error);
    this.#answers.header(cnxn, opCode, xid, 0, error, now.elapsedMs, now.elapsedMs, false);
    this.#cnxns.close(cnxn, 'authentication failed');
  }

  #decided(cnxn: Cnxn, scheme: string, xid: number, outcome: Exclude<AuthOutcome, { kind: 'later' }>, arrivedMs: Millis, now: Now): void {
    switch (outcome.kind) {
      case 'done': {
        const added = outcome.identities.filter((one) => !cnxn.identities.some((had) => had.scheme === one.scheme && had.id === one.id));
        if (added.length > 0) cnxn.identities = [...cnxn.identities, ...added];
        for (const { id } of outcome.identities) this.#observer.authenticated(cnxn.id, scheme, id, true);
        this.#answers.header(cnxn, OpCode.auth, xid, 0, ErrorCode.Ok, arrivedMs, now.elapsedMs, false);
        return;
      }
      case 'continue':
        this.#answerSasl(cnxn, xid, outcome.reply, now);
        return;
      case 'refused':
        this.#observer.authenticated(cnxn.id, scheme, '', false);
        this.#answers.header(cnxn, OpCode.auth, xid, 0, ErrorCode.AuthFailed, arrivedMs, now.elapsedMs, false);
        this.#cnxns.close(cnxn, 'authentication failed');
        return;
      default:
        outcome satisfies never;
    }
  }

  #answerSasl(cnxn: Cnxn, xid: number, token: Buffer | null, now: Now): void {
    const writer = this.#answers.begin(cnxn, xid, 0, ErrorCode.Ok);
    writer.buffer(token);
    this.#answers.end(cnxn, writer, OpCode.sasl, xid, 0, ErrorCode.Ok, now.elapsedMs, now.elapsedMs, false);
  }
}
