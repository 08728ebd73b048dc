/**
 * Finds the candidates for a path by its hash.
 *
 * Open addressing over int32 pairs (hash, node), in 256 shards that grow independently: the insert
 * that makes one grow moves a 256th of all entries, which takes a fraction of a millisecond even
 * with millions of znodes. The index does not know paths; its caller compares the candidates one by
 * one.
 */
import type { NodeId } from './node-store.ts';

const shardCount = 256;
const shardShift = 24;
const capacityMin = 16;
/** The initial value of every shard: one free pair, which is too full for the first insert. */
const emptyShard = new Int32Array(2);

export class PathIndex {
  /** By the top byte of the hash; pairs of hash and node, node 0 if free. */
  readonly #shards: Int32Array[] = [];
  readonly #counts = new Int32Array(shardCount);
  /** The position of the last search. */
  #shard: Int32Array;
  #slot = 0;
  #hash = 0;

  constructor() {
    for (let i = 0; i < shardCount; i++) this.#shards.push(emptyShard);
    this.#shard = emptyShard;
  }

  get memoryBytes(): number {
    let bytes = 0;
    for (const shard of this.#shards) if (shard !== emptyShard) bytes += shard.byteLength;
    return bytes;
  }

  /** The first candidate for a hash, or 0. */
  first(hash: number): NodeId {
    const shard = this.#shards[hash >>> shardShift]!;
    this.#shard = shard;
    this.#hash = hash;
    this.#slot = (hash << 1) & (shard.length - 1);
    return this.#search();
  }

  /** The candidate after the one found last, or 0. */
  next(): NodeId {
    this.#slot = (this.#slot + 2) & (this.#shard.length - 1);
    return this.#search();
  }

  #search(): NodeId {
    const shard = this.#shard;
    const mask = shard.length - 1;
    const hash = this.#hash;
    let slot = this.#slot;
    for (;;) {
      const node = shard[slot + 1]!;
      if (node === 0 || shard[slot] === hash) {
        this.#slot = slot;
        return node;
      }
      slot = (slot + 2) & mask;
    }
  }

  insert(hash: number, node: NodeId): void {
    const number = hash >>> shardShift;
    const count = ++this.#counts[number]!;
    let shard = this.#shards[number]!;
    // At most two thirds full: chains stay short and a shard always has a free slot.
    if (count * 3 > shard.length) shard = this.#resize(number, Math.max(shard.length * 2, capacityMin * 2));
    place(shard, hash, node);
  }

  remove(hash: number, node: NodeId): void {
    const number = hash >>> shardShift;
    const shard = this.#shards[number]!;
    const mask = shard.length - 1;
    let slot = (hash << 1) & mask;
    while (shard[slot + 1] !== node) {
      if (shard[slot + 1] === 0) throw new Error(`znode ${node} is not in the path index`);
      slot = (slot + 2) & mask;
    }
    // Later entries of the chain that may be stored here fill the hole, so that no search ends
    // early.
    let hole = slot;
    for (let at = (slot + 2) & mask; shard[at + 1] !== 0; at = (at + 2) & mask) {
      const home = (shard[at]! << 1) & mask;
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        shard[hole] = shard[at]!;
        shard[hole + 1] = shard[at + 1]!;
        hole = at;
      }
    }
    shard[hole] = 0;
    shard[hole + 1] = 0;
    const count = --this.#counts[number]!;
    if (shard.length > capacityMin * 2 && count * 12 < shard.length) this.#resize(number, shard.length / 2);
  }

  #resize(number: number, length: number): Int32Array {
    const old = this.#shards[number]!;
    const shard = new Int32Array(length);
    for (let slot = 0; slot < old.length; slot += 2) {
      const node = old[slot + 1]!;
      if (node !== 0) place(shard, old[slot]!, node);
    }
    this.#shards[number] = shard;
    return shard;
  }
}

function place(shard: Int32Array, hash: number, node: NodeId): void {
  const mask = shard.length - 1;
  let slot = (hash << 1) & mask;
  while (shard[slot + 1] !== 0) slot = (slot + 2) & mask;
  shard[slot] = hash;
  shard[slot + 1] = node;
}
