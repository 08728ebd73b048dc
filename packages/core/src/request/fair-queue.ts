/**
 * A queue in which who has used least goes first: start-time fair queueing (Goyal, Vin, Cheng 1996). Each goes at the time to which it has
 * used up its share. Time stands where the one taken last went, and who has had nothing to do for a while begins a little before it, ahead of
 * those who wait all the time: what it used while nobody else wanted anything is forgotten, and no more than that little is saved up.
 */
import { stepUnitsDefault } from './budget.ts';

/** So much of its share can be saved up: enough for a thousand small requests, and for no long one. */
const savedUnitsMax = stepUnitsDefault;

export class Turn {
  /** Up to when it has used its share, in units of work. */
  usedUntil = 0;
  /** Of two with equal times the one goes first that has waited longer. */
  order = 0;
  /** Where in the queue it stands; -1 while it does not wait. */
  place = -1;
}

/** A binary heap; what is queued has its `Turn`, and stands in one queue only. */
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

  /** Whose turn it is; it does not wait any more. */
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

  /** It has used so much, whether it waits at the moment or not. */
  charge(one: T, units: number): void {
    const { turn } = one;
    // What is used while nobody waits is used in its own time.
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
