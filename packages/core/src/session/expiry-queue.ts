/**
 * Expiry times in buckets one tick wide.
 *
 * A bucket expires as a whole, so a slot lives between its timeout and one tick more after the last
 * touch, never less. That is ZooKeeper's rule, and it makes a touch cheap: most touches find the
 * slot already in the right bucket and change nothing, start no timer, and allocate nothing. The
 * queue holds small integers (session slots, connections), each at most once.
 */
import type { Millis } from '@tskeeper/protocol';
import { PagedDoubles, PagedInts } from '../tables/paged-numbers.ts';

export class ExpiryQueue {
  readonly #tickMs: Millis;
  /** By slot: when its bucket is due; 0 while it is not queued (no bucket is due at 0). */
  readonly #due = new PagedDoubles();
  /** The ring of the slots in one bucket, in order of insertion. */
  readonly #next = new PagedInts();
  readonly #previous = new PagedInts();
  /**
   * The first slot of each non-empty bucket, by its due time. There are about maxSessionTimeout /
   * tickTime of them.
   */
  readonly #first = new Map<Millis, number>();
  /** The earliest of them; undefined if it must be searched. */
  #earliest: Millis | undefined;

  constructor(tickMs: Millis) {
    this.#tickMs = tickMs;
  }

  /** Sets the timeout of a slot to `timeoutMs` from now, whatever it was before. */
  touch(slot: number, elapsedMs: Millis, timeoutMs: Millis): void {
    const due = (Math.floor((elapsedMs + timeoutMs) / this.#tickMs) + 1) * this.#tickMs;
    const was = this.#due.peek(slot);
    if (was === due) return;
    if (was !== 0) this.#unlink(slot, was);
    this.#link(slot, due);
  }

  /** Does nothing if the slot is not queued. */
  remove(slot: number): void {
    const due = this.#due.peek(slot);
    if (due !== 0) this.#unlink(slot, due);
  }

  /** When the next bucket is due; undefined if the queue is empty. */
  deadline(): Millis | undefined {
    if (this.#earliest === undefined) {
      for (const due of this.#first.keys()) {
        if (this.#earliest === undefined || due < this.#earliest) this.#earliest = due;
      }
    }
    return this.#earliest;
  }

  /**
   * Visits at most `max` slots whose bucket is due, the longest overdue first; each is removed
   * before its visit. Returns whether more are due. The visitor may touch and remove slots.
   */
  takeDue(elapsedMs: Millis, max: number, visit: (slot: number) => void): boolean {
    for (let taken = 0; ; taken++) {
      const due = this.deadline();
      if (due === undefined || due > elapsedMs) return false;
      if (taken === max) return true;
      const slot = this.#first.get(due)!;
      this.#unlink(slot, due);
      visit(slot);
    }
  }

  /** For operators, soonest first. */
  *buckets(): Generator<{ dueMs: Millis; slots: number[] }, void, undefined> {
    for (const dueMs of [...this.#first.keys()].sort((a, b) => a - b)) {
      const first = this.#first.get(dueMs);
      if (first === undefined) continue;
      const slots = [first];
      for (let slot = this.#next.get(first); slot !== first; slot = this.#next.get(slot)) slots.push(slot);
      yield { dueMs, slots };
    }
  }

  #link(slot: number, due: Millis): void {
    this.#due.ensure(slot);
    this.#next.ensure(slot);
    this.#previous.ensure(slot);
    this.#due.set(slot, due);
    const first = this.#first.get(due);
    if (first === undefined) {
      this.#first.set(due, slot);
      this.#next.set(slot, slot);
      this.#previous.set(slot, slot);
      // If the earliest is unknown, it stays unknown: an earlier one may be among the others.
      if (this.#first.size === 1 || (this.#earliest !== undefined && due < this.#earliest)) this.#earliest = due;
      return;
    }
    const last = this.#previous.get(first);
    this.#next.set(last, slot);
    this.#previous.set(slot, last);
    this.#next.set(slot, first);
    this.#previous.set(first, slot);
  }

  #unlink(slot: number, due: Millis): void {
    this.#due.set(slot, 0);
    const next = this.#next.get(slot);
    if (next === slot) {
      this.#first.delete(due);
      if (due === this.#earliest) this.#earliest = undefined;
      return;
    }
    const previous = this.#previous.get(slot);
    this.#next.set(previous, next);
    this.#previous.set(next, previous);
    if (this.#first.get(due) === slot) this.#first.set(due, next);
  }
}
