/**
 * A queue that serves the member with the least usage first: start-time fair queueing (Goyal, Vin,
 * Cheng 1996). A member is served at the virtual time up to which it has used its share. Virtual
 * time is that of the member served last. A member that was idle starts a little before it, so
 * before members that wait all the time: usage without competition is forgotten, and only that
 * little credit can be saved.
 */
import { stepUnitsDefault } from '../step-budget.ts';

/** The credit that can be saved: enough for a thousand small requests, but for no long one. */
const creditUnitsMax = stepUnitsDefault;

export class FairShare {
  /** Virtual time up to which the share has been used, in units of work. */
  virtualFinish = 0;
  /** Of two members with equal times, the one that has waited longer is served first. */
  arrivalOrder = 0;
  /** Index in the heap; -1 while it does not wait. */
  heapIndex = -1;
}

/** A binary heap. Each member has its `FairShare` and is in at most one queue. */
export class FairQueue<T extends { readonly share: FairShare }> {
  readonly #heap: T[] = [];
  #virtualTime = 0;
  #arrivals = 0;

  get length(): number {
    return this.#heap.length;
  }

  push(one: T): void {
    const { share } = one;
    if (share.heapIndex !== -1) return;
    share.virtualFinish = Math.max(share.virtualFinish, this.#virtualTime - creditUnitsMax);
    share.arrivalOrder = ++this.#arrivals;
    this.#heap.push(one);
    this.#siftUp(one, this.#heap.length - 1);
  }

  /** Removes and returns the member whose turn it is. */
  take(): T | undefined {
    const first = this.#heap[0];
    if (first === undefined) return undefined;
    this.remove(first);
    this.#virtualTime = Math.max(this.#virtualTime, first.share.virtualFinish);
    return first;
  }

  remove(one: T): void {
    const { heapIndex } = one.share;
    if (heapIndex === -1) return;
    one.share.heapIndex = -1;
    const last = this.#heap.pop()!;
    if (last === one) return;
    this.#siftUp(last, heapIndex);
    this.#siftDown(last, last.share.heapIndex);
  }

  /** Charges a member for work, whether it waits or not. */
  charge(one: T, units: number): void {
    const { share } = one;
    // Work done while no member waits advances virtual time.
    if (this.#heap.length === 0) this.#virtualTime = Math.max(this.#virtualTime, share.virtualFinish);
    share.virtualFinish = Math.max(share.virtualFinish, this.#virtualTime - creditUnitsMax) + units;
    if (share.heapIndex !== -1) this.#siftDown(one, share.heapIndex);
  }

  #siftUp(one: T, from: number): void {
    const heap = this.#heap;
    let place = from;
    while (place > 0) {
      const above = heap[(place - 1) >> 1]!;
      if (isBefore(above, one)) break;
      heap[place] = above;
      above.share.heapIndex = place;
      place = (place - 1) >> 1;
    }
    heap[place] = one;
    one.share.heapIndex = place;
  }

  #siftDown(one: T, from: number): void {
    const heap = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      const next = heap[below]!;
      if (isBefore(one, next)) break;
      heap[place] = next;
      next.share.heapIndex = place;
      place = below;
    }
    heap[place] = one;
    one.share.heapIndex = place;
  }
}

function isBefore({ share: a }: { readonly share: FairShare }, { share: b }: { readonly share: FairShare }): boolean {
  return a.virtualFinish < b.virtualFinish || (a.virtualFinish === b.virtualFinish && a.arrivalOrder < b.arrivalOrder);
}
