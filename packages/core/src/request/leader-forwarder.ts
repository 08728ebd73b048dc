/**
 * Orders writes on a learner: it forwards them to its leader and applies what the leader has
 * committed. It validates nothing and expires no session. A txn is the result of the write at the
 * head of its session's queue if both have the same cxid; any other txn belongs to a client of
 * another server, or to a connection that is closed.
 */
import {
  ErrorCode,
  formatSessionId,
  type Millis,
  OpCode,
  Reader,
  type SessionId,
  sessionIdOf,
  type Sid,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import { idOfSession, type SessionRef } from '../session/session-ref.ts';
import { localOwner, type SessionTracker } from '../session/session-tracker.ts';
import type { SequencerDependencies } from './local-sequencer.ts';
import type { WriteSequencer } from './write-sequencer.ts';
import { errorTxn, noCnxn, type Proposal, type WriteOrigin } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import type { PendingSync } from '../pending/pending-request.ts';
import { SyncsAwaitingApply } from './syncs-awaiting-apply.ts';

/** Sends requests of clients from a learner to its leader. */
export interface LeaderLink {
  /** `record` is placed over the request's record; its bytes may be reused after the call. */
  request(session: SessionRef, cxid: number, opCode: number, record: Reader, identities: Identities | undefined): void;
  revalidate(session: SessionRef, timeoutMs: Millis): void;
  /** Bytes of requests that wait until the stream to the leader accepts more. */
  readonly queuedBytes: number;
  readonly leader: Sid;
  /** Whether the leader knows the request `transferLeader`. */
  readonly leaderAcceptsTransfers: boolean;
  /** Whether the leader orders writes of ClickHouse Keeper, and multis with its operations. */
  readonly leaderAcceptsKeeperWrites: boolean;
}

/**
 * A session that a client of an observer wants to resume. It waits until the leader has answered
 * the sync that was sent after the question whether the session is alive.
 */
export interface PendingRevalidation extends SessionRef {
  readonly kind: 'session';
  /** undefined until the leader has answered. */
  isValid: boolean | undefined;
}

/** A txn as received from the leader. */
export interface LeaderTxn {
  readonly zxid: Zxid;
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly digest: TxnDigest | undefined;
  /** Size of the log entry. */
  readonly bytes: number;
  /** Whether a client of this server may have requested it. */
  readonly mayBeLocal: boolean;
}

const requestHeaderBytes = 8;

export class LeaderForwarder implements WriteSequencer {
  readonly role: 'follower' | 'observer';
  readonly isReadOnly = false;
  readonly forwardsToLeader = true;
  readonly #link: LeaderLink;
  readonly #tracker: SessionTracker;
  readonly #cnxns: CnxnTable;
  /** In zxid order. */
  readonly #committed = new Fifo<LeaderTxn>();
  /** Sent to the leader and not answered; the leader answers in order. */
  readonly #pendingSyncs = new Fifo<PendingSync | PendingRevalidation>();
  readonly #confirmedSyncs = new SyncsAwaitingApply();
  /** The last txn that the leader has reported as committed. */
  #lastCommitted: Zxid = 0;
  readonly #record = new Writer(16);
  readonly #reader = new Reader();
  /** Sessions that the leader was asked to end on request of an operator. */
  readonly #closeRequested = new Set<SessionId>();
  readonly #replica: Replica;
  readonly workUnits = 0;
  readonly preparingWrite = undefined;

  constructor(role: 'follower' | 'observer', link: LeaderLink, { replica, tracker, cnxns }: SequencerDependencies) {
    this.#replica = replica;
    this.role = role;
    this.#link = link;
    this.#tracker = tracker;
    this.#cnxns = cnxns;
  }

  /** The leader has committed a txn. The caller calls `Server.appended` next. */
  commit(txn: LeaderTxn): void {
    this.#committed.push(txn);
    this.#lastCommitted = txn.zxid;
  }

  /** The leader has answered a sync; returns undefined if none was sent. */
  takeSync(): PendingSync | PendingRevalidation | undefined {
    return this.#pendingSyncs.shift();
  }

  submitWrite(origin: WriteOrigin, reader: Reader): undefined {
    const { cxid, identities, keeperParts } = origin;
    this.#link.request(origin, cxid, keeperParts === undefined ? origin.opCode : OpCode.keeperMulti, reader, identities);
  }

  openSession(origin: WriteOrigin, timeoutMs: Millis): void {
    this.#record.clear();
    this.#record.int32(timeoutMs);
    this.#send(origin, 0, OpCode.createSession);
  }

  /** Only the leader knows. */
  get isCaughtUp(): boolean {
    return false;
  }

  sync(sync: PendingSync): void {
    const { bytes, identities } = sync.frame;
    this.#pendingSyncs.push(sync);
    this.#record.clear();
    this.#record.raw(bytes, requestHeaderBytes);
    this.#send(sync, bytes.readInt32BE(0), OpCode.sync, identities);
  }

  synced(sync: PendingSync): void {
    this.#confirmedSyncs.push(sync, this.#lastCommitted);
  }

  takeSynced(applied: Zxid): PendingSync | undefined {
    return this.#confirmedSyncs.take(applied);
  }

  /** Sends the content of `#record`. */
  #send(session: SessionRef, cxid: number, opCode: number, identities?: Identities): void {
    const { bytes, offset } = this.#record;
    this.#link.request(session, cxid, opCode, this.#reader.wrap(bytes, 0, offset), identities);
  }

  /**
   * An observer receives a txn when it is committed. Requests that the session sent elsewhere may
   * be proposed by now and committed later, and would be taken for requests sent here with the same
   * xid; after a sync they have arrived.
   */
  revalidate(session: SessionRef, timeoutMs: Millis): undefined {
    this.#link.revalidate(session, timeoutMs);
    if (this.role === 'follower') return;
    const { sessionHigh, sessionLow } = session;
    this.#pendingSyncs.push({ kind: 'session', sessionHigh, sessionLow, isValid: undefined });
    this.#record.clear();
    this.#record.ustring('/');
    this.#send(session, 0, OpCode.sync);
  }

  /**
   * The leader has answered whether the session is alive. Returns true if the server can use the
   * answer at once; false if it must wait for the sync.
   */
  revalidated({ sessionHigh, sessionLow }: SessionRef, isValid: boolean): boolean {
    for (const waiting of this.#pendingSyncs.values()) {
      if (waiting.kind !== 'session' || waiting.isValid !== undefined) continue;
      if (waiting.sessionHigh !== sessionHigh || waiting.sessionLow !== sessionLow) continue;
      waiting.isValid = isValid;
      return false;
    }
    return true;
  }

  get leader(): Sid {
    return this.#link.leader;
  }

  get acceptsTransfers(): boolean {
    return this.#link.leaderAcceptsTransfers;
  }

  get acceptsKeeperWrites(): boolean {
    return this.#link.leaderAcceptsKeeperWrites;
  }

  get queuedBytes(): number {
    return this.#link.queuedBytes;
  }

  appended(): void {
    // The learner owns the log; committed txns arrive by `commit`.
  }

  get hasCommitted(): boolean {
    return this.#committed.length > 0;
  }

  takeCommitted(): Proposal {
    const sent = this.#committed.shift();
    if (sent === undefined) throw new Error('take() was called without a committed txn');
    const { type, clientHigh, clientLow } = sent.header;
    if (type === OpCode.closeSession && this.#closeRequested.size > 0) this.#closeRequested.delete(sessionIdOf(clientHigh, clientLow));
    const origin = this.#originOf(sent);
    return { ...sent, txn: origin.isUpgradeRefused ? refusalOf(sent.txn) : sent.txn, origin, node: 0 };
  }

  #originOf({ zxid, header, mayBeLocal }: LeaderTxn): WriteOrigin {
    const { clientHigh: sessionHigh, clientLow: sessionLow, cxid, type } = header;
    const head = mayBeLocal ? this.#oldestPendingWrite(sessionHigh, sessionLow, zxid, type) : undefined;
    if (head !== undefined && head.cxid === cxid) {
      this.#cnxns.get(head.cnxn)!.isOldestWriteCommitted = true;
      return head;
    }
    return {
      kind: 'write',
      cnxn: noCnxn,
      owner: localOwner,
      sessionHigh,
      sessionLow,
      cxid,
      opCode: type,
      identities: Identities.none,
      heldBytes: 0,
      frameBytes: 0,
      isUpgradeRefused: false,
      keeperParts: undefined,
      arrivedMs: 0,
    };
  }

  /**
   * The oldest write of a session that waits here for its txn; undefined if it belongs to an
   * earlier connection of the session, which may have used the same xids, or if `zxid` does.
   */
  #oldestPendingWrite(high: number, low: number, zxid: Zxid, type: number): WriteOrigin | undefined {
    const { sessions } = this.#tracker;
    const slot = sessions.find(high, low);
    if (slot === -1) return undefined;
    const cnxn = this.#cnxns.get(sessions.cnxnOf(slot));
    const head = cnxn?.pendingRequests.peek();
    const write = head?.kind === 'write' ? head : undefined;
    // No client waits for the createSession that makes a local session global.
    if (type === OpCode.createSession) return write?.opCode === OpCode.createSession ? write : undefined;
    if (this.#tracker.takeStrayWrite(slot)) return undefined;
    return cnxn === undefined || zxid <= cnxn.resumedAtZxid ? undefined : write;
  }

  forgetApplied(): boolean {
    return true;
  }

  /**
   * The leader ends it like a session that its client has closed. The client may be connected to
   * any server.
   */
  expireNow(session: SessionRef): boolean {
    const id = idOfSession(session);
    if (this.#replica.sessions.find(session.sessionHigh, session.sessionLow) === -1 || this.#closeRequested.has(id)) return false;
    this.#closeRequested.add(id);
    this.#record.clear();
    this.#send(session, 0, OpCode.closeSession);
    return true;
  }

  drainUnapplied(): Proposal[] {
    return Array.from({ length: this.#committed.length }, () => this.takeCommitted());
  }

  wake(): undefined {
    // Only the leader sweeps znodes and expires sessions.
  }

  expireSessions(): undefined {
    // Only the leader expires sessions.
  }

  deadline(): undefined {
    return undefined;
  }

  fingerprint(to: Fingerprint): void {
    to.text(this.role);
    to.number(this.#committed.length);
    for (const { zxid, mayBeLocal } of this.#committed.values()) {
      to.number(zxid);
      to.number(mayBeLocal ? 1 : 0);
    }
    to.number(this.#pendingSyncs.length);
    for (const waiting of this.#pendingSyncs.values()) {
      if (waiting.kind === 'sync') to.number(waiting.cnxn);
      else to.text(`${waiting.sessionHigh} ${waiting.sessionLow} ${waiting.isValid}`);
    }
    this.#confirmedSyncs.fingerprint(to);
    to.number(this.#closeRequested.size);
    for (const session of this.#closeRequested) to.text(formatSessionId(session));
  }
}

/**
 * The leader does not know that the session is local, and calls it expired. A client would believe
 * that, so it gets the true reason. (In ZooKeeper a multi sent to a learner is answered
 * SessionExpired.)
 */
function refusalOf(txn: Txn): Txn {
  const { txn: refusal } = errorTxn(ErrorCode.EphemeralOnLocalSession);
  const isCalledExpired = (one: Txn) => one.kind === 'error' && one.err === ErrorCode.SessionExpired;
  if (txn.kind !== 'multi') return isCalledExpired(txn) ? refusal : txn;
  return { ...txn, txns: txn.txns.map((part) => (isCalledExpired(part.txn) ? { ...part, txn: refusal } : part)) };
}
