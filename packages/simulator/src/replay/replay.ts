/**
 * Replays a recording with the reference model: each txn of the log is traced to its request, the
 * request is given to the model, and each read is given to the model at the zxid in its reply. The
 * result is what every connection should have received, in order; the checkers compare.
 *
 * The replies and events of one connection are in the order of the bytes that arrived, and their
 * zxids never decrease; so all connections can be merged with the log into one order that each of
 * them could have seen. A connection may break at any moment, so what a client saw must be a prefix
 * of what the model gives, and nothing is checked after its end.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type AddWatchRequest,
  type AuthRequest,
  ErrorCode,
  type TxnLogEntry,
  type Millis,
  type MultiRequest,
  OpCode,
  type SessionId,
  sessionIdOf,
  type Zxid,
} from '@tskeeper/protocol';
import { bodyFrom, operationFrom, sortedBody } from '../model/from-wire.ts';
import type { AclEntry, Body, Data, Stat } from '../model/operation-types.ts';
import { digestId, type Id } from '../model/access-rules.ts';
import type { Admitted } from '../model/admitted-request.ts';
import type { ModelOutput } from '../model/outbox.ts';
import { ReferenceModel } from '../model/reference-model.ts';
import type { CnxnRecord, Item, Recording, Request } from '../record/recording.ts';
import { unansweredThrottledOps } from '../record/unanswered-throttled-ops.ts';
import { QuotaChecker, type QuotaDecision } from './quota-checker.ts';
import { alternatives, type Candidate, type ConnectionWrites, canContinueWith, type NextTxn, requestOfTxn } from './request-of-txn.ts';

export interface ReplayedTxn {
  readonly zxid: Zxid;
  readonly atMs: Millis;
  readonly session: SessionId;
  readonly type: number;
  /**
   * The request; undefined for what the server does by itself: creating a session, closing an
   * expired one, sweeping.
   */
  readonly request: Request | undefined;
  /** Neither requested by a client nor something that a server does by itself. */
  readonly isUnexplained: boolean;
  /** The result in the log, and the expected one. Both 0 for success. */
  readonly loggedErr: number;
  readonly expectedErr: number;
}

export interface SessionLife {
  readonly id: SessionId;
  readonly openedZxid: Zxid;
  readonly openedMs: Millis;
  readonly timeoutMs: Millis;
  closedZxid: Zxid;
  closedMs: Millis;
  closedBy: 'client' | 'server' | undefined;
  /** Its ephemerals when it ended. */
  ephemerals: readonly string[];
}

/** The expected reply to a request. */
export interface Answer {
  readonly err: number;
  readonly body: Body | null;
}

export interface Expectation {
  readonly request: Request;
  readonly answer: Answer;
}

/** A connection did not receive what it should have, at one place in its stream. */
export interface Discrepancy {
  /**
   * `late`: a reply shows a change whose event is still due. `twice`, `unexpected`: an event that
   * is not due. `order`: an event that is due, but after another. `persistent`: any of these, under
   * a persistent or recursive watch. `restored`: any of these, for events of restored watches.
   */
  readonly kind: 'late' | 'twice' | 'unexpected' | 'order' | 'persistent' | 'restored';
  readonly text: string;
}

/** A container or a TTL znode that the server deleted by itself. */
export interface Sweep {
  readonly zxid: Zxid;
  readonly path: string;
  readonly isDue: boolean;
}

export interface DigestAt {
  readonly zxid: Zxid;
  readonly logged: bigint;
  readonly expected: bigint;
}

/** An event as it was sent, and whether its receiver may read the znode. */
export interface DeliveredEvent {
  readonly cnxn: CnxnRecord;
  readonly path: string;
  readonly zxid: Zxid;
  readonly mayRead: boolean;
}

export interface Replay {
  readonly txns: readonly ReplayedTxn[];
  readonly sessions: ReadonlyMap<SessionId, SessionLife>;
  /** For every write in the log, and for every read with a reply. */
  readonly writes: readonly Expectation[];
  readonly reads: readonly Expectation[];
  readonly discrepancies: readonly Discrepancy[];
  readonly events: readonly DeliveredEvent[];
  readonly sweeps: readonly Sweep[];
  readonly digests: readonly DigestAt[];
  readonly quotaDecisions: readonly QuotaDecision[];
  readonly lastZxid: Zxid;
  /** The tree and the sessions at the end. */
  readonly contents: ReadonlyMap<string, { readonly stat: Stat; readonly data: Data; readonly acl: readonly AclEntry[] }>;
  readonly liveSessions: ReadonlyMap<SessionId, Millis>;
  readonly digest: bigint;
  /** Txns that may have come from another request than the one they were traced to. */
  readonly doubtful: readonly DoubtfulTxn[];
}

/**
 * A txn that came from one of several requests with one session and one xid, none of which has a
 * reply.
 */
export interface DoubtfulTxn {
  readonly zxid: Zxid;
  /** The connections over which the other requests were sent. */
  readonly others: readonly string[];
}

/** For doubtful txns, by zxid: the connection over which the request was sent. */
export type Tracing = ReadonlyMap<Zxid, string>;

export const writeNames: ReadonlySet<string> = new Set([
  'create',
  'create2',
  'createContainer',
  'createTTL',
  'delete',
  'setData',
  'setACL',
  'multi',
  'reconfig',
  'closeSession',
]);

/** Whether a request is a write that the server accepted, as far as its client knows. */
export function isWrite(request: Request): boolean {
  return request.name !== undefined && writeNames.has(request.name) && !isThrottled(request);
}

/** Refused before validation: it has no txn, and its reply keeps its place like that of a read. */
export function isThrottled({ name, reply }: Request): boolean {
  return reply?.err === ErrorCode.ThrottledOp && name !== undefined && writeNames.has(name);
}

/** Answered at once, before pending requests: its place among the replies says nothing. */
export function isAnsweredOutOfOrder({ name }: Request): boolean {
  return name === undefined || name === 'auth' || name === 'sasl' || name === 'check' || name === 'deleteContainer';
}

function sessionOf({ header }: TxnLogEntry): SessionId {
  return sessionIdOf(header.clientHigh, header.clientLow);
}

export function requestKey(session: SessionId, xid: number): string {
  return `${session} ${xid}`;
}

export function replay(recording: Recording, tracing: Tracing = new Map()): Replay {
  return new Replayer(recording, tracing).run();
}

/** The next thing that a connection must receive. */
type ExpectedItem =
  | { readonly kind: 'event'; readonly zxid: Zxid; readonly type: number; readonly path: string; readonly anyOrder: boolean }
  | { readonly kind: 'reply'; readonly request: Request };

interface CnxnReplay {
  readonly number: number;
  readonly cnxn: CnxnRecord;
  /** The next item to be checked. */
  next: number;
  readonly expected: ExpectedItem[];
  /** The identities of its client so far. */
  identities: readonly Id[];
  /** Paths under persistent watches. */
  readonly persistent: Set<string>;
  /** Whether a discrepancy was found: what follows would only repeat it. */
  hasDiscrepancy: boolean;
  isConnected: boolean;
}

interface TracedRequest extends Candidate {
  readonly admitted: Admitted;
  readonly cnxnReplay: CnxnReplay;
  /** Txns that came from it. */
  readonly zxids: Zxid[];
}

/** Computing a digest from scratch is slow, so not each time. */
const digestEveryZxids = 16;
/**
 * Maximum number of later txns of a session that are used to tell which of several requests a txn
 * came from.
 */
const lookAheadMax = 64;

type LogEntry = Recording['log'][number];

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

class Replayer {
  readonly #recording: Recording;
  readonly #tracing: Tracing;
  readonly #doubtful: DoubtfulTxn[] = [];
  readonly #model: ReferenceModel;
  readonly #cnxns: CnxnReplay[] = [];
  /** By session and xid; more than one if processes share a session. */
  readonly #requests = new Map<string, TracedRequest[]>();
  /** By zxid, the next txn of the same session. */
  readonly #nextOfSession = new Map<Zxid, LogEntry>();
  /** By session, the connections that requested it. */
  readonly #cnxnsBySessionAsked: ReadonlyMap<SessionId, readonly CnxnRecord[]>;
  readonly #admitted = new Map<Request, Admitted>();
  readonly #sessions = new Map<SessionId, SessionLife>();
  readonly #txns: ReplayedTxn[] = [];
  readonly #writes: Expectation[] = [];
  readonly #reads: Expectation[] = [];
  readonly #discrepancies: Discrepancy[] = [];
  readonly #events: DeliveredEvent[] = [];
  readonly #sweeps: Sweep[] = [];
  readonly #digests: DigestAt[] = [];
  /** Where quotas are enforced. */
  readonly #quotaChecker: QuotaChecker | undefined;
  /** Connections with items left to check. */
  #active: CnxnReplay[] = [];
  /**
   * By path: ACLs that znodes had before the last txn or during it. For znodes that it deleted,
   * these are the ACLs from before and those it had set itself: watchers may receive events if they
   * could read the znode under any of them.
   */
  #previousAcls = new Map<string, (readonly AclEntry[])[]>();

  constructor(recording: Recording, tracing: Tracing) {
    this.#recording = recording;
    this.#tracing = tracing;
    this.#cnxnsBySessionAsked = cnxnsBySessionAsked(recording);
    const {
      minSessionTimeoutMs,
      maxSessionTimeoutMs,
      extendedTypesEnabled,
      containerMaxNeverUsedIntervalMs,
      enforceQuota,
      watchesPerCnxnMax,
      identitiesPerCnxnMax = Infinity,
      identityBytesPerCnxnMax = Infinity,
    } = recording.limits;
    this.#quotaChecker = enforceQuota === true ? new QuotaChecker(recording) : undefined;
    this.#model = new ReferenceModel({
      minSessionTimeoutMs,
      maxSessionTimeoutMs,
      extendedTypesEnabled,
      containerMaxNeverUsedIntervalMs,
      enforceQuota: enforceQuota === true,
      watchesPerCnxnMax: watchesPerCnxnMax ?? Infinity,
      identitiesPerCnxnMax,
      identityBytesPerCnxnMax,
    });
  }

  run(): Replay {
    this.#applySeedState();
    for (const [number, cnxn] of this.#recording.cnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs).entries())
      this.#addCnxn(number, cnxn);
    this.#active = this.#cnxns.filter(({ cnxn }) => cnxn.items.length > 0);
    this.#indexSessions();
    for (const entry of this.#recording.log) {
      this.#consume(entry.logged.header.zxid);
      this.#recordPreviousAcls(entry.logged);
      this.#apply(entry);
    }
    this.#consume(Infinity);
    return {
      txns: this.#txns,
      sessions: this.#sessions,
      writes: this.#writes,
      reads: this.#reads,
      discrepancies: this.#discrepancies,
      events: this.#events,
      sweeps: this.#sweeps,
      digests: this.#digests,
      quotaDecisions: this.#quotaChecker?.decisions ?? [],
      lastZxid: this.#txns.at(-1)?.zxid ?? this.#recording.seedState.zxid,
      contents: this.#model.contents(),
      liveSessions: this.#model.sessions(),
      digest: this.#model.digest(),
      doubtful: this.#doubtful,
    };
  }

  #applySeedState(): void {
    const { seedState, configText } = this.#recording;
    const { zxid, wallMs, znodes } = seedState;
    if (configText !== undefined) this.#model.configure(configText);
    this.#model.setZxid(zxid - znodes.length);
    this.#model.connect(-1, '0.0.0.0');
    this.#model.attach(-1, 0n);
    for (const { path } of znodes) {
      const acl: AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
      this.#model.perform(this.#model.admit(-1, 0, { kind: 'create', path, data: '', acl, flags: 0 }, wallMs));
    }
    for (const { path, creates } of znodes) if (creates > 0) this.#model.setCreates(path, creates);
    this.#model.disconnected(-1);
  }

  #addCnxn(number: number, cnxn: CnxnRecord): void {
    let identities: readonly Id[] = [{ scheme: 'ip', id: cnxn.address }];
    const cnxnReplay: CnxnReplay = {
      number,
      cnxn,
      next: 0,
      expected: [],
      identities,
      persistent: new Set(),
      hasDiscrepancy: false,
      isConnected: false,
    };
    this.#cnxns.push(cnxnReplay);
    const movedMs = this.#movedMs(cnxn);
    const mayHaveMoved = movedMs < Infinity || this.#mayBeTakenOver(cnxn);
    const cnxnWrites: ConnectionWrites = {
      writes: [],
      tracedIndex: 0,
      tracedZxid: 0,
      throttledOps: unansweredThrottledOps(this.#recording, cnxn),
    };
    let shownZxid = 0;
    for (const request of cnxn.requests) {
      const before = shownZxid;
      if (request.reply !== undefined && !isAnsweredOutOfOrder(request)) shownZxid = Math.max(shownZxid, request.reply.zxid);
      const operation = operationFrom(request.name, request.opCode, request.record);
      const admitted: Admitted = { cnxn: number, session: request.session, xid: request.xid, operation, identities, wallMs: 0 };
      this.#admitted.set(request, admitted);
      if (request.name === 'auth') identities = identitiesAfter(identities, request.record as AuthRequest);
      if (!isWrite(request)) continue;
      const index = cnxnWrites.writes.push(request);
      this.#addRequest({ request, admitted, cnxnReplay, movedMs, mayHaveMoved, cnxnWrites, index, shownZxid: before, zxids: [] });
    }
  }

  #addRequest(found: TracedRequest): void {
    const key = requestKey(found.request.session, found.request.xid);
    const known = this.#requests.get(key);
    if (known === undefined) this.#requests.set(key, [found]);
    else known.push(found);
  }

  #find({ atMs, logged }: LogEntry): TracedRequest | undefined {
    const { clientHigh, clientLow, cxid, zxid } = logged.header;
    const candidates = this.#requests.get(requestKey(sessionIdOf(clientHigh, clientLow), cxid)) ?? [];
    let found = candidates.length > 1 ? this.#requestOfTxn(candidates, logged, atMs) : candidates[0];
    if (found !== undefined && candidates.length > 1) {
      const others = alternatives(candidates, found, logged, atMs);
      if (others.length > 0) this.#doubtful.push({ zxid, others: others.map(({ cnxnReplay }) => cnxnReplay.cnxn.key) });
      const given = this.#tracing.get(zxid);
      found = others.find(({ cnxnReplay }) => cnxnReplay.cnxn.key === given) ?? found;
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
      (each) => this.#agrees(each, logged),
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

  #indexSessions(): void {
    const last = new Map<SessionId, LogEntry>();
    for (const entry of this.#recording.log.toReversed()) {
      const { logged } = entry;
      const next = last.get(sessionOf(logged));
      if (next !== undefined) this.#nextOfSession.set(logged.header.zxid, next);
      last.set(sessionOf(logged), entry);
    }
  }

  /** Whether the model would refuse the request as the log says. */
  #agrees({ admitted }: TracedRequest, { header, txn }: TxnLogEntry): boolean {
    this.#model.setZxid(header.zxid - 1);
    const { err, body } = answerOf(this.#model.preview({ ...admitted, wallMs: header.time }));
    if (txn.kind === 'error') return err === txn.err;
    if (txn.kind !== 'multi') return true;
    const { results } = (body ?? { results: [] }) as { readonly results: readonly { readonly err: number }[] };
    return txn.txns.every(({ txn: part }, at) => part.kind !== 'error' || results[at]?.err === part.err);
  }

  // --- The log

  #recordPreviousAcls({ header, txn }: TxnLogEntry): void {
    this.#previousAcls = new Map();
    const note = (path: string, acl: readonly AclEntry[] | undefined) => {
      if (acl === undefined) return;
      const known = this.#previousAcls.get(path);
      if (known === undefined) this.#previousAcls.set(path, [acl]);
      else known.push(acl);
    };
    const noteDeleted = (path: string) => note(path, this.#model.lookUp(path)?.acl);
    if (txn.kind === 'delete') noteDeleted(txn.path);
    if (txn.kind === 'closeSession')
      for (const path of this.#model.ephemeralsOf(sessionIdOf(header.clientHigh, header.clientLow))) noteDeleted(path);
    if (txn.kind !== 'multi') return;
    for (const { txn: part } of txn.txns) {
      if (part.kind === 'delete') noteDeleted(part.path);
      if (part.kind === 'create' || part.kind === 'createContainer' || part.kind === 'createTTL') {
        note(
          part.path,
          part.acl.map(({ perms, id }) => ({ perms, scheme: id.scheme ?? '', id: id.id ?? '' })),
        );
      }
    }
  }

  #apply(entry: LogEntry): void {
    const { atMs, logged } = entry;
    const { header, txn } = logged;
    const { zxid, type } = header;
    const model = this.#model;
    const session = sessionIdOf(header.clientHigh, header.clientLow);
    const found = this.#find(entry);
    const request = found?.request;
    const loggedErr = txn.kind === 'error' ? txn.err : 0;
    let expectedErr: number = loggedErr;
    let isUnexplained = false;
    // Each epoch of an ensemble counts from 1.
    model.setZxid(zxid - 1);
    if (txn.kind === 'createSession') {
      model.openSession(session, txn.timeOut);
      this.#sessions.set(session, {
        id: session,
        openedZxid: zxid,
        openedMs: atMs,
        timeoutMs: txn.timeOut,
        closedZxid: Infinity,
        closedMs: Infinity,
        closedBy: undefined,
        ephemerals: [],
      });
    } else if (txn.kind === 'closeSession') {
      const life = this.#sessions.get(session);
      const ephemerals = model.ephemeralsOf(session);
      const byClient = request?.name === 'closeSession' && header.cxid !== 0;
      if (byClient && found !== undefined) this.#perform(found, header.time);
      else this.#expectOutputs(model.expire(session));
      // A client that closes its session twice through a learner is heard twice, by ZooKeeper's
      // leader as well.
      if (!byClient && (life === undefined || life.closedBy !== undefined || header.cxid !== 0)) isUnexplained = true;
      if (life !== undefined && life.closedBy === undefined) {
        life.closedZxid = zxid;
        life.closedMs = atMs;
        life.closedBy = byClient ? 'client' : 'server';
        life.ephemerals = ephemerals;
      }
    } else if (request === undefined || found === undefined) {
      if (type === OpCode.deleteContainer && session === 0n && txn.kind === 'delete') {
        this.#sweeps.push({ zxid, path: txn.path, isDue: model.sweepCandidates(this.#latestWallMs(atMs, header.time)).includes(txn.path) });
        this.#expectOutputs(model.sweep(txn.path));
      } else {
        model.skipZxid();
        isUnexplained = true;
      }
    } else if (this.#sessions.get(session)?.closedBy !== undefined || !this.#sessions.has(session)) {
      const answer = refusal(request, ErrorCode.SessionExpired);
      expectedErr = request.name === 'multi' ? loggedErr : answer.err;
      model.skipZxid();
      this.#writes.push({ request, answer });
      this.#expect(found.cnxnReplay, { kind: 'reply', request });
    } else if (loggedErr === ErrorCode.SessionMoved && found.mayHaveMoved) {
      // The fence: a request in transit over the old connection must not take effect after the new
      // one has taken over.
      model.skipZxid();
      this.#writes.push({ request, answer: refusal(request, loggedErr) });
      this.#expect(found.cnxnReplay, { kind: 'reply', request });
    } else {
      const judge = this.#quotaChecker;
      model.quotaRule.oracle = judge === undefined ? undefined : (question) => judge.check(found.request, logged, question);
      expectedErr = this.#perform(found, header.time);
      // The result of a multi is in its operations.
      if (txn.kind === 'multi') expectedErr = loggedErr;
    }
    this.#quotaChecker?.recordQuotas(zxid, model.quotaRule.quotas());
    this.#txns.push({ zxid, atMs, session, type, request, isUnexplained, loggedErr, expectedErr });
    if (logged.digest !== undefined && zxid % digestEveryZxids === 0) {
      this.#digests.push({ zxid, logged: sessionIdOf(logged.digest.high, logged.digest.low), expected: model.digest() });
    }
  }

  /** Performs a write in the model; returns the error of its reply. */
  #perform({ request, admitted, cnxnReplay }: TracedRequest, wallMs: Millis): number {
    const heard = this.#model.perform({ ...admitted, wallMs });
    const answer = answerOf(heard);
    this.#writes.push({ request, answer });
    this.#expectOutputs(heard, request);
    if (!this.#active.includes(cnxnReplay)) this.#model.disconnected(cnxnReplay.number);
    return answer.err;
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

  /**
   * The latest time that a server's wall clock may have shown: what was due then may be deleted
   * later, even if the clock was set back.
   */
  #latestWallMs(atMs: Millis, wallMs: Millis): Millis {
    const { wallClocks } = this.#recording;
    let latest = wallMs;
    for (const { server, fromMs, offsetMs } of wallClocks) {
      if (fromMs > atMs) continue;
      const next = wallClocks.find((each) => each.server === server && each.fromMs > fromMs)?.fromMs ?? Infinity;
      latest = Math.max(latest, Math.min(atMs, next) + offsetMs);
    }
    return latest;
  }

  // --- What connections receive

  #expectOutputs(heard: readonly ModelOutput[], request?: Request): void {
    for (const { cnxn, message, anyOrder } of heard) {
      const line = this.#cnxns[cnxn];
      if (line === undefined) continue;
      if (message.kind === 'event') {
        const { zxid, type, path } = message;
        this.#expect(line, { kind: 'event', zxid, type, path, anyOrder: anyOrder === true });
      } else if (message.kind === 'reply' && request !== undefined) {
        this.#expect(line, { kind: 'reply', request });
      }
    }
  }

  #expect(line: CnxnReplay, due: ExpectedItem): void {
    if (!line.hasDiscrepancy && line.next < line.cnxn.items.length) line.expected.push(due);
  }

  /** Checks everything that connections saw before this txn. */
  #consume(zxid: Zxid): void {
    let isOver = false;
    for (const line of this.#active) {
      const { items } = line.cnxn;
      while (!line.hasDiscrepancy && line.next < items.length && this.#maybeConsumeOne(line, items[line.next]!, zxid)) line.next++;
      if (line.hasDiscrepancy || line.next >= items.length) {
        isOver = true;
        this.#model.disconnected(line.number);
      }
    }
    if (isOver) this.#active = this.#active.filter((line) => !line.hasDiscrepancy && line.next < line.cnxn.items.length);
  }

  /** Returns whether the item was due. */
  #maybeConsumeOne(line: CnxnReplay, item: Item, zxid: Zxid): boolean {
    if (item.kind === 'event') {
      if (item.zxid === -1) {
        // Sent in response to a setWatches, before its reply.
        const reply = setWatchesReply(line, zxid);
        if (reply === 'not yet') return false;
        if (reply !== undefined && !line.expected.some((due) => due.kind === 'event' && due.zxid === -1)) this.#read(line, reply);
        // Without the reply the zxid to which the event refers is unknown.
        if (reply === undefined) return true;
      } else if (item.zxid >= zxid) return false;
      this.#checkEvent(line, item);
      return true;
    }
    const { request } = item;
    if (isAnsweredOutOfOrder(request)) {
      // It was answered at some moment between its neighbours; the latest is always possible.
      const next = line.cnxn.items.slice(line.next + 1).find((each) => each.kind === 'event' || !isAnsweredOutOfOrder(each.request));
      if (next !== undefined && next.zxid > 0 && (next.kind === 'event' ? next.zxid > zxid : next.zxid >= zxid)) return false;
      this.#connectModel(line);
      // It may also have overtaken the end of its session.
      if (request.name !== 'auth' || !this.#model.hasCnxn(line.number)) return true;
      if (request.reply!.err === ErrorCode.Ok) {
        this.#model.perform(this.#admitted.get(request)!);
        line.identities = identitiesAfter(line.identities, request.record as AuthRequest);
      }
      return true;
    }
    if (item.zxid >= zxid) return false;
    if (!isWrite(request) && line.expected.length === 0) this.#read(line, request);
    else if (!isWrite(request) && !line.expected.some((due) => due.kind === 'reply' && due.request === request)) {
      this.#reportMissing(line, item);
      return true;
    }
    if (line.hasDiscrepancy) return true;
    const place = line.expected.findIndex((due) => due.kind === 'reply' && due.request === request);
    if (place !== 0) this.#reportMissing(line, item);
    else line.expected.shift();
    return true;
  }

  #connectModel(line: CnxnReplay): void {
    if (line.isConnected) return;
    line.isConnected = true;
    this.#model.connect(line.number, line.cnxn.address);
    this.#model.attach(line.number, line.cnxn.session ?? 0n);
  }

  /** Performs the request in the model. What the model returns is due now. */
  #read(line: CnxnReplay, request: Request): void {
    this.#connectModel(line);
    if (!this.#model.hasCnxn(line.number)) {
      this.#report(line, 'order', `received the reply to ${requestText(request)} after its session had ended`);
      return;
    }
    if (isThrottled(request) || this.#isWatchRefused(line.cnxn, request)) {
      // Nothing has changed, and only the server knows whether it had to refuse.
      this.#expect(line, { kind: 'reply', request });
      return;
    }
    const heard = this.#model.perform(this.#admitted.get(request)!);
    this.#reads.push({ request, answer: answerOf(heard) });
    this.#expectOutputs(heard, request);
    if (request.name === 'addWatch' && request.reply!.err === ErrorCode.Ok) line.persistent.add((request.record as AddWatchRequest).path);
  }

  /** A server whose memory is full refuses new watches, and reports that. */
  #isWatchRefused({ key, server }: CnxnRecord, { opCode, reply }: Request): boolean {
    const { memoryPressuredServers, throttledOps } = this.#recording;
    return reply?.err === ErrorCode.ThrottledOp && memoryPressuredServers.has(server) && throttledOps.get(key)?.includes(opCode) === true;
  }

  #checkEvent(line: CnxnReplay, item: Extract<Item, { kind: 'event' }>): void {
    const { expected, cnxn } = line;
    // A multi may have replaced a znode that it deleted: then the event may be of any of them.
    const acls = [...(this.#previousAcls.get(item.path) ?? []), this.#model.lookUp(item.path)?.acl].filter((acl) => acl !== undefined);
    // Events of restored watches are not guarded, in ZooKeeper neither.
    if (acls.length > 0 && item.zxid !== -1) {
      const mayRead = acls.some((acl) => this.#model.mayRead(acl, line.identities));
      this.#events.push({ cnxn, path: item.path, zxid: item.zxid, mayRead });
    }
    const place = expected.findIndex(
      (each) => each.kind === 'event' && each.path === item.path && each.type === item.type && each.zxid === item.zxid,
    );
    const first = expected[0];
    const isUnorderedWithFirst =
      place > 0 && expected.slice(0, place + 1).every((each) => each.kind === 'event' && each.anyOrder && each.zxid === item.zxid);
    if (place === 0 || isUnorderedWithFirst) {
      expected.splice(place, 1);
      return;
    }
    const wasTold = cnxn.items
      .slice(0, line.next)
      .some((each) => each.kind === 'event' && each.path === item.path && each.type === item.type && each.zxid === item.zxid);
    const kind =
      item.zxid === -1
        ? 'restored'
        : hasPersistentWatch(line, item.path)
          ? 'persistent'
          : place > 0
            ? 'order'
            : wasTold
              ? 'twice'
              : 'unexpected';
    this.#report(line, kind, `received ${eventText(item)}, where ${expectedText(first)} was due`);
  }

  #reportMissing(line: CnxnReplay, item: Item): void {
    const [first] = line.expected;
    const kind =
      first?.kind !== 'event' ? 'order' : first.zxid === -1 ? 'restored' : hasPersistentWatch(line, first.path) ? 'persistent' : 'late';
    const what = item.kind === 'reply' ? `the reply to ${requestText(item.request)} at ${item.zxid}` : eventText(item);
    this.#report(line, kind, `received ${what} before ${expectedText(first)}`);
  }

  #report(line: CnxnReplay, kind: Discrepancy['kind'], text: string): void {
    line.hasDiscrepancy = true;
    this.#discrepancies.push({ kind, text: `${line.cnxn.client} at ${line.cnxn.key} ${text}` });
  }
}

/** The setWatches that caused these events, once it is due; undefined if its reply is missing. */
function setWatchesReply(line: CnxnReplay, zxid: Zxid): Request | 'not yet' | undefined {
  for (let at = line.next; at < line.cnxn.items.length; at++) {
    const item = line.cnxn.items[at]!;
    if (item.kind !== 'reply' || isAnsweredOutOfOrder(item.request)) continue;
    if (item.request.name !== 'setWatches' && item.request.name !== 'setWatches2') return undefined;
    return item.zxid >= zxid ? 'not yet' : item.request;
  }
  return undefined;
}

function hasPersistentWatch({ persistent }: CnxnReplay, path: string): boolean {
  for (let at = path; ; at = parentOf(at)) {
    if (persistent.has(at)) return true;
    if (at === '/') return false;
  }
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

function identitiesAfter(before: readonly Id[], { scheme, auth }: AuthRequest): readonly Id[] {
  if (scheme !== 'digest' || auth === null) return before;
  const id = digestId(Buffer.from(auth).toString('utf8'));
  return before.some((own) => own.scheme === 'digest' && own.id === id) ? before : [...before, { scheme: 'digest', id }];
}

function answerOf(heard: readonly ModelOutput[]): Answer {
  for (const { message } of heard) {
    if (message.kind === 'reply') return { err: message.err, body: message.body };
  }
  throw new Error('the model gave no reply');
}

/** The reply to a write that is refused because its session has ended or moved. */
function refusal({ name, record }: Request, refusedWith: number): Answer {
  if (name !== 'multi') return { err: refusedWith, body: null };
  const results = (record as MultiRequest).ops.map((_, at) => {
    const err = at === 0 ? refusedWith : ErrorCode.RuntimeInconsistency;
    return { type: OpCode.error, err, body: { err } };
  });
  return { err: ErrorCode.Ok, body: { results } };
}

/** Whether the reply to a request is the expected one. */
export function isAnsweredAs({ reply }: Request, answer: Answer): boolean {
  return (
    reply !== undefined &&
    reply.err === answer.err &&
    (isDeepStrictEqual(sortedBody(bodyFrom(reply.body)), sortedBody(answer.body)) || replyText({ reply }) === answerText(answer))
  );
}

/** A reply and an expectation as text, equal if they have the same content. */
export function replyText({ reply }: Pick<Request, 'reply'>): string {
  return reply === undefined ? 'nothing' : textOf({ err: reply.err, body: sortedBody(bodyFrom(reply.body)) });
}

export function answerText({ err, body }: Answer): string {
  return textOf({ err, body: sortedBody(body) });
}

/** A value as text, equal for equal values. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (key, each: unknown) => {
    if (typeof each === 'bigint') return `0x${BigInt.asUintN(64, each).toString(16)}`;
    if (key === 'acl' && Array.isArray(each)) return each.map((entry) => JSON.stringify(entry)).toSorted();
    return isPlain(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each;
  });
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function eventText({ type, path, zxid }: { readonly type: number; readonly path: string; readonly zxid: Zxid }): string {
  return `event ${type} of ${path} at ${zxid}`;
}

function expectedText(due: ExpectedItem | undefined): string {
  if (due === undefined) return 'nothing';
  return due.kind === 'event' ? eventText(due) : `the reply to ${requestText(due.request)}`;
}

const textMax = 300;

export function requestText({ session, xid, name, opCode, record }: Request): string {
  const text = record === undefined ? '' : ` ${textOf(operationFrom(name, opCode, record))}`;
  return `${name ?? opCode}${text.length > textMax ? `${text.slice(0, textMax)}...` : text} (session 0x${BigInt.asUintN(64, session).toString(16)}, xid ${xid})`;
}
