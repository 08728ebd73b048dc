import { PagedInts } from './paged-numbers.ts';

/**
 * A hash index over numbered items, by Litwin's linear hashing: it grows by splitting one bucket
 * for every few items added, in a fixed order, so that no insertion rehashes the whole. Items are
 * small integers above 0; their owner defines their meaning and equality. It takes 4 bytes per item
 * and about 2 more for its buckets.
 */
export class LinearHash {
  /** First item of each bucket, 0 if empty. */
  readonly #heads = new PagedInts();
  /** The next item in the same bucket, by item. */
  readonly #next = new PagedInts();
  readonly #hashOf: (item: number) => number;
  #count = 0;
  /**
   * Buckets below `#split` have been split at this level, and use one more bit of the hash. `#size`
   * is a power of two.
   */
  #size = 64;
  #split = 0;

  /**
   * `hashOf` must return the hash with which the item was inserted; all its bits must be well
   * mixed.
   */
  constructor(hashOf: (item: number) => number) {
    this.#hashOf = hashOf;
    this.#heads.ensure(this.#size);
  }

  get bytes(): number {
    return this.#heads.bytes + this.#next.bytes;
  }

  /** The first item that may have this hash; 0 if there is none. `next` returns the others. */
  first(hash: number): number {
    return this.#heads.get(this.#bucketOf(hash));
  }

  next(item: number): number {
    return this.#next.get(item);
  }

  insert(item: number, hash: number): void {
    this.#next.ensure(item);
    const bucket = this.#bucketOf(hash);
    this.#next.set(item, this.#heads.get(bucket));
    this.#heads.set(bucket, item);
    this.#count++;
    // Two items per bucket: chains stay short and an empty table small.
    if (this.#count > (this.#size + this.#split) * 2) this.#splitOne();
  }

  delete(item: number, hash: number): void {
    const bucket = this.#bucketOf(hash);
    let at = this.#heads.get(bucket);
    if (at === item) {
      this.#heads.set(bucket, this.#next.get(item));
    } else {
      let before = at;
      while (at !== item) {
        if (at === 0) throw new Error(`item ${item} is not in the index under its hash`);
        before = at;
        at = this.#next.get(at);
      }
      this.#next.set(before, this.#next.get(item));
    }
    this.#count--;
  }

  #bucketOf(hash: number): number {
    const bucket = hash & (this.#size - 1);
    return bucket < this.#split ? hash & (this.#size * 2 - 1) : bucket;
  }

  /** Distributes the items of the bucket whose turn it is between itself and a new one. */
  #splitOne(): void {
    const from = this.#split;
    const to = this.#size + from;
    this.#heads.ensure(to);
    let stay = 0;
    let go = 0;
    for (let item = this.#heads.get(from); item !== 0;) {
      const following = this.#next.get(item);
      if ((this.#hashOf(item) & this.#size) === 0) {
        this.#next.set(item, stay);
        stay = item;
      } else {
        this.#next.set(item, go);
        go = item;
      }
      item = following;
    }
    this.#heads.set(from, stay);
    this.#heads.set(to, go);
    this.#split++;
    if (this.#split === this.#size) {
      this.#size *= 2;
      this.#split = 0;
    }
  }
}

/** Mixes the bits of a number over all 32 (the finish of MurmurHash3). */
export function mix(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
