/**
 * Decides which sessions live. Only one server of an ensemble does, the leader; a standalone server is its own.
 *
 * It knows a session from the moment a client asks for one until its closeSession txn has been applied, which is longer on both sides
 * than the replica's table does. A session that has been marked as closing takes no further touch and no further write.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { CnxnId, SessionOwner } from '../client-output.ts';
import { ExpiryQueue } from './expiry-queue.ts';
import { type SessionSlot, SessionTable } from './session-table.ts';

/** The server that keeps the tracker. */
export const ownerHere: SessionOwner = 0;
/** Whoever was its owner before it moved. */
export const ownerBefore: SessionOwner = -2;
/** Nobody has spoken for the session since this server leads. */
const ownerUnknown: SessionOwner = -1;

export class SessionTracker {
  readonly #table = new SessionTable();
  readonly #expiry: ExpiryQueue;
  readonly #tickMs: Millis;
  /** Those of other servers' clients, and those that nobody has spoken for. A session that is not here is one of our own clients'. */
  readonly #owners = new Map<SessionSlot, SessionOwner>();
  /** How often each session has gone on over another connection, as far as this server knows; those that never have are not here. */
  readonly #moves = new Map<SessionSlot, number>();
  /** Since the last `takeTouched`, with the timeouts they were granted; undefined where nobody asks. */
  readonly #touched: Map<SessionSlot, Millis> | undefined;

  /** @param notesTouches whether `takeTouched` will be called. */
  constructor(tickMs: Millis, notesTouches = false) {
    this.#expiry = new ExpiryQueue(tickMs);
    this.#tickMs = tickMs;
    this.#touched = notesTouches ? new Map() : undefined;
  }

  get count(): number {
    return this.#table.count;
  }

  open(high: number, low: number, timeoutMs: Millis, elapsedMs: Millis): SessionSlot {
    const slot = this.#table.open(high, low, timeoutMs);
    this.#expiry.touch(slot, elapsedMs, timeoutMs);
    return slot;
  }

  /** -1 when the session is unknown or closing. */
  findLive(high: number, low: number): SessionSlot {
    const slot = this.#table.find(high, low);
    return slot !== -1 && this.#table.isClosing(slot) ? -1 : slot;
  }

  /** Also finds sessions that are closing. */
  find(high: number, low: number): SessionSlot {
    return this.#table.find(high, low);
  }

  /** Grants the session `timeoutMs` from now. Returns false when it is closing. */
  touch(slot: SessionSlot, elapsedMs: Millis, timeoutMs: Millis): boolean {
    if (this.#table.isClosing(slot)) return false;
    this.#expiry.touch(slot, elapsedMs, timeoutMs);
    this.#touched?.set(slot, timeoutMs);
    return true;
  }

  /** Hands over the sessions that were touched since the last call. */
  takeTouched(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    if (this.#touched === undefined) return;
    for (const [slot, timeoutMs] of this.#touched) visit(this.high(slot), this.low(slot), timeoutMs);
    this.#touched.clear();
  }

  setOwner(slot: SessionSlot, owner: SessionOwner): void {
    const known = this.#owners.get(slot) ?? ownerHere;
    if (known !== owner && known !== ownerUnknown) this.moved(slot);
    if (owner === ownerHere) this.#owners.delete(slot);
    else this.#owners.set(slot, owner);
  }

  /** Whoever speaks first for a session that nobody has spoken for since this server leads. */
  forgetOwner(slot: SessionSlot): void {
    this.#owners.set(slot, ownerUnknown);
  }

  /** Whether requests of the session may come through `owner`. The first one through whom they come is the one. */
  mayComeThrough(slot: SessionSlot, owner: SessionOwner): boolean {
    const known = this.#owners.get(slot) ?? ownerHere;
    if (known === ownerUnknown) this.setOwner(slot, owner);
    return known === owner || known === ownerUnknown;
  }

  isOwnedBy(high: number, low: number, owner: SessionOwner): boolean {
    return (this.#owners.get(this.#table.find(high, low)) ?? ownerHere) === owner;
  }

  /**
   * What waits here of a session is of an older connection if this has changed meanwhile, though it may have come through the server that
   * the session is back at. 0 for a session that is not known.
   */
  movesOf(high: number, low: number): number {
    return this.#moves.get(this.#table.find(high, low)) ?? 0;
  }

  /** The session goes on over another connection, or is about to: what waits here of an older one must have no effect any more. */
  moved(slot: SessionSlot): void {
    this.#moves.set(slot, (this.#moves.get(slot) ?? 0) + 1);
  }

  isClosing(slot: SessionSlot): boolean {
    return this.#table.isClosing(slot);
  }

  /** No more touches, no more writes: its closeSession is on the way. */
  setClosing(slot: SessionSlot): void {
    this.#table.setClosing(slot);
    this.#expiry.remove(slot);
  }

  remove(slot: SessionSlot): void {
    this.#expiry.remove(slot);
    this.#owners.delete(slot);
    this.#moves.delete(slot);
    this.#touched?.delete(slot);
    this.#table.remove(slot);
  }

  /** The connection that carries the session here, -1 when none does. */
  cnxnOf(slot: SessionSlot): CnxnId {
    return this.#table.cnxnOf(slot);
  }

  setCnxn(slot: SessionSlot, cnxn: CnxnId): void {
    if (cnxn !== -1 && this.#table.wasCarried(slot)) this.moved(slot);
    this.#table.setCnxn(slot, cnxn);
  }

  high(slot: SessionSlot): number {
    return this.#table.high(slot);
  }

  low(slot: SessionSlot): number {
    return this.#table.low(slot);
  }

  /** As granted when the session was created. */
  timeoutMs(slot: SessionSlot): Millis {
    return this.#table.timeoutMs(slot);
  }

  /** When the next bucket comes due, on the monotonic clock. */
  deadline(): Millis | undefined {
    return this.#expiry.deadline();
  }

  /** Visits at most `max` sessions whose bucket has come due, taking them out; returns whether more are due. */
  takeDue(elapsedMs: Millis, max: number, visit: (slot: SessionSlot) => void): boolean {
    return this.#expiry.takeDue(elapsedMs, max, visit);
  }

  /** Everything that can influence behaviour, for an explorer. A touch is rounded up to a tick, so how far this one has come counts too. */
  fingerprint(to: Fingerprint, nowMs: Millis): void {
    const table = this.#table;
    const due = new Map<SessionSlot, Millis>();
    for (const { dueMs, slots } of this.buckets()) for (const slot of slots) due.set(slot, dueMs);
    const rows: string[] = [];
    table.forEach((slot) => {
      const dueMs = due.get(slot);
      const id = `${table.high(slot)} ${table.low(slot)} ${table.timeoutMs(slot)} ${table.isClosing(slot)} ${table.cnxnOf(slot)}`;
      const left = dueMs === undefined ? '-' : Math.max(0, dueMs - nowMs);
      rows.push(`${id} ${left} ${this.#owners.get(slot) ?? ownerHere} ${this.#moves.get(slot) ?? 0} ${this.#touched?.get(slot) ?? '-'}`);
    });
    to.number(rows.length);
    for (const row of rows.sort()) to.text(row);
    if (rows.length > 0) to.number(nowMs % this.#tickMs);
  }

  buckets(): Iterable<{ dueMs: Millis; slots: readonly SessionSlot[] }> {
    return this.#expiry.buckets();
  }
}
