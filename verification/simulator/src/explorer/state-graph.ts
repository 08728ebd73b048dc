/**
 * The known choices between states, and the nearest state from which a search may continue. 12 bytes
 * for a choice and 9 for a state.
 */
import type { Choice } from './choice.ts';
import type { StateId } from './state-table.ts';

const initialCapacity = 1 << 16;

/** Number of states that one search of the nearest looks at; the way from the beginning costs less then. */
const lookedAtMax = 20_000;

export class StateGraph {
  readonly #mayGoOn: (state: StateId) => boolean;
  // By choice, in the order in which they were added: what it is, where it leads, and the index + 1
  // of the choice of the same state that was added before it; 0 for none.
  #choices = new Uint32Array(initialCapacity);
  #targets = new Int32Array(initialCapacity);
  #previous = new Int32Array(initialCapacity);
  #count = 0;
  // By state.
  /** The index + 1 of the choice added last; 0 for none. */
  #last = new Int32Array(initialCapacity);
  /** The number of the search that saw it last. */
  #seenBy = new Int32Array(initialCapacity);
  /** 1 if the search may continue from no state that this one leads to. */
  #isFinished = new Uint8Array(initialCapacity);
  #searches = 0;

  /** `mayGoOn` tells whether the search may continue from a state. Once false, it must stay so. */
  constructor(mayGoOn: (state: StateId) => boolean) {
    this.#mayGoOn = mayGoOn;
  }

  add(from: StateId, choice: Choice, target: StateId): void {
    if (this.#count === this.#choices.length) {
      this.#choices = doubled(this.#choices);
      this.#targets = doubled(this.#targets);
      this.#previous = doubled(this.#previous);
    }
    while (Math.max(from, target) >= this.#last.length) {
      this.#last = doubled(this.#last);
      this.#seenBy = doubled(this.#seenBy);
      this.#isFinished = doubled(this.#isFinished);
    }
    const at = this.#count++;
    this.#choices[at] = choice;
    this.#targets[at] = target;
    this.#previous[at] = this.#last[from]!;
    this.#last[from] = at + 1;
  }

  /**
   * The nearest state from which the search may continue, with the choices that lead to it. Undefined
   * if there is none, or if it is far.
   */
  nearest(from: StateId): { readonly state: StateId; readonly choices: Choice[] } | undefined {
    const search = ++this.#searches;
    /** States in the order of their distance, with the place of the one before, and the choice. */
    const queue: { readonly state: StateId; readonly before: number; readonly choice: Choice }[] = [{ state: from, before: -1, choice: 0 }];
    this.#seenBy[from] = search;
    for (let at = 0; at < queue.length; at++) {
      if (at === lookedAtMax) return undefined;
      for (let edge = this.#last[queue[at]!.state]!; edge !== 0; edge = this.#previous[edge - 1]!) {
        const state = this.#targets[edge - 1]!;
        if (this.#seenBy[state] === search || this.#isFinished[state] === 1) continue;
        this.#seenBy[state] = search;
        queue.push({ state, before: at, choice: this.#choices[edge - 1]! });
        if (!this.#mayGoOn(state)) continue;
        const choices: Choice[] = [];
        for (let place = queue.length - 1; place > 0; place = queue[place]!.before) choices.unshift(queue[place]!.choice);
        return { state, choices };
      }
    }
    // All that it leads to was looked at.
    for (const { state } of queue) this.#isFinished[state] = 1;
    return undefined;
  }
}

function doubled<T extends Int32Array | Uint8Array | Uint32Array>(array: T): T {
  const copy = new (array.constructor as new (length: number) => T)(array.length * 2);
  copy.set(array);
  return copy;
}
