/**
 * The states that were reached, with the choice and the state that led to each. Ten million of them
 * take about 420 MB.
 */
import type { Choice } from './choice.ts';

/** The index of a state in the table. */
export type StateId = number;

const initialCapacity = 1 << 16;

export class StateTable {
  // By index.
  #hashes = new Float64Array(initialCapacity);
  #parents = new Int32Array(initialCapacity);
  #choices = new Uint32Array(initialCapacity);
  #depths = new Uint16Array(initialCapacity);
  /** Number of choices that were made at this state. */
  #choicesMade = new Uint16Array(initialCapacity);
  /** Number of choices that it has, once the first was to be made. */
  #choiceCounts = new Uint16Array(initialCapacity);
  #count = 0;
  /**
   * Indexes + 1 by hash, with open addressing; 0 for none. Always at least twice as long as the
   * number of states.
   */
  #index = new Int32Array(initialCapacity * 2);

  get count(): number {
    return this.#count;
  }

  /**
   * Adds a state and returns its index. Of a known one with the index i, which it does not add, it
   * returns -1 - i. `parent` is -1 for an initial state.
   */
  add(hash: number, parent: StateId, choice: Choice): StateId {
    let at = this.#slotOf(hash);
    for (let found = this.#index[at]!; found !== 0; found = this.#index[at]!) {
      if (this.#hashes[found - 1] === hash) return -found;
      at = (at + 1) & (this.#index.length - 1);
    }
    if (this.#count === this.#hashes.length) {
      this.#grow();
      return this.add(hash, parent, choice);
    }
    const place = this.#count++;
    this.#index[at] = place + 1;
    this.#hashes[place] = hash;
    this.#parents[place] = parent;
    this.#choices[place] = choice;
    this.#depths[place] = parent === -1 ? 0 : this.#depths[parent]! + 1;
    return place;
  }

  hash(state: StateId): number {
    return this.#hashes[state]!;
  }

  /** The number of choices from the beginning, on the path on which the state was reached. */
  depth(state: StateId): number {
    return this.#depths[state]!;
  }

  /**
   * Of the choices of a state, in an order of its own, the index of the one to make next; -1 if all
   * were made.
   */
  takeChoiceIndex(state: StateId, count: number): number {
    this.#choiceCounts[state] = count;
    const made = this.#choicesMade[state]!;
    // A state without choices was visited nevertheless.
    this.#choicesMade[state] = Math.min(made, Math.max(count, 1) - 1) + 1;
    return made < count ? made : -1;
  }

  /** Whether it has choices that were not made yet; true before the first was to be made. */
  hasChoicesLeft(state: StateId): boolean {
    const made = this.#choicesMade[state]!;
    return made === 0 || made < this.#choiceCounts[state]!;
  }

  /** The choices that lead to a state. */
  pathTo(state: StateId): Choice[] {
    const way: Choice[] = [];
    for (let at = state; this.#parents[at]! !== -1; at = this.#parents[at]!) way.push(this.#choices[at]!);
    return way.toReversed();
  }

  #slotOf(hash: number): number {
    return (hash % 2_147_483_647) & (this.#index.length - 1);
  }

  #grow(): void {
    const size = this.#hashes.length * 2;
    this.#hashes = copied(new Float64Array(size), this.#hashes);
    this.#parents = copied(new Int32Array(size), this.#parents);
    this.#choices = copied(new Uint32Array(size), this.#choices);
    this.#depths = copied(new Uint16Array(size), this.#depths);
    this.#choicesMade = copied(new Uint16Array(size), this.#choicesMade);
    this.#choiceCounts = copied(new Uint16Array(size), this.#choiceCounts);
    this.#index = new Int32Array(size * 2);
    for (let place = 0; place < this.#count; place++) {
      let at = this.#slotOf(this.#hashes[place]!);
      while (this.#index[at] !== 0) at = (at + 1) & (this.#index.length - 1);
      this.#index[at] = place + 1;
    }
  }
}

function copied<T extends Float64Array | Int32Array | Uint16Array | Uint32Array>(to: T, from: T): T {
  to.set(from);
  return to;
}
