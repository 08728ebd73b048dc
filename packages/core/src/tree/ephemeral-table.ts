/**
 * The ephemerals of each session.
 *
 * Each owner has a list through the rows of its znodes, so an ephemeral needs no memory beyond its
 * row. The heads of the lists are in an open-addressing table of four int32 (high, low, first
 * znode, count), in shards that grow independently.
 */
import { type NodeId, type NodeStore, nextOfOwnerField, previousOfOwnerField } from './node-store.ts';

const shardCount = 64;
const shardShift = 26;
const entryInts = 4;
const capacityMin = 8;
/** The initial value of every shard: one free entry, which is too full for the first owner. */
const emptyShard = new Int32Array(entryInts);

export class EphemeralTable {
  readonly #rows: NodeStore;
  readonly #seed: number;
  readonly #shards: Int32Array[] = [];
  readonly #owners = new Int32Array(shardCount);
  #count = 0;

  constructor(rows: NodeStore, seed: number) {
    this.#rows = rows;
    this.#seed = seed | 0;
    for (let i = 0; i < shardCount; i++) this.#shards.push(emptyShard);
  }

  /** Number of ephemerals of all owners. */
  get count(): number {
    return this.#count;
  }

  get memoryBytes(): number {
    let bytes = 0;
    for (const shard of this.#shards) if (shard !== emptyShard) bytes += shard.byteLength;
    return bytes;
  }

  countOf(high: number, low: number): number {
    const hash = this.#hash(high, low);
    const shard = this.#shards[hash >>> shardShift]!;
    return shard[find(shard, hash, high, low) + 3]!;
  }

  /** The first of an owner's list, 0 if it has none; it continues by `nextOfOwnerField`. */
  firstOf(high: number, low: number): NodeId {
    const hash = this.#hash(high, low);
    const shard = this.#shards[hash >>> shardShift]!;
    return shard[find(shard, hash, high, low) + 2]!;
  }

  /** Visits in no particular order; the visitor must not change the table. */
  forEach(high: number, low: number, visit: (node: NodeId) => void): void {
    let node = this.firstOf(high, low);
    while (node !== 0) {
      visit(node);
      node = this.#rows.get(node, nextOfOwnerField);
    }
  }

  /** Every session that has ephemerals, as [high, low]. */
  *owners(): Iterable<[number, number]> {
    for (const shard of this.#shards) {
      for (let at = 0; at < shard.length; at += entryInts) {
        if (shard[at + 3]! !== 0) yield [shard[at]!, shard[at + 1]!];
      }
    }
  }

  add(node: NodeId, high: number, low: number): void {
    const hash = this.#hash(high, low);
    const number = hash >>> shardShift;
    let shard = this.#shards[number]!;
    let at = find(shard, hash, high, low);
    const first = shard[at + 2]!;
    if (first === 0) {
      if (++this.#owners[number]! * entryInts * 3 > shard.length * 2) {
        shard = this.#resize(number, Math.max(shard.length * 2, capacityMin * entryInts));
        at = find(shard, hash, high, low);
      }
      shard[at] = high;
      shard[at + 1] = low;
    } else {
      this.#rows.set(first, previousOfOwnerField, node);
    }
    this.#rows.set(node, nextOfOwnerField, first);
    this.#rows.set(node, previousOfOwnerField, 0);
    shard[at + 2] = node;
    shard[at + 3]!++;
    this.#count++;
  }

  remove(node: NodeId, high: number, low: number): void {
    const hash = this.#hash(high, low);
    const number = hash >>> shardShift;
    const shard = this.#shards[number]!;
    const at = find(shard, hash, high, low);
    const next = this.#rows.get(node, nextOfOwnerField);
    const previous = this.#rows.get(node, previousOfOwnerField);
    if (previous === 0) shard[at + 2] = next;
    else this.#rows.set(previous, nextOfOwnerField, next);
    if (next !== 0) this.#rows.set(next, previousOfOwnerField, previous);
    this.#count--;
    if (--shard[at + 3]! === 0) this.#forget(number, shard, at);
  }

  #forget(number: number, shard: Int32Array, entry: number): void {
    const mask = shard.length - 1;
    let hole = entry;
    // Move up later entries where possible, so that no search ends early.
    for (let at = (entry + entryInts) & mask; shard[at + 3] !== 0; at = (at + entryInts) & mask) {
      const home = (this.#hash(shard[at]!, shard[at + 1]!) * entryInts) & mask;
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        shard.copyWithin(hole, at, at + entryInts);
        hole = at;
      }
    }
    shard.fill(0, hole, hole + entryInts);
    const owners = --this.#owners[number]!;
    if (shard.length > capacityMin * entryInts && owners * entryInts * 6 < shard.length) this.#resize(number, shard.length / 2);
  }

  #resize(number: number, length: number): Int32Array {
    const old = this.#shards[number]!;
    const shard = new Int32Array(length);
    for (let at = 0; at < old.length; at += entryInts) {
      if (old[at + 3] === 0) continue;
      const high = old[at]!;
      const low = old[at + 1]!;
      shard.set(old.subarray(at, at + entryInts), find(shard, this.#hash(high, low), high, low));
    }
    this.#shards[number] = shard;
    return shard;
  }

  #hash(high: number, low: number): number {
    let hash = Math.imul(high ^ this.#seed, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15) ^ low, 0xc2b2ae35);
    hash = Math.imul(hash ^ (hash >>> 13), 0x27d4eb2f);
    return hash ^ (hash >>> 16);
  }
}

/** Index of this owner's entry, or of the free entry where it would be: count 0. */
function find(shard: Int32Array, hash: number, high: number, low: number): number {
  const mask = shard.length - 1;
  let at = (hash * entryInts) & mask;
  while (shard[at + 3] !== 0 && (shard[at + 1] !== low || shard[at] !== high)) at = (at + entryInts) & mask;
  return at;
}
