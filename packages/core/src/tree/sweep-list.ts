/**
 * Containers and TTL znodes, which the server checks from time to time: an unordered array in which
 * each znode knows its index, so that adding and removing take constant time.
 */
import { type NodeId, type NodeStore, sweepField } from './node-store.ts';

const capacityMin = 64;

export class SweepList {
  readonly #rows: NodeStore;
  #nodes = new Int32Array(capacityMin);
  #count = 0;

  constructor(rows: NodeStore) {
    this.#rows = rows;
  }

  get count(): number {
    return this.#count;
  }

  get memoryBytes(): number {
    return this.#nodes.byteLength;
  }

  add(node: NodeId): void {
    if (this.#count === this.#nodes.length) {
      const grown = new Int32Array(this.#nodes.length * 2);
      grown.set(this.#nodes);
      this.#nodes = grown;
    }
    this.#rows.set(node, sweepField, this.#count);
    this.#nodes[this.#count++] = node;
  }

  remove(node: NodeId): void {
    const at = this.#rows.get(node, sweepField);
    const last = this.#nodes[--this.#count]!;
    this.#nodes[at] = last;
    this.#rows.set(last, sweepField, at);
  }

  /**
   * Visits at most `budget` of them and returns the cursor for the next call, 0 at the end. Start
   * with 0.
   */
  visit(cursor: number, budget: number, visitor: (node: NodeId) => void): number {
    // Downwards, because a removal between two calls moves the last one, which has been visited,
    // into the gap.
    let at = cursor === 0 ? this.#count : Math.min(cursor, this.#count);
    const end = Math.max(0, at - budget);
    while (at > end) visitor(this.#nodes[--at]!);
    return at;
  }
}
