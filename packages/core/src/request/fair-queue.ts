/**
 * A queue that serves the member with the least usage first: start-time fair queueing (Goyal, Vin,
 * Cheng 1996). A member is served at the virtual time up to which it has used its share. Virtual
 * time is that of the member served last. A member that was idle starts a little before it, so
 * before members that wait all the time: usage without competition is forgotten, and only that
 * little credit can be saved.
 */
import { stepUnitsDefault } from './budget.ts';

/** The credit that can be saved: enough for a thousand small requests, but for no long one. */
const savedUnitsMax = stepUnitsDefault;

export class Turn {
  /** Virtual time up to which the share has been used, in units of work. */
  usedUntil = 0;
  /** Of two members with equal times, the one that has waited longer is served first. */
  order = 0;
  /** Index in the heap; -1 while it does not wait. */
  place = -1;
}

/** A binary heap. Each member has its `Turn` and is in at most one queue. */
export class FairQueue<T extends { readonly turn: Turn }> {
  readonly #heap: T[] = [];
  #time = 0;
  #order = 0;

  get length(): number {
    return this.#heap.length;
  }

  push(one: T): void {
    const { turn } = one;
    if (turn.place !== -1) return;
    turn.usedUntil = Math.max(turn.usedUntil, this.#time - savedUnitsMax);
    turn.order = ++this.#order;
    this.#heap.push(one);
    this.#rise(one, this.#heap.length - 1);
  }

  /** Removes and returns the member whose turn it is. */
  take(): T | undefined {
    const first = this.#heap[0];
    if (first === undefined) return undefined;
    this.remove(first);
    this.#time = Math.max(this.#time, first.turn.usedUntil);
    return first;
  }

  remove(one: T): void {
    const { place } = one.turn;
    if (place === -1) return;
    one.turn.place = -1;
    const last = this.#heap.pop()!;
    if (last === one) return;
    this.#rise(last, place);
    this.#sink(last, last.turn.place);
  }

  /** Charges a member for work, whether it waits or not. */
  charge(one: T, units: number): void {
    const { turn } = one;
    // Work done while no member waits advances virtual time.
    if (this.#heap.length === 0) this.#time = Math.max(this.#time, turn.usedUntil);
    turn.usedUntil = Math.max(turn.usedUntil, this.#time - savedUnitsMax) + units;
    if (turn.place !== -1) this.#sink(one, turn.place);
  }

  #rise(one: T, from: number): void {
    const heap = this.#heap;
    let place = from;
    while (place > 0) {
      const above = heap[(place - 1) >> 1]!;
      if (isBefore(above, one)) break;
      heap[place] = above;
      above.turn.place = place;
      place = (place - 1) >> 1;
    }
    heap[place] = one;
    one.turn.place = place;
  }

  #sink(one: T, from: number): void {
    const heap = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      const next = heap[below]!;
      if (isBefore(one, next)) break;
      heap[place] = next;
      next.turn.place = place;
      place = below;
    }
    heap[place] = one;
    one.turn.place = place;
  }
}

function isBefore({ turn: a }: { readonly turn: Turn }, { turn: b }: { readonly turn: Turn }): boolean {
  return a.usedUntil < b.usedUntil || (a.usedUntil === b.usedUntil && a.order < b.order);
}
