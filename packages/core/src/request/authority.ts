/**
 * Orders writes on this server: a standalone server or the leader. It validates each write against
 * everything validated before, assigns a zxid and appends the txn to the log; the owner of the log
 * reports which txns may be applied. Only this order expires sessions and sweeps znodes.
 */
import { ErrorCode, type Millis, OpCode, type Reader, type Zxid } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import { Fifo } from '../fifo.ts';
import { distance, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { TxnLog } from '../txn-log.ts';
import type { Observer } from '../observer.ts';
import { Expiry } from '../session/expiry.ts';
import type { SessionSlot } from '../session/session-table.ts';
import { ownerHere, type SessionTracker } from '../session/session-tracker.ts';
import { type Job, start, unitsPerAclEntry, unitsPerChange, unitsPerRequest } from './budget.ts';
import type { Load } from './load.ts';
import type { Order } from './order.ts';
import { Prepare, type PrepareJob, type PrepareParts } from './prepare.ts';
import { type Proposal, serverOrigin, type WriteOrigin, writeOrigin } from './proposal.ts';
import type { WaitingSync } from './session-order.ts';
import { SyncsBehind } from './syncs-behind.ts';
import { Sweeper } from './sweep.ts';

/** What an order needs from its server. */
export interface OrderParts extends PrepareParts {
  readonly load: Load;
  /** The write at the head of its session's queue here, if the txn `zxid` may be its result. */
  readonly headOfLine: (high: number, low: number, zxid: Zxid) => WriteOrigin | undefined;
}

/** Creates the order of a server's writes. */
export type OrderFactory = (parts: OrderParts, now: Now) => Order;

/** What a leader knows through its learners. `Leader` implements it. */
export interface Lead {
  /**
   * A sync of a client of the leader. Once the leader is sure that it still leads, and has
   * delivered all committed txns, it calls `Server.synced`.
   */
  sync(sync: WaitingSync, now: Now): void;
  /**
   * Every sign of life of a session that a learner received before this time has been reported
   * here. Infinity while no learner serves clients.
   */
  readonly learnersHeardMs: Millis;
  /**
   * The time until which a session that is due at `dueMs` waits for learners outside the
   * configuration; undefined if it does not wait.
   */
  strangersAwaitedMs(dueMs: Millis): Millis | undefined;
  /** When learners were last asked for the sessions with signs of life. */
  readonly learnersAskedMs: Millis;
  askLearners(now: Now): void;
}

export class Authority implements Order {
  readonly role: 'standalone' | 'leader';
  readonly passesOn = false;
  readonly queuedBytes = 0;
  readonly #tracker: SessionTracker;
  readonly #load: Load;
  readonly #observer: Observer;
  readonly #prepare: Prepare;
  readonly #expiry: Expiry;
  readonly #sweeper: Sweeper;
  /** Proposed and not yet applied, in zxid order. */
  readonly #proposals = new Fifo<Proposal>();
  /** All txns up to this one may be applied. */
  #committed: Zxid;
  readonly #syncs = new SyncsBehind();
  work = 0;

  readonly #lead: Lead | undefined;

  /** @param lead the leader; undefined for a standalone server. */
  constructor(parts: OrderParts, log: TxnLog, now: Now, lead?: Lead) {
    const { options, replica, tracker, load, observer } = parts;
    this.role = lead === undefined ? 'standalone' : 'leader';
    this.#lead = lead;
    this.#tracker = tracker;
    this.#load = load;
    this.#observer = observer;
    this.#prepare = new Prepare(parts, log);
    this.#expiry = new Expiry(tracker);
    this.#sweeper = new Sweeper(replica.tree, options, now);
    this.#committed = replica.lastZxid;
    const { sessions } = replica;
    sessions.forEach((known) => {
      // Their last sign of life is unknown: each gets its full timeout again.
      const slot = tracker.open(sessions.high(known), sessions.low(known), sessions.timeoutMs(known), now.elapsedMs);
      if (this.role === 'leader') tracker.forgetOwner(slot);
    });
  }

  write(origin: WriteOrigin, reader: Reader, now: Now): Job | undefined {
    const fault = this.#sessionFault(origin);
    if (fault !== ErrorCode.Ok) {
      this.#enqueue(this.#prepare.refuse(origin, fault, now));
      return undefined;
    }
    const outcome =
      origin.opCode === OpCode.closeSession ? this.#prepare.closeSession(origin, now) : this.#prepare.request(origin, reader, now);
    return this.#judged(outcome);
  }

  /**
   * For a request that came through another server, where a session that has expired or moved may
   * still seem alive.
   */
  #sessionFault({ owner, opCode, sessionHigh: high, sessionLow: low }: WriteOrigin): number {
    if (owner === ownerHere || opCode === OpCode.closeSession) return ErrorCode.Ok;
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1) return ErrorCode.SessionExpired;
    return this.#tracker.mayComeThrough(slot, owner) ? ErrorCode.Ok : ErrorCode.SessionMoved;
  }

  openSession(origin: WriteOrigin, timeoutMs: Millis, now: Now): void {
    const { owner, sessionHigh: high, sessionLow: low } = origin;
    if (owner !== ownerHere) this.#tracker.setOwner(this.#tracker.open(high, low, timeoutMs, now.elapsedMs), owner);
    this.#enqueue(this.#prepare.createSession(origin, timeoutMs, now));
  }

  /** A leader may have been replaced without knowing it. */
  get isCaughtUp(): boolean {
    return this.#lead === undefined && this.#proposals.length === 0;
  }

  sync(sync: WaitingSync, now: Now): void {
    if (this.#lead === undefined) this.#syncs.push(sync, this.#prepare.lastZxid);
    else this.#lead.sync(sync, now);
  }

  synced(sync: WaitingSync): void {
    this.#syncs.push(sync, this.#committed);
  }

  takeSynced(applied: Zxid): WaitingSync | undefined {
    return this.#syncs.take(applied);
  }

  revalidate(high: number, low: number): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1) return false;
    this.#tracker.setOwner(slot, ownerHere);
    return true;
  }

  appended(zxid: Zxid): void {
    this.#committed = zxid;
  }

  get hasNext(): boolean {
    const next = this.#proposals.peek();
    return next !== undefined && next.zxid <= this.#committed;
  }

  take(): Proposal {
    const proposal = this.#proposals.shift();
    if (proposal === undefined) throw new Error('take() was called without a committed proposal');
    this.#load.applied(proposal);
    return proposal;
  }

  rest(): Proposal[] {
    return Array.from({ length: this.#proposals.length }, () => this.take());
  }

  applied(zxid: Zxid, max?: number): boolean {
    return this.#prepare.outstanding.forget(zxid, max);
  }

  condemn(high: number, low: number): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (slot !== -1) this.#expiry.condemn(slot);
    return slot !== -1;
  }

  wake(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined {
    const sinceMs = this.#heardMs(now, heardMs);
    while (!hasEnough()) {
      const due = this.#expiry.next(sinceMs);
      if (due === -1) break;
      const job = this.#endSession(due, now);
      if (job !== undefined) return job;
    }
    this.#sweeper.wake(now, (path, isDue) => {
      const proposal = this.#prepare.sweep(serverOrigin(OpCode.deleteContainer, 0, 0, now), path, now, isDue);
      if (proposal === undefined) return;
      this.#enqueue(proposal);
      this.#observer.notice({ kind: 'containerSwept', path });
    });
    return undefined;
  }

  endSessions(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined {
    const sinceMs = this.#heardMs(now, heardMs);
    const due = this.#expiry.deadline();
    if (!this.#expiry.hasCondemned && (due === undefined || due > sinceMs)) return undefined;
    return start(this.#endingSessions(now, sinceMs, hasEnough));
  }

  *#endingSessions(began: Now, heardMs: Millis, hasEnough: () => boolean): Job {
    let now = began;
    for (let due = this.#expiry.next(heardMs); due !== -1; due = this.#expiry.next(heardMs)) {
      const job = this.#endSession(due, now);
      if (job !== undefined) yield* job;
      if (hasEnough()) now = yield;
    }
  }

  /**
   * The time as of which sessions may be judged. A leader asks its learners once for each time at
   * which a session is due.
   */
  #heardMs(now: Now, heardMs: Millis): Millis {
    if (this.#lead === undefined) return heardMs;
    const due = this.#expiry.deadline();
    if (due === undefined || due > now.elapsedMs) return heardMs;
    if (this.#lead.learnersAskedMs < due) this.#lead.askLearners(now);
    return Math.min(heardMs, this.#lead.learnersHeardMs);
  }

  deadline(): Millis | undefined {
    return earliest(this.#expiryDeadline(), this.#sweeper.deadline());
  }

  #expiryDeadline(): Millis | undefined {
    if (this.#expiry.hasCondemned) return 0;
    const due = this.#expiry.deadline();
    if (due === undefined || this.#lead === undefined) return due;
    // Learners have been asked: the last reply causes the turn in which the session is judged.
    const waits = this.#lead.learnersAskedMs >= due && this.#lead.learnersHeardMs < due;
    return waits ? this.#lead.strangersAwaitedMs(due) : due;
  }

  /**
   * The outstanding changes follow from the proposals and the tree; the owner of the log writes the
   * bytes of the proposals.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    to.text(this.role);
    to.number(this.#committed);
    to.number(this.#prepare.lastZxid);
    to.number(this.#proposals.length);
    for (const { zxid, origin } of this.#proposals.values()) {
      to.number(zxid);
      writeOrigin(to, origin);
    }
    this.#syncs.fingerprint(to);
    to.number(distance(this.#expiryDeadline(), now.elapsedMs));
    to.number(distance(this.#sweeper.deadline(), now.elapsedMs));
  }

  #endSession(slot: SessionSlot, now: Now): Job | undefined {
    const { outstanding } = this.#prepare;
    const changesBefore = outstanding.size;
    const origin = serverOrigin(OpCode.closeSession, this.#tracker.high(slot), this.#tracker.low(slot), now);
    const job = this.#judged(this.#prepare.closeSession(origin, now));
    this.work += unitsPerRequest + (outstanding.size - changesBefore) * unitsPerChange;
    return job;
  }

  /** Enqueues a proposal, or starts the job that will produce one. */
  #judged(outcome: Proposal | PrepareJob): Job | undefined {
    if ('zxid' in outcome) {
      this.#enqueue(outcome);
      return undefined;
    }
    return this.#judging(outcome);
  }

  *#judging(job: PrepareJob): Job {
    this.#enqueue(yield* job);
  }

  #enqueue(proposal: Proposal): void {
    if (proposal.origin.owner !== ownerHere) proposal.origin.identities = Identities.none;
    const { txn } = proposal;
    // The entries of a setACL are counted before it is validated.
    if ('acl' in txn && txn.kind !== 'setACL') this.work += txn.acl.length * unitsPerAclEntry;
    this.#proposals.push(proposal);
    this.#load.proposed(proposal);
  }
}

export function earliest(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.min(a, b);
}

/** Creates the order of a standalone server. */
export function standaloneOrder(log: TxnLog): OrderFactory {
  return (parts, now) => new Authority(parts, log, now);
}
