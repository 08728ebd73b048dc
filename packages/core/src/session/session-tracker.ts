/**
 * Decides which sessions are alive. Only one server of an ensemble does, the leader; a standalone
 * server does it for itself.
 *
 * It knows a session from the client's request for it until its closeSession txn has been applied,
 * which is longer at both ends than in the replica's table. A session marked as closing accepts no
 * further touch and no further write.
 *
 * It also has the local sessions of this server (request/local-sessions.ts), of which no other
 * server knows; every server decides for itself when one of them expires.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { CnxnId, SessionOwner } from '../client-output.ts';
import { ExpiryQueue } from './expiry-queue.ts';
import type { ForeignSessions } from './foreign-sessions.ts';
import type { SessionRef } from './session-ref.ts';
import { type SessionSlot, SessionTable } from './session-table.ts';

/** The server that has this tracker. */
export const localOwner: SessionOwner = 0;
/** The owner of the session before it moved. */
export const previousOwner: SessionOwner = -2;
/** No server has sent a request for the session since this server leads. */
const unknownOwner: SessionOwner = -1;

/** What others may read of the sessions; only the tracker changes them. */
export type TrackedSessions = Pick<SessionTable, 'count' | 'find' | 'high' | 'low' | 'timeoutMs' | 'isClosing' | 'isLocal' | 'cnxnOf'>;

/** Sessions by the time at which they are due, for `SessionExpiry` and operators. */
export type SessionDueTimes = Pick<ExpiryQueue, 'deadline' | 'takeDue' | 'buckets'>;

export class SessionTracker {
  readonly #table = new SessionTable();
  /** Also has the sessions that are closing. Timeouts are as granted at creation. */
  readonly sessions: TrackedSessions = this.#table;
  readonly #expiry: ExpiryQueue;
  /** Global sessions by the time at which they are due. Only `SessionExpiry` takes some out. */
  readonly expiry: SessionDueTimes;
  readonly #localExpiry: ExpiryQueue;
  /** The same for local sessions. */
  readonly localExpiry: SessionDueTimes;
  /** The number of local sessions. */
  #localCount = 0;
  /**
   * Writes that earlier connections of a local session have left without an answer, at a learner.
   * The leader answers in order, so their txns come before those of the session's present
   * connection. Sessions without such writes are not in the map.
   */
  readonly #strayWrites = new Map<SessionSlot, number>();
  readonly #foreign: ForeignSessions | undefined;
  readonly #tickMs: Millis;
  /**
   * Owners of the sessions of other servers' clients, and of those with unknown owner. A session
   * that is not in the map belongs to a client of this server.
   */
  readonly #owners = new Map<SessionSlot, SessionOwner>();
  /** See `openAwaitingCreate`. */
  readonly #awaitingCreate = new Set<SessionSlot>();
  /**
   * How often each session has moved to another connection, as far as this server knows; sessions
   * that never moved are not in the map.
   */
  readonly #moveCounts = new Map<SessionSlot, number>();
  /**
   * Sessions touched since the last `takeTouched`, with the timeouts granted; undefined if it is
   * never called.
   */
  readonly #touched: Map<SessionSlot, Millis> | undefined;

  /**
   * @param recordsTouches whether `takeTouched` will be called.
   * @param foreign for a leader whose learners have local sessions.
   */
  constructor(tickMs: Millis, recordsTouches = false, foreign?: ForeignSessions) {
    this.#expiry = new ExpiryQueue(tickMs);
    this.expiry = this.#expiry;
    this.#localExpiry = new ExpiryQueue(tickMs);
    this.localExpiry = this.#localExpiry;
    this.#foreign = foreign;
    this.#tickMs = tickMs;
    this.#touched = recordsTouches ? new Map() : undefined;
  }

  open(high: number, low: number, timeoutMs: Millis, elapsedMs: Millis): SessionSlot {
    const slot = this.#table.open(high, low, timeoutMs);
    this.#expiry.touch(slot, elapsedMs, timeoutMs);
    return slot;
  }

  /** -1 if the session is unknown or closing. */
  findLive(high: number, low: number): SessionSlot {
    const slot = this.#table.find(high, low);
    return slot !== -1 && this.#table.isClosing(slot) ? -1 : slot;
  }

  /** -1 if the session is unknown, closing or local. */
  findLiveGlobal(high: number, low: number): SessionSlot {
    const slot = this.findLive(high, low);
    return slot !== -1 && this.#table.isLocal(slot) ? -1 : slot;
  }

  /**
   * Whether a write of the session may be validated. A session that this server does not know may
   * be a local session of another one; a local one that is closing sent the write before.
   */
  acceptsWritesOf({ sessionHigh: high, sessionLow: low }: SessionRef): boolean {
    const slot = this.#table.find(high, low);
    if (slot === -1) return this.#foreign?.mayExist(high, low) === true;
    return !this.#table.isClosing(slot) || this.#table.isLocal(slot);
  }

  /** Grants the session `timeoutMs` from now. Returns false if it is closing. */
  touch(slot: SessionSlot, elapsedMs: Millis, timeoutMs: Millis): boolean {
    if (this.#table.isClosing(slot)) return false;
    if (this.#table.isLocal(slot)) {
      this.#localExpiry.touch(slot, elapsedMs, timeoutMs);
      return true;
    }
    this.#expiry.touch(slot, elapsedMs, timeoutMs);
    this.#touched?.set(slot, timeoutMs);
    return true;
  }

  /** Visits the sessions that were touched since the last call, and forgets them. */
  takeTouched(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    if (this.#touched === undefined) return;
    for (const [slot, timeoutMs] of this.#touched) visit(this.#table.high(slot), this.#table.low(slot), timeoutMs);
    this.#touched.clear();
  }

  setOwner(slot: SessionSlot, owner: SessionOwner): void {
    const known = this.#owners.get(slot) ?? localOwner;
    if (known !== owner && known !== unknownOwner) this.countMove(slot);
    if (owner === localOwner) this.#owners.delete(slot);
    else this.#owners.set(slot, owner);
  }

  /**
   * Sets the owner to unknown: the first server that sends a request for the session becomes its
   * owner.
   */
  forgetOwner(slot: SessionSlot): void {
    this.#owners.set(slot, unknownOwner);
  }

  /**
   * Whether requests of the session may come through `owner`. If the owner is unknown, this becomes
   * it.
   */
  checkOwner(slot: SessionSlot, owner: SessionOwner): boolean {
    const known = this.#owners.get(slot) ?? localOwner;
    if (known === unknownOwner) this.setOwner(slot, owner);
    return known === owner || known === unknownOwner;
  }

  isOwnedBy(slot: SessionSlot, owner: SessionOwner): boolean {
    return (this.#owners.get(slot) ?? localOwner) === owner;
  }

  /**
   * The number of moves. If it has changed, a request that was waiting here belongs to an older
   * connection, even if it came through the server at which the session is again. 0 for an unknown
   * session, whose slot is -1.
   */
  moveCountOf(slot: SessionSlot): number {
    return this.#moveCounts.get(slot) ?? 0;
  }

  /**
   * The session moves to another connection, or is about to: waiting requests of an older one must
   * have no effect any more.
   */
  countMove(slot: SessionSlot): void {
    this.#moveCounts.set(slot, (this.#moveCounts.get(slot) ?? 0) + 1);
  }

  /**
   * No more touches or writes: its closeSession has been requested. A local session stays in its
   * queue: it also ends if its connection is lost before its closeSession is answered.
   */
  setClosing(slot: SessionSlot): void {
    this.#table.setClosing(slot);
    this.#expiry.remove(slot);
  }

  remove(slot: SessionSlot): void {
    if (this.#table.isLocal(slot)) this.#localCount--;
    else this.#foreign?.remember(this.#table.high(slot), this.#table.low(slot));
    this.#localExpiry.remove(slot);
    this.#strayWrites.delete(slot);
    this.#expiry.remove(slot);
    this.#owners.delete(slot);
    this.#awaitingCreate.delete(slot);
    this.#moveCounts.delete(slot);
    this.#touched?.delete(slot);
    this.#table.remove(slot);
  }

  // ---- sessions whose createSession waits for its turn
  //
  // A leader opens the session of another server's client when its createSession arrives. The client can
  // send nothing before the answer, so the session does not expire before its createSession is proposed.

  /**
   * Opens such a session. That is not a move: requests that the session sent before, as a local one,
   * may be waiting here.
   */
  openAwaitingCreate(owner: SessionOwner, high: number, low: number, timeoutMs: Millis, elapsedMs: Millis): void {
    const slot = this.open(high, low, timeoutMs, elapsedMs);
    this.#owners.set(slot, owner);
    this.#awaitingCreate.add(slot);
  }

  isAwaitingCreate(slot: SessionSlot): boolean {
    return this.#awaitingCreate.has(slot);
  }

  /**
   * A session that is due lives on if it awaits its createSession: its closeSession must not come
   * first. Returns whether it does.
   */
  maybeExtendAwaitingCreate(slot: SessionSlot, elapsedMs: Millis): boolean {
    if (!this.#awaitingCreate.has(slot)) return false;
    this.#expiry.touch(slot, elapsedMs, this.#table.timeoutMs(slot));
    return true;
  }

  /**
   * A createSession is about to be proposed. If the session awaited it, its client is answered only
   * after that, so its whole timeout begins now.
   */
  endAwaitingCreate(high: number, low: number, elapsedMs: Millis): void {
    const slot = this.#table.find(high, low);
    if (this.maybeExtendAwaitingCreate(slot, elapsedMs)) this.#awaitingCreate.delete(slot);
  }

  // ---- local sessions

  get localCount(): number {
    return this.#localCount;
  }

  /** A new session of which no other server knows. */
  openLocal(high: number, low: number, timeoutMs: Millis, elapsedMs: Millis): SessionSlot {
    const slot = this.#table.open(high, low, timeoutMs);
    this.#table.setLocal(slot, true);
    this.#localCount++;
    this.#localExpiry.touch(slot, elapsedMs, timeoutMs);
    return slot;
  }

  /** A local session becomes global: its createSession is about to be proposed. */
  upgrade(slot: SessionSlot, elapsedMs: Millis): void {
    this.#table.setLocal(slot, false);
    this.#localCount--;
    this.#localExpiry.remove(slot);
    this.touch(slot, elapsedMs, this.#table.timeoutMs(slot));
  }

  /** The connection of a session is lost while `count` of its writes are with the leader. */
  addStrayWrites(slot: SessionSlot, count: number): void {
    // The leader itself knows which request each of its txns answers; and before a global session
    // is resumed, the leader says up to which zxid its earlier requests go.
    if (count === 0 || this.#touched === undefined || !this.#table.isLocal(slot)) return;
    this.#strayWrites.set(slot, (this.#strayWrites.get(slot) ?? 0) + count);
  }

  /**
   * A txn answers the oldest unanswered write of the session. Returns whether an earlier connection
   * sent that write.
   */
  takeStrayWrite(slot: SessionSlot): boolean {
    const count = this.#strayWrites.size === 0 ? undefined : this.#strayWrites.get(slot);
    if (count === undefined) return false;
    if (count === 1) this.#strayWrites.delete(slot);
    else this.#strayWrites.set(slot, count - 1);
    return true;
  }

  /** The session is global, and the leader has said which txns answer earlier requests. */
  forgetStrayWrites(slot: SessionSlot): void {
    this.#strayWrites.delete(slot);
  }

  setCnxn(slot: SessionSlot, cnxn: CnxnId): void {
    if (cnxn !== -1 && this.#table.hadCnxn(slot)) this.countMove(slot);
    this.#table.setCnxn(slot, cnxn);
  }

  /**
   * Everything that can influence behaviour, for an explorer. A touch is rounded up to a tick, so
   * the position within the current tick counts too, also while there is no session.
   */
  fingerprint(to: Fingerprint, nowMs: Millis): void {
    const table = this.#table;
    const due = new Map<SessionSlot, Millis>();
    for (const queue of [this.#expiry, this.#localExpiry]) {
      for (const { dueMs, slots } of queue.buckets()) for (const slot of slots) due.set(slot, dueMs);
    }
    const rows: string[] = [];
    table.forEach((slot) => {
      const dueMs = due.get(slot);
      const kind = table.isLocal(slot)
        ? `local ${this.#strayWrites.get(slot) ?? 0}`
        : this.#awaitingCreate.has(slot)
          ? 'awaited'
          : 'global';
      const id = `${table.high(slot)} ${table.low(slot)} ${table.timeoutMs(slot)} ${kind} ${table.isClosing(slot)} ${table.cnxnOf(slot)}`;
      const left = dueMs === undefined ? '-' : Math.max(0, dueMs - nowMs);
      rows.push(
        `${id} ${left} ${this.#owners.get(slot) ?? localOwner} ${this.#moveCounts.get(slot) ?? 0} ${this.#touched?.get(slot) ?? '-'}`,
      );
    });
    to.number(rows.length);
    for (const row of rows.sort()) to.text(row);
    to.number(nowMs % this.#tickMs);
    this.#foreign?.fingerprint(to);
  }
}
