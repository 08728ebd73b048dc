/**
 * Traces each txn of the log to the request that it came from. A txn names only its session and its
 * xid, and several processes that share a session may use one xid twice; request-of-txn.ts decides
 * between them, with the evidence that is collected here.
 */
import { ErrorCode, type Millis, type SessionId, sessionIdOf, type TxnLogEntry, type Zxid } from '@tskeeper/protocol';
import type { ReferenceModel } from '../model/reference-model.ts';
import type { CnxnRecord, Recording, Request } from '../record/recording.ts';
import { isAnsweredOutOfOrder, isWrite, requestKey } from '../record/request-kinds.ts';
import { unansweredThrottledOps } from '../record/unanswered-throttled-ops.ts';
import type { Admissions } from './admissions.ts';
import { answerOf } from './answer.ts';
import type { DoubtfulTxn, Tracing } from './replay-result.ts';
import { alternatives, type Candidate, type ConnectionWrites, canContinueWith, type NextTxn, requestOfTxn } from './request-of-txn.ts';

export type LogEntry = Recording['log'][number];

export interface TracedRequest extends Candidate {
  readonly cnxn: CnxnRecord;
  /** Txns that came from it. */
  readonly zxids: Zxid[];
}

/**
 * Maximum number of later txns of a session that are used to tell which of several requests a txn
 * came from.
 */
const lookAheadMax = 64;

export class RequestTracer {
  readonly #tracing: Tracing;
  readonly #model: ReferenceModel;
  readonly #admissions: Admissions;
  /** By session and xid; more than one if processes share a session. */
  readonly #requests = new Map<string, TracedRequest[]>();
  /** By zxid, the next txn of the same session. */
  readonly #nextOfSession: ReadonlyMap<Zxid, LogEntry>;
  /** By session, the connections that requested it. */
  readonly #cnxnsBySessionAsked: ReadonlyMap<SessionId, readonly CnxnRecord[]>;
  readonly doubtful: DoubtfulTxn[] = [];

  constructor(recording: Recording, cnxns: readonly CnxnRecord[], tracing: Tracing, model: ReferenceModel, admissions: Admissions) {
    this.#tracing = tracing;
    this.#model = model;
    this.#admissions = admissions;
    this.#cnxnsBySessionAsked = cnxnsBySessionAsked(recording);
    this.#nextOfSession = nextOfSession(recording);
    for (const cnxn of cnxns) this.#addWrites(cnxn, unansweredThrottledOps(recording, cnxn));
  }

  #addWrites(cnxn: CnxnRecord, throttledOps: readonly number[]): void {
    const movedMs = this.#movedMs(cnxn);
    const mayHaveMoved = movedMs < Infinity || this.#mayBeTakenOver(cnxn);
    const cnxnWrites: ConnectionWrites = { writes: [], tracedIndex: 0, tracedZxid: 0, throttledOps };
    let shownZxid = 0;
    for (const request of cnxn.requests) {
      const before = shownZxid;
      if (request.reply !== undefined && !isAnsweredOutOfOrder(request)) shownZxid = Math.max(shownZxid, request.reply.zxid);
      if (!isWrite(request)) continue;
      const index = cnxnWrites.writes.push(request);
      this.#add({ request, cnxn, movedMs, mayHaveMoved, cnxnWrites, index, shownZxid: before, zxids: [] });
    }
  }

  #add(found: TracedRequest): void {
    const key = requestKey(found.request.session, found.request.xid);
    const known = this.#requests.get(key);
    if (known === undefined) this.#requests.set(key, [found]);
    else known.push(found);
  }

  /** The request of a txn; undefined if no client sent one. Txns must be traced in their order. */
  trace({ atMs, logged }: LogEntry): TracedRequest | undefined {
    const { cxid, zxid } = logged.header;
    const candidates = this.#requests.get(requestKey(sessionOf(logged), cxid)) ?? [];
    let found = candidates.length > 1 ? this.#requestOfTxn(candidates, logged, atMs) : candidates[0];
    if (found !== undefined && candidates.length > 1) {
      const others = alternatives(candidates, found, logged, atMs);
      if (others.length > 0) this.doubtful.push({ zxid, others: others.map(({ cnxn }) => cnxn.key) });
      const given = this.#tracing.get(zxid);
      found = others.find(({ cnxn }) => cnxn.key === given) ?? found;
    }
    if (found !== undefined) {
      found.zxids.push(zxid);
      const { cnxnWrites, index } = found;
      if (index > cnxnWrites.tracedIndex) [cnxnWrites.tracedIndex, cnxnWrites.tracedZxid] = [index, zxid];
    }
    return found;
  }

  #requestOfTxn(candidates: readonly TracedRequest[], logged: TxnLogEntry, atMs: Millis): TracedRequest | undefined {
    const next = this.#laterTxns(logged);
    return requestOfTxn(
      candidates,
      logged,
      atMs,
      ({ request }) => this.#agrees(request, logged),
      (each) => canContinueWith(each, next),
    );
  }

  /** The later txns of the session, and the requests that each can have come from. */
  #laterTxns(logged: TxnLogEntry): NextTxn<TracedRequest>[] {
    const next: NextTxn<TracedRequest>[] = [];
    for (let at = this.#nextOfSession.get(logged.header.zxid); at !== undefined && next.length < lookAheadMax;) {
      const { header } = at.logged;
      next.push({ ...at, candidates: this.#requests.get(requestKey(sessionOf(at.logged), header.cxid)) ?? [] });
      at = this.#nextOfSession.get(header.zxid);
    }
    return next;
  }

  /** Whether the model would refuse the request as the log says. */
  #agrees(request: Request, { header, txn }: TxnLogEntry): boolean {
    this.#model.setZxid(header.zxid - 1);
    const { err, body } = answerOf(this.#model.preview({ ...this.#admissions.of(request), wallMs: header.time }));
    if (txn.kind === 'error') return isLoggedAs(err, txn.err);
    if (txn.kind !== 'multi') return true;
    const { results } = (body ?? { results: [] }) as { readonly results: readonly { readonly err: number }[] };
    return txn.txns.every(({ txn: part }, at) => part.kind !== 'error' || isLoggedAs(results[at]?.err, part.err));
  }

  /**
   * When the session was requested over a connection that is newer than this one, or may count as
   * newer; Infinity if never.
   */
  #movedMs(cnxn: CnxnRecord): Millis {
    if (cnxn.session === undefined) return Infinity;
    let movedMs = Infinity;
    for (const asker of this.#cnxnsBySessionAsked.get(cnxn.session) ?? []) {
      // Two connections that are opened at one time may be processed in either order.
      const isLater = asker.openedMs > cnxn.openedMs || (asker !== cnxn && asker.handshakeMs > cnxn.openedMs);
      if (isLater) movedMs = Math.min(movedMs, Math.max(asker.openedMs, cnxn.openedMs));
    }
    return movedMs;
  }

  /**
   * Whether an older connection has requested the session without a reply: its server may have been
   * paused, and ask the leader after this connection's server did.
   */
  #mayBeTakenOver(cnxn: CnxnRecord): boolean {
    const askers = cnxn.session === undefined ? undefined : this.#cnxnsBySessionAsked.get(cnxn.session);
    return askers?.some((asker) => asker !== cnxn && asker.openedMs <= cnxn.openedMs && asker.handshakeMs === 0) === true;
  }
}

/** A leader does not know the local sessions of its learners, and calls them expired. */
function isLoggedAs(err: number | undefined, loggedErr: number): boolean {
  return err === loggedErr || (err === ErrorCode.EphemeralOnLocalSession && loggedErr === ErrorCode.SessionExpired);
}

function sessionOf({ header }: TxnLogEntry): SessionId {
  return sessionIdOf(header.clientHigh, header.clientLow);
}

function nextOfSession({ log }: Recording): Map<Zxid, LogEntry> {
  const found = new Map<Zxid, LogEntry>();
  const last = new Map<SessionId, LogEntry>();
  for (const entry of log.toReversed()) {
    const { logged } = entry;
    const next = last.get(sessionOf(logged));
    if (next !== undefined) found.set(logged.header.zxid, next);
    last.set(sessionOf(logged), entry);
  }
  return found;
}

function cnxnsBySessionAsked({ cnxns }: Recording): Map<SessionId, CnxnRecord[]> {
  const found = new Map<SessionId, CnxnRecord[]>();
  for (const cnxn of cnxns) {
    if (cnxn.handshake === undefined) continue;
    const known = found.get(cnxn.handshake.sessionId);
    if (known === undefined) found.set(cnxn.handshake.sessionId, [cnxn]);
    else known.push(cnxn);
  }
  return found;
}
