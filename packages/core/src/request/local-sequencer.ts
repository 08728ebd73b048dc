/**
 * Orders writes on this server: a standalone server or the leader. It validates each write against
 * everything validated before, assigns a zxid and appends the txn to the log; the owner of the log
 * reports which txns may be applied. Only this order expires sessions and sweeps znodes.
 */
import { ErrorCode, type Millis, OpCode, Reader, type Sid, type Zxid } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import { Fifo } from '../fifo.ts';
import { msUntil, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { TxnLog } from '../txn-log.ts';
import type { Observer } from '../observer.ts';
import { SessionExpiry } from '../session/session-expiry.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { SessionSlot } from '../session/session-table.ts';
import { localOwner, previousOwner, type SessionTracker } from '../session/session-tracker.ts';
import { bytesPerUnit, type Job, startJob, unitsPerAclEntry, unitsPerChange, unitsPerRequest } from '../step-budget.ts';
import { HeldWrites } from './held-writes.ts';
import type { Load } from '../pending/load.ts';
import type { WriteSequencer } from './write-sequencer.ts';
import { Preparer, type PrepareJob, type ReconfigLeader } from './prepare.ts';
import type { ValidationDependencies } from './write-validator.ts';
import { type Proposal, serverOrigin, type WriteOrigin, fingerprintWriteOrigin } from '../pending/proposal.ts';
import type { PendingSync } from '../pending/pending-request.ts';
import { SyncsAwaitingApply } from './syncs-awaiting-apply.ts';
import { ContainerManager } from './container-manager.ts';

/** What a sequencer needs from its server. */
export interface SequencerDependencies extends ValidationDependencies {
  readonly load: Load;
  readonly cnxns: CnxnTable;
}

/** Creates the sequencer of a server's writes. */
export type SequencerFactory = (parts: SequencerDependencies, now: Now) => WriteSequencer;

/** What a leader knows through its learners. `Leader` implements it. */
export interface SequencerLeader extends ReconfigLeader {
  readonly sid: Sid;
  /**
   * A sync of a client of the leader. Once the leader is sure that it still leads, and has
   * delivered all committed txns, it calls `Server.synced`.
   */
  sync(sync: PendingSync, now: Now): void;
  /**
   * Every sign of life of a session that a learner received before this time has been reported
   * here. Infinity while no learner serves clients.
   */
  readonly learnersWatermarkMs: Millis;
  /**
   * The time until which a session that is due at `dueMs` waits for learners outside the
   * configuration; undefined if it does not wait.
   */
  unknownObserversAwaitedUntilMs(dueMs: Millis): Millis | undefined;
  /** When learners were last asked for the sessions with signs of life. */
  readonly learnersPolledMs: Millis;
  pollLearners(now: Now): void;
}

export class LocalSequencer implements WriteSequencer {
  readonly role: 'standalone' | 'leader';
  readonly isReadOnly = false;
  readonly forwardsToLeader = false;
  readonly #tracker: SessionTracker;
  readonly #load: Load;
  readonly #observer: Observer;
  readonly #preparer: Preparer;
  readonly #sessionExpiry: SessionExpiry;
  readonly #containerManager: ContainerManager;
  /** Proposed and not yet applied, in zxid order. */
  readonly #proposals = new Fifo<Proposal>();
  /** All txns up to this one may be applied. */
  #committed: Zxid;
  readonly #confirmedSyncs = new SyncsAwaitingApply();
  readonly #held = new HeldWrites();
  /** For the record of a write that waited. */
  readonly #heldReader = new Reader();
  workUnits = 0;
  preparingWrite: WriteOrigin | undefined;

  readonly #leader: SequencerLeader | undefined;

  /** @param leader the leader; undefined for a standalone server. */
  constructor(parts: SequencerDependencies, log: TxnLog, now: Now, leader?: SequencerLeader) {
    const { options, replica, tracker, load, observer } = parts;
    this.role = leader === undefined ? 'standalone' : 'leader';
    this.#leader = leader;
    this.#tracker = tracker;
    this.#load = load;
    this.#observer = observer;
    this.#preparer = new Preparer(parts, log, leader);
    this.#sessionExpiry = new SessionExpiry(tracker, tracker.expiry);
    this.#containerManager = new ContainerManager(replica.tree, options, now);
    this.#committed = replica.lastZxid;
    const { sessions } = replica;
    sessions.forEach((known) => {
      // Their last sign of life is unknown: each gets its full timeout again.
      const slot = tracker.open(sessions.high(known), sessions.low(known), sessions.timeoutMs(known), now.elapsedMs);
      if (this.role === 'leader') tracker.forgetOwner(slot);
    });
  }

  get queuedBytes(): number {
    return this.#held.bytes;
  }

  get leader(): Sid | undefined {
    return this.#leader?.sid;
  }

  get acceptsKeeperWrites(): boolean {
    return true;
  }

  get acceptsTransfers(): boolean {
    return this.#leader !== undefined;
  }

  submitWrite(origin: WriteOrigin, reader: Reader, now: Now): Job | undefined {
    if (this.#held.mustHold) {
      this.#held.push(origin, reader, undefined, this.#movesOf(origin));
      return undefined;
    }
    return this.#order(origin, reader, now);
  }

  #order(origin: WriteOrigin, reader: Reader, now: Now): Job | undefined {
    const error = this.#checkSession(origin);
    if (error !== ErrorCode.Ok) {
      this.#enqueue(this.#preparer.reject(origin, error, now));
      return undefined;
    }
    const outcome =
      origin.opCode === OpCode.closeSession ? this.#preparer.closeSession(origin, now) : this.#preparer.prepare(origin, reader, now);
    return this.#enqueueResult(outcome, origin, now);
  }

  /**
   * For a request that came through another server, where a session that has expired or moved may
   * still seem alive.
   */
  #checkSession(origin: WriteOrigin): number {
    const { owner, opCode, sessionHigh: high, sessionLow: low } = origin;
    if (owner === localOwner || opCode === OpCode.closeSession) return ErrorCode.Ok;
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1) return this.#tracker.acceptsWritesOf(origin) ? ErrorCode.Ok : ErrorCode.SessionExpired;
    return this.#tracker.checkOwner(slot, owner) ? ErrorCode.Ok : ErrorCode.SessionMoved;
  }

  openSession(origin: WriteOrigin, timeoutMs: Millis, now: Now): void {
    if (this.#held.mustHold) this.#held.push(origin, undefined, timeoutMs, 0);
    else this.#orderSession(origin, timeoutMs, now);
  }

  #orderSession(origin: WriteOrigin, timeoutMs: Millis, now: Now): void {
    this.#tracker.endAwaitingCreate(origin.sessionHigh, origin.sessionLow, now.elapsedMs);
    this.#enqueue(this.#preparer.createSession(origin, timeoutMs, now));
  }

  // ---- a transfer of the lead

  /**
   * From here on no txn is ordered: neither requests of clients, nor the end of a session, nor the
   * removal of a znode. Or the leader goes on, and what waited is ordered at the next `wake`.
   */
  holdWrites(isHeld: boolean): void {
    this.#held.isHolding = isHeld;
  }

  #movesOf({ sessionHigh, sessionLow }: WriteOrigin): number {
    return this.#tracker.moveCountOf(this.#tracker.sessions.find(sessionHigh, sessionLow));
  }

  /** Orders a write that has waited. Its session may have moved meanwhile, or ended. */
  #orderHeld(now: Now): Job | undefined {
    const { origin, record, sessionTimeoutMs, sessionMoves } = this.#held.take();
    this.workUnits += unitsPerRequest + record.length / bytesPerUnit;
    if (sessionTimeoutMs !== undefined) {
      this.#orderSession(origin, sessionTimeoutMs, now);
      return undefined;
    }
    const { sessions } = this.#tracker;
    const slot = sessions.find(origin.sessionHigh, origin.sessionLow);
    // A local session is closing from the moment when its closeSession arrives, after this write.
    const isGone = slot === -1 || (sessions.isClosing(slot) && !sessions.isLocal(slot));
    const hasMoved = !isGone && this.#tracker.moveCountOf(slot) !== sessionMoves;
    if (origin.owner === localOwner && (isGone || hasMoved)) {
      this.#enqueue(this.#preparer.reject(origin, isGone ? ErrorCode.SessionExpired : ErrorCode.SessionMoved, now));
      return undefined;
    }
    // It must not be taken for a request of the session's new connection.
    if (hasMoved && this.#tracker.isOwnedBy(slot, origin.owner)) origin.owner = previousOwner;
    return this.#order(origin, this.#heldReader.wrap(record, 0, record.length), now);
  }

  /** A leader may have been replaced without knowing it. */
  get isCaughtUp(): boolean {
    return this.#leader === undefined && this.#proposals.length === 0;
  }

  sync(sync: PendingSync, now: Now): void {
    if (this.#leader === undefined) this.#confirmedSyncs.push(sync, this.#preparer.lastZxid);
    else this.#leader.sync(sync, now);
  }

  synced(sync: PendingSync): void {
    this.#confirmedSyncs.push(sync, this.#committed);
  }

  takeSynced(applied: Zxid): PendingSync | undefined {
    return this.#confirmedSyncs.take(applied);
  }

  revalidate({ sessionHigh: high, sessionLow: low }: SessionRef): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1) return false;
    this.#tracker.setOwner(slot, localOwner);
    return true;
  }

  appended(zxid: Zxid): void {
    this.#committed = zxid;
  }

  get hasCommitted(): boolean {
    const next = this.#proposals.peek();
    return next !== undefined && next.zxid <= this.#committed;
  }

  takeCommitted(): Proposal {
    const proposal = this.#proposals.shift();
    if (proposal === undefined) throw new Error('take() was called without a committed proposal');
    this.#load.applied(proposal);
    return proposal;
  }

  drainUnapplied(): Proposal[] {
    return Array.from({ length: this.#proposals.length }, () => this.takeCommitted());
  }

  forgetApplied(zxid: Zxid, max?: number): boolean {
    return this.#preparer.outstandingChanges.removeApplied(zxid, max);
  }

  expireNow({ sessionHigh: high, sessionLow: low }: SessionRef): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1 || this.#tracker.isAwaitingCreate(slot)) return false;
    this.#sessionExpiry.expireNow(slot);
    return true;
  }

  wake(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined {
    if (this.#held.isHolding) return undefined;
    while (this.#held.canTake) {
      if (hasEnough()) return undefined;
      const job = this.#orderHeld(now);
      if (job !== undefined) return job;
    }
    const watermarkMs = this.#expiryWatermarkMs(now, heardMs);
    while (!hasEnough()) {
      const due = this.#sessionExpiry.nextExpired(watermarkMs);
      if (due === -1) break;
      const job = this.#expireSession(due, now);
      if (job !== undefined) return job;
    }
    this.#containerManager.wake(now, (path, isDue) => {
      const proposal = this.#preparer.deleteContainer(serverOrigin(OpCode.deleteContainer, 0, 0, now), path, now, isDue);
      if (proposal === undefined) return;
      this.#enqueue(proposal);
      this.#observer.notice({ kind: 'containerSwept', path });
    });
    return undefined;
  }

  expireSessions(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined {
    // The createSession of a session that is due may still wait.
    if (this.#held.mustHold) return undefined;
    const watermarkMs = this.#expiryWatermarkMs(now, heardMs);
    const due = this.#tracker.expiry.deadline();
    if (!this.#sessionExpiry.hasForcedExpirations && (due === undefined || due > watermarkMs)) return undefined;
    return startJob(this.#expiringSessions(now, watermarkMs, hasEnough));
  }

  *#expiringSessions(began: Now, heardMs: Millis, hasEnough: () => boolean): Job {
    let now = began;
    for (let due = this.#sessionExpiry.nextExpired(heardMs); due !== -1; due = this.#sessionExpiry.nextExpired(heardMs)) {
      const job = this.#expireSession(due, now);
      if (job !== undefined) yield* job;
      if (hasEnough()) now = yield;
    }
  }

  /**
   * The time as of which sessions may be expired. A leader asks its learners once for each time at
   * which a session is due.
   */
  #expiryWatermarkMs(now: Now, heardMs: Millis): Millis {
    if (this.#leader === undefined) return heardMs;
    const due = this.#tracker.expiry.deadline();
    if (due === undefined || due > now.elapsedMs) return heardMs;
    if (this.#leader.learnersPolledMs < due) this.#leader.pollLearners(now);
    return Math.min(heardMs, this.#leader.learnersWatermarkMs);
  }

  deadline(): Millis | undefined {
    if (this.#held.isHolding) return undefined;
    if (this.#held.canTake) return 0;
    return earlierOf(this.#expiryDeadline(), this.#containerManager.deadline());
  }

  #expiryDeadline(): Millis | undefined {
    if (this.#sessionExpiry.hasForcedExpirations) return 0;
    const due = this.#tracker.expiry.deadline();
    if (due === undefined || this.#leader === undefined) return due;
    // Learners have been asked: the last reply causes the turn that decides whether the session
    // expires.
    const waits = this.#leader.learnersPolledMs >= due && this.#leader.learnersWatermarkMs < due;
    return waits ? this.#leader.unknownObserversAwaitedUntilMs(due) : due;
  }

  /**
   * The outstanding changes follow from the proposals and the tree; the owner of the log writes the
   * bytes of the proposals.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    to.text(this.role);
    to.number(this.#committed);
    to.number(this.#preparer.lastZxid);
    to.number(this.#proposals.length);
    for (const { zxid, origin } of this.#proposals.values()) {
      to.number(zxid);
      fingerprintWriteOrigin(to, origin);
    }
    this.#confirmedSyncs.fingerprint(to);
    this.#held.fingerprint(to);
    to.number(msUntil(this.#expiryDeadline(), now.elapsedMs));
    to.number(msUntil(this.#containerManager.deadline(), now.elapsedMs));
  }

  #expireSession(slot: SessionSlot, now: Now): Job | undefined {
    const { outstandingChanges } = this.#preparer;
    const { sessions } = this.#tracker;
    const changesBefore = outstandingChanges.size;
    const origin = serverOrigin(OpCode.closeSession, sessions.high(slot), sessions.low(slot), now);
    const job = this.#enqueueResult(this.#preparer.closeSession(origin, now), origin, now);
    this.workUnits += unitsPerRequest + (outstandingChanges.size - changesBefore) * unitsPerChange;
    return job;
  }

  /** Enqueues a proposal, or starts the job that will produce one. */
  #enqueueResult(outcome: Proposal | PrepareJob, origin: WriteOrigin, now: Now): Job | undefined {
    if (!('zxid' in outcome)) {
      this.preparingWrite = origin;
      return this.#enqueueWhenPrepared(outcome, now);
    }
    this.#enqueue(outcome);
    this.#recordSequences(now);
    return undefined;
  }

  *#enqueueWhenPrepared(job: PrepareJob, now: Now): Job {
    this.#enqueue(yield* job);
    this.preparingWrite = undefined;
    this.#recordSequences(now);
  }

  /** Directly after the txn that made it due: the next create may depend on it. */
  #recordSequences(now: Now): void {
    for (let record = this.#preparer.recordSequence(now); record !== undefined; record = this.#preparer.recordSequence(now))
      this.#enqueue(record);
  }

  #enqueue(proposal: Proposal): void {
    if (proposal.origin.owner !== localOwner) proposal.origin.identities = Identities.none;
    const { txn } = proposal;
    // The entries of a setACL are counted before it is validated.
    if ('acl' in txn && txn.kind !== 'setACL') this.workUnits += txn.acl.length * unitsPerAclEntry;
    this.#proposals.push(proposal);
    this.#load.proposed(proposal);
  }
}

export function earlierOf(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.min(a, b);
}

/** Creates the order of a standalone server. */
export function standaloneSequencer(log: TxnLog): SequencerFactory {
  return (parts, now) => new LocalSequencer(parts, log, now);
}
