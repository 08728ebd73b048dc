/**
 * Replays a recording with the reference model: each txn of the log is traced to its request, the
 * request is given to the model, and each read is given to the model at the zxid in its reply. The
 * result is what every connection should have received, in order; the checkers compare.
 *
 * The replies and events of one connection are in the order of the bytes that arrived, and their
 * zxids never decrease; so all connections can be merged with the log into one order that each of
 * them could have seen. A connection may break at any moment, so what a client saw must be a prefix
 * of what the model gives, and nothing is checked after its end.
 *
 * This file walks through the log. request-tracer.ts finds the request of a txn, stream-checker.ts
 * compares what connections received.
 */
import { ErrorCode, type Millis, OpCode, type SessionId, sessionIdOf, systemPath, type Txn, type Zxid } from '@tskeeper/protocol';
import type { AclEntry } from '../model/operation-types.ts';
import { ReferenceModel } from '../model/reference-model.ts';
import type { Recording, Request } from '../record/recording.ts';
import { Admissions } from './admissions.ts';
import { answerOf, refusal } from './answer.ts';
import { MembershipChecker } from './membership-checker.ts';
import { PreviousAcls } from './previous-acls.ts';
import { QuotaChecker } from './quota-checker.ts';
import type { DigestAt, Expectation, Replay, ReplayedTxn, SessionLife, Sweep, Tracing } from './replay-result.ts';
import { type LogEntry, RequestTracer, type TracedRequest } from './request-tracer.ts';
import { readOnlyStreams } from './read-only-streams.ts';
import { StreamChecker } from './stream-checker.ts';

export function replay(recording: Recording, tracing: Tracing = new Map()): Replay {
  return new Replayer(recording, tracing).run();
}

/** Computing a digest from scratch is slow, so not each time. */
const digestEveryZxids = 16;

function modelFor({ limits }: Recording): ReferenceModel {
  const { minSessionTimeoutMs, maxSessionTimeoutMs, extendedTypesEnabled, containerMaxNeverUsedIntervalMs } = limits;
  return new ReferenceModel({
    minSessionTimeoutMs,
    maxSessionTimeoutMs,
    extendedTypesEnabled,
    containerMaxNeverUsedIntervalMs,
    enforceQuota: limits.enforceQuota === true,
    localSessions: limits.localSessions !== undefined && limits.localSessions !== 'disabled',
    watchesPerCnxnMax: limits.watchesPerCnxnMax ?? Infinity,
    keeperExtensions: limits.keeperExtensions === true,
    wideSequences: limits.wideSequences === true,
    ...(limits.juteMaxBuffer !== undefined && { juteMaxBuffer: limits.juteMaxBuffer }),
    identitiesPerCnxnMax: limits.identitiesPerCnxnMax ?? Infinity,
    identityBytesPerCnxnMax: limits.identityBytesPerCnxnMax ?? Infinity,
    superDigest: limits.superDigest,
    saslUsers: limits.saslUsers,
    reconfigEnabled: limits.reconfigEnabled === true,
  });
}

function localSessionsOf({ cnxns, limits }: Recording): Set<SessionId> {
  const found = new Set<SessionId>();
  if (limits.localSessions === undefined || limits.localSessions === 'disabled') return found;
  for (const { handshake, session = 0n } of cnxns) if (handshake?.sessionId === 0n && session !== 0n) found.add(session);
  return found;
}

function localEndsMsOf({ peerEvents }: Recording): Map<SessionId, Millis> {
  return new Map(
    peerEvents.flatMap((event): [SessionId, Millis][] =>
      event.kind === 'localSession' && (event.what === 'closed' || event.what === 'expired') ? [[event.session, event.atMs]] : [],
    ),
  );
}

class Replayer {
  readonly #recording: Recording;
  readonly #model: ReferenceModel;
  readonly #admissions: Admissions;
  readonly #tracer: RequestTracer;
  readonly #previousAcls: PreviousAcls;
  readonly #streams: StreamChecker;
  /** Where quotas are enforced. */
  readonly #quotaChecker: QuotaChecker | undefined;
  /** Where the membership may change. */
  readonly #membership: MembershipChecker | undefined;
  readonly #sessions = new Map<SessionId, SessionLife>();
  /** Sessions that servers opened without a txn. Some become global. */
  readonly #localSessions: ReadonlySet<SessionId>;
  /** When the servers of local sessions ended them. */
  readonly #localEndsMs: ReadonlyMap<SessionId, Millis>;
  readonly #txns: ReplayedTxn[] = [];
  readonly #writes: Expectation[] = [];
  readonly #sweeps: Sweep[] = [];
  readonly #digests: DigestAt[] = [];

  constructor(recording: Recording, tracing: Tracing) {
    this.#recording = recording;
    const cnxns = [...recording.cnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs), ...readOnlyStreams(recording)];
    const model = (this.#model = modelFor(recording));
    const admissions = (this.#admissions = new Admissions(cnxns, recording.limits));
    const previousAcls = (this.#previousAcls = new PreviousAcls(model));
    this.#tracer = new RequestTracer(recording, cnxns, tracing, model, admissions);
    this.#streams = new StreamChecker(recording, cnxns, model, admissions, previousAcls);
    this.#localSessions = localSessionsOf(recording);
    this.#localEndsMs = localEndsMsOf(recording);
    if (recording.limits.reconfigEnabled === true && recording.ensemble.size > 0) {
      this.#membership = new MembershipChecker(recording);
      model.membership.votersMin = recording.limits.votersMin;
      model.membership.allowsSeveralAddresses = recording.limits.multiAddressEnabled === true;
    }
    this.#quotaChecker = recording.limits.enforceQuota === true ? new QuotaChecker(recording) : undefined;
  }

  run(): Replay {
    this.#applySeedState();
    for (const entry of this.#recording.log) {
      this.#beginEpochs(entry.logged.header.zxid);
      this.#streams.consume(entry.logged.header.zxid);
      this.#previousAcls.record(entry.logged);
      this.#apply(entry);
    }
    this.#beginEpochs(Infinity);
    this.#streams.consume(Infinity);
    return {
      txns: this.#txns,
      sessions: this.#sessions,
      writes: this.#writes,
      reads: this.#streams.reads,
      discrepancies: this.#streams.discrepancies,
      events: this.#streams.events,
      sweeps: this.#sweeps,
      digests: this.#digests,
      quotaDecisions: this.#quotaChecker?.decisions ?? [],
      lastZxid: this.#txns.at(-1)?.zxid ?? this.#recording.seedState.zxid,
      contents: this.#model.contents(),
      liveSessions: this.#model.sessions(),
      digest: this.#model.digest(),
      doubtful: this.#tracer.doubtful,
    };
  }

  /** Each leader that begins before `zxid` shows its configuration from then on. */
  #beginEpochs(zxid: Zxid): void {
    for (let next = this.#membership?.takeConfigBefore(zxid); next !== undefined; next = this.#membership?.takeConfigBefore(zxid)) {
      this.#streams.consume(next.zxid);
      this.#model.configure(next.text);
    }
  }

  #applySeedState(): void {
    const { seedState, configText } = this.#recording;
    const { zxid, wallMs, znodes } = seedState;
    if (configText !== undefined) this.#model.configure(configText);
    this.#model.setZxid(zxid - znodes.length);
    this.#model.connect(-1, '0.0.0.0');
    this.#model.attach(-1, 0n);
    for (const { path, data = null } of znodes) {
      if (path.startsWith(systemPath.sequences)) {
        this.#model.recordSequences([{ path, data }], wallMs);
        continue;
      }
      const acl: AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
      this.#model.perform(this.#model.admit(-1, 0, { kind: 'create', path, data: '', acl, flags: 0 }, wallMs));
    }
    for (const { path, creates } of znodes) if (creates > 0) this.#model.setCreates(path, creates);
    this.#model.disconnected(-1);
  }

  #apply(entry: LogEntry): void {
    const { atMs, logged } = entry;
    const { header, txn } = logged;
    const { zxid, type } = header;
    const model = this.#model;
    const session = sessionIdOf(header.clientHigh, header.clientLow);
    const found = this.#tracer.trace(entry);
    const request = found?.request;
    const loggedErr = txn.kind === 'error' ? txn.err : 0;
    let expectedErr: number = loggedErr;
    let isUnexplained = false;
    // Each epoch of an ensemble counts from 1.
    model.setZxid(zxid - 1);
    if (txn.kind === 'createSession') this.#openSession(session, txn.timeOut, entry);
    else if (txn.kind === 'closeSession') isUnexplained = !this.#closeSession(session, entry, found);
    else if (found === undefined) isUnexplained = !this.#applyOwnTxn(session, entry);
    else expectedErr = this.#applyWrite(found, session, entry);
    this.#membership?.carriedOut(logged);
    this.#quotaChecker?.recordQuotas(zxid, model.quotaRule.quotas());
    this.#txns.push({ zxid, atMs, session, type, request, isUnexplained, loggedErr, expectedErr });
    if (logged.digest !== undefined && zxid % digestEveryZxids === 0) {
      this.#digests.push({ zxid, logged: sessionIdOf(logged.digest.high, logged.digest.low), expected: model.digest() });
    }
  }

  // --- sessions

  #openSession(session: SessionId, timeoutMs: Millis, { atMs, logged }: LogEntry): void {
    this.#model.openSession(session, timeoutMs);
    this.#sessions.set(session, {
      id: session,
      openedZxid: logged.header.zxid,
      openedMs: atMs,
      timeoutMs,
      closedZxid: Infinity,
      closedMs: Infinity,
      closedBy: undefined,
      ephemerals: [],
    });
  }

  /** Returns whether there was a reason to close the session. */
  #closeSession(session: SessionId, { atMs, logged }: LogEntry, found: TracedRequest | undefined): boolean {
    const { cxid, zxid, time } = logged.header;
    const life = this.#sessions.get(session);
    const ephemerals = this.#model.ephemeralsOf(session);
    const byClient = found?.request.name === 'closeSession' && cxid !== 0;
    if (byClient) this.#perform(found.request, time);
    else this.#streams.expectOutputs(this.#model.expire(session));
    const wasOpen = life !== undefined && life.closedBy === undefined;
    if (wasOpen) {
      life.closedZxid = zxid;
      life.closedMs = atMs;
      life.closedBy = byClient ? 'client' : 'server';
      life.ephemerals = ephemerals;
    }
    // If a client closes its session twice through a learner, or an operator at two servers, the leader
    // processes both requests, as in ZooKeeper.
    return byClient || (cxid === 0 && (wasOpen || this.#recording.endedByOperator.has(session)));
  }

  #hasEnded(session: SessionId): boolean {
    const life = this.#sessions.get(session);
    return life === undefined ? !this.#localSessions.has(session) : life.closedBy !== undefined;
  }

  // --- writes

  /** Applies the write that a request led to; returns the expected error. */
  #applyWrite({ request, mayHaveMoved }: TracedRequest, session: SessionId, { logged, atMs }: LogEntry): number {
    const { header, txn } = logged;
    const loggedErr = txn.kind === 'error' ? txn.err : 0;
    if (this.#hasEnded(session)) {
      const err = this.#refuse(request, ErrorCode.SessionExpired);
      return request.name === 'multi' ? loggedErr : err;
    }
    // A leader may find that a local session of its own has ended while a write waited. No client
    // waits for the answer.
    if (loggedErr === ErrorCode.SessionExpired && request.reply === undefined && (this.#localEndsMs.get(session) ?? Infinity) <= atMs) {
      this.#refuse(request, loggedErr);
      return loggedErr;
    }
    // A session that an operator ends accepts no writes from the request on, and its closeSession follows.
    if (isRefusedAsExpired(txn) && this.#sessions.has(session) && this.#recording.endedByOperator.has(session)) {
      this.#refuse(request, ErrorCode.SessionExpired);
      return loggedErr;
    }
    if (loggedErr === ErrorCode.SessionMoved && mayHaveMoved) {
      // The fence: a request in transit over the old connection must not take effect after the new
      // one has taken over.
      this.#refuse(request, loggedErr);
      return loggedErr;
    }
    const quotaChecker = this.#quotaChecker;
    this.#model.quotaRule.oracle = quotaChecker === undefined ? undefined : (question) => quotaChecker.check(request, logged, question);
    if (request.name === 'reconfig') this.#model.membership.refusal = this.#membership?.refusalOf(request, logged, atMs);
    const err = this.#perform(request, header.time);
    // Only the server of a local session knows why its ephemeral is refused.
    if (err === ErrorCode.EphemeralOnLocalSession && loggedErr === ErrorCode.SessionExpired) return loggedErr;
    // The result of a multi is in its operations.
    return request.name === 'multi' && txn.kind === 'multi' ? loggedErr : err;
  }

  /** The request is refused because of its session; returns the error of its reply. */
  #refuse(request: Request, err: number): number {
    const answer = refusal(request, err);
    this.#model.skipZxid();
    this.#writes.push({ request, answer });
    this.#streams.expectReply(this.#admissions.of(request).cnxn, request);
    return answer.err;
  }

  /** Performs a write in the model; returns the error of its reply. */
  #perform(request: Request, wallMs: Millis): number {
    const admitted = this.#admissions.of(request);
    const outputs = this.#model.perform({ ...admitted, wallMs });
    const answer = answerOf(outputs);
    this.#writes.push({ request, answer });
    this.#streams.expectOutputs(outputs, request);
    this.#streams.dropIfOver(admitted.cnxn);
    return answer.err;
  }

  // --- what the server does by itself

  /** Applies a txn that no client asked for; returns whether the server had a reason for it. */
  #applyOwnTxn(session: SessionId, entry: LogEntry): boolean {
    const { logged } = entry;
    if (session === 0n && (this.#maybeSweep(entry) || this.#maybeRecordSequence(logged))) return true;
    this.#model.skipZxid();
    return false;
  }

  /** Whether the txn records the number that the children of a znode have reached. */
  #maybeRecordSequence({ header, txn }: LogEntry['logged']): boolean {
    if (this.#recording.limits.wideSequences !== true) return false;
    const records: { path: string; data: string | null }[] = [];
    for (const member of txn.kind === 'multi' ? txn.txns.map((each) => each.txn) : [txn]) {
      if (member.kind !== 'create' && member.kind !== 'setData') return false;
      records.push({ path: member.path, data: member.data === null ? null : Buffer.from(member.data).toString('latin1') });
    }
    const isCorrect = records.every(({ path, data }) => {
      if (path === systemPath.sequences) return data === null;
      const of = decodeURIComponent(path.slice(systemPath.sequences.length + 1));
      const czxid = this.#model.lookUp(of)?.stat.czxid;
      const number = `number=${this.#model.createsOf(of)}\nczxid=0x${czxid?.toString(16)}\n`;
      return path.startsWith(`${systemPath.sequences}/`) && data === number;
    });
    if (isCorrect) this.#streams.expectOutputs(this.#model.recordSequences(records, header.time));
    return isCorrect;
  }

  /** Applies a deletion by the container manager; returns whether the txn is one. */
  #maybeSweep({ atMs, logged }: LogEntry): boolean {
    const { header, txn } = logged;
    if (header.type !== OpCode.deleteContainer || txn.kind !== 'delete') return false;
    const { path } = txn;
    const isDue = this.#model.sweepCandidates(this.#latestWallMs(atMs, header.time)).includes(path);
    this.#sweeps.push({ zxid: header.zxid, path, isDue });
    this.#streams.expectOutputs(this.#model.sweep(path));
    return true;
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
}

/** Whether the session of the write was at its end, in the eyes of the server that ordered it. */
function isRefusedAsExpired(txn: Txn): boolean {
  if (txn.kind === 'multi') return txn.txns.some((part) => isRefusedAsExpired(part.txn));
  return txn.kind === 'error' && txn.err === ErrorCode.SessionExpired;
}
