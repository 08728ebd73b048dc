/**
 * Sessions by id. A session has a slot, a small integer, from `open` to `remove`; all other data
 * per session are arrays indexed by it. Slots are reused, so the arrays stay as short as the
 * largest number of concurrent sessions.
 */
import type { Millis } from '@tskeeper/protocol';
import type { CnxnId } from '../client-output.ts';
import { LinearHash, mix } from '../tables/linear-hash.ts';
import { PagedInts } from '../tables/paged-numbers.ts';

/** From 0; -1 for no session. */
export type SessionSlot = number;

const flagOpen = 1;
const flagClosing = 2;
const flagHadCnxn = 4;
const flagLocal = 8;

function hash(high: number, low: number): number {
  return mix(Math.imul(high, 0x9e3779b1) ^ low);
}

export class SessionTable {
  readonly #high = new PagedInts();
  readonly #low = new PagedInts();
  readonly #timeoutMs = new PagedInts();
  readonly #cnxn = new PagedInts();
  /** 0 while the slot is unused. */
  readonly #flags = new PagedInts();
  /**
   * Holds slot + 1, since its items begin at 1. Ids come from servers, not from clients, so the
   * hash needs no seed.
   */
  readonly #index = new LinearHash((item) => hash(this.#high.get(item - 1), this.#low.get(item - 1)));
  readonly #unused: SessionSlot[] = [];
  /** Slots from here on have never been used. */
  #end = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /**
   * An existing session keeps its slot and gets the new timeout, as a replayed createSession
   * requires.
   */
  open(high: number, low: number, timeoutMs: Millis): SessionSlot {
    let slot = this.find(high, low);
    if (slot === -1) {
      slot = this.#unused.pop() ?? this.#end++;
      this.#ensureSlot(slot);
      this.#high.set(slot, high);
      this.#low.set(slot, low);
      this.#cnxn.set(slot, -1);
      this.#flags.set(slot, flagOpen);
      this.#index.insert(slot + 1, hash(high, low));
      this.#count++;
    }
    this.#timeoutMs.set(slot, timeoutMs);
    return slot;
  }

  find(high: number, low: number): SessionSlot {
    for (let item = this.#index.first(hash(high | 0, low | 0)); item !== 0; item = this.#index.next(item)) {
      if (this.#low.get(item - 1) === (low | 0) && this.#high.get(item - 1) === (high | 0)) return item - 1;
    }
    return -1;
  }

  /** Does nothing for an unused slot. */
  remove(slot: SessionSlot): void {
    if (!this.#isOpen(slot)) return;
    this.#index.delete(slot + 1, hash(this.#high.get(slot), this.#low.get(slot)));
    this.#flags.set(slot, 0);
    this.#unused.push(slot);
    this.#count--;
  }

  high(slot: SessionSlot): number {
    return this.#high.get(slot);
  }

  low(slot: SessionSlot): number {
    return this.#low.get(slot);
  }

  /**
   * As created, which is what snapshots contain; a client that resumes the session may request
   * another timeout.
   */
  timeoutMs(slot: SessionSlot): Millis {
    return this.#timeoutMs.get(slot);
  }

  isClosing(slot: SessionSlot): boolean {
    return (this.#flags.get(slot) & flagClosing) !== 0;
  }

  /** Whether only this server knows the session; see local-sessions.ts. */
  isLocal(slot: SessionSlot): boolean {
    return (this.#flags.get(slot) & flagLocal) !== 0;
  }

  setLocal(slot: SessionSlot, isLocal: boolean): void {
    const flags = this.#flags.get(slot);
    this.#flags.set(slot, isLocal ? flags | flagLocal : flags & ~flagLocal);
  }

  setClosing(slot: SessionSlot): void {
    this.#flags.set(slot, this.#flags.get(slot) | flagClosing);
  }

  /** The connection that carries the session on this server, or -1. */
  cnxnOf(slot: SessionSlot): CnxnId {
    return this.#cnxn.get(slot);
  }

  setCnxn(slot: SessionSlot, cnxn: CnxnId): void {
    this.#cnxn.set(slot, cnxn);
    if (cnxn !== -1) this.#flags.set(slot, this.#flags.get(slot) | flagHadCnxn);
  }

  /** Whether a connection to this server carries it, or once did. */
  hadCnxn(slot: SessionSlot): boolean {
    return (this.#flags.get(slot) & flagHadCnxn) !== 0;
  }

  /**
   * The next session after a slot, in slot order; -1 at the end. Start with -1. The table may
   * change between two calls.
   */
  nextSlot(slot: SessionSlot): SessionSlot {
    for (let next = slot + 1; next < this.#end; next++) {
      if (this.#isOpen(next)) return next;
    }
    return -1;
  }

  /** The visitor may remove the visited session. */
  forEach(visit: (slot: SessionSlot) => void): void {
    for (let slot = this.nextSlot(-1); slot !== -1; slot = this.nextSlot(slot)) visit(slot);
  }

  #isOpen(slot: SessionSlot): boolean {
    return slot >= 0 && slot < this.#end && this.#flags.get(slot) !== 0;
  }

  #ensureSlot(slot: SessionSlot): void {
    this.#high.ensure(slot);
    this.#low.ensure(slot);
    this.#timeoutMs.ensure(slot);
    this.#cnxn.ensure(slot);
    this.#flags.ensure(slot);
  }
}
