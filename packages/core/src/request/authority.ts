/**
 * A server that orders writes itself: one that stands alone, or the leader. It judges each against everything judged before, gives it a
 * zxid and sends it to the log; whoever keeps the log says from when on it may be applied. It alone ends sessions and sweeps znodes.
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

/** What an order needs of the server that it works for. */
export interface OrderParts extends PrepareParts {
  readonly load: Load;
  /** The write that waits at the head of its session's line here, if the txn may be its own. */
  readonly headOfLine: (high: number, low: number, zxid: Zxid) => WriteOrigin | undefined;
}

/** Makes what orders the writes of a server. */
export type OrderFactory = (parts: OrderParts, now: Now) => Order;

/** What a leader knows by its learners alone. `Leader` has this shape. */
export interface Lead {
  /** Of one of its own clients: when it is sure that it leads, and has handed over all that was committed, it calls `Server.synced`. */
  sync(sync: WaitingSync, now: Now): void;
  /** Whatever a learner had heard of sessions by then it has passed on. Infinity while there is no learner that serves. */
  readonly learnersHeardMs: Millis;
  /** Until when a session that is due at `dueMs` waits for learners that the configuration does not have; undefined when it does not. */
  strangersAwaitedMs(dueMs: Millis): Millis | undefined;
  /** When learners were last asked whom they have heard. */
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
  /** Everything up to here may be applied. */
  #committed: Zxid;
  readonly #syncs = new SyncsBehind();
  work = 0;

  readonly #lead: Lead | undefined;

  /** @param lead of a leader; undefined for a standalone server. */
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
      // Nobody knows when they were last heard of: all get their full time again.
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

  /** Of a request that came through another server: there, the session may seem to live that has ended or moved meanwhile. */
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

  /** A leader may have lost its lead without knowing it. */
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
    if (proposal === undefined) throw new Error('nothing is proposed');
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

  /** As of when sessions may be judged. A leader asks its learners once for each time that a session is due. */
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
    // Learners have been asked: the last answer brings the turn in which it is decided.
    const waits = this.#lead.learnersAskedMs >= due && this.#lead.learnersHeardMs < due;
    return waits ? this.#lead.strangersAwaitedMs(due) : due;
  }

  /** What is outstanding follows from the proposals and the tree; their bytes are written by whoever keeps the log. */
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

  /** Takes a proposal, or begins the job that will make one. */
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
    // Those of a setACL are counted before it is judged.
    if ('acl' in txn && txn.kind !== 'setACL') this.work += txn.acl.length * unitsPerAclEntry;
    this.#proposals.push(proposal);
    this.#load.proposed(proposal);
  }
}

export function earliest(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.min(a, b);
}

/** How a standalone server orders its writes. */
export function standaloneOrder(log: TxnLog): OrderFactory {
  return (parts, now) => new Authority(parts, log, now);
}
