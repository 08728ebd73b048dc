/**
 * The namespaces that requests have been about, each with a small number. A namespace is the first name of a path: `app` of /app/config.
 *
 * Every read and every change of a znode is counted under its namespace, so a path is looked up as it is: first against the namespace
 * found last, then by a hash of the name's bytes. Nothing is decoded, and nothing is allocated but for a namespace that is new.
 *
 * ZooKeeper keeps every namespace it has met until it ends, so a client that creates sequential znodes below the root fills its memory.
 * Here the first 256 are kept, and names of up to 256 bytes. The others are counted together under `/`, which no znode can be named.
 */
import { average } from '../ports/java-text.ts';
import type { SummaryValues } from './summary.ts';

export type NamespaceId = number;

export const namespacesMax = 256;
const nameBytesMax = 256;

/** The number of a path that has no first name: that of the root. */
export const noNamespace: NamespaceId = -1;
const others: NamespaceId = namespacesMax;
const nameOfOthers = '/';

/** Four for each namespace, so that a search among strangers ends soon. */
const slotCount = namespacesMax * 4;
const slash = 0x2f;

export class Namespaces {
  readonly #names: string[] = [];
  /** The names in UTF-8, each in a row of its own. */
  readonly #bytes = Buffer.alloc(namespacesMax * nameBytesMax);
  readonly #lengths = new Uint16Array(namespacesMax);
  readonly #hashes = new Int32Array(namespacesMax);
  /** A namespace's number plus 1 where its hash points or, when that is taken, further on; 0 where there is none. */
  readonly #slots = new Uint16Array(slotCount);
  /** The one found last: a client tends to stay in its own. */
  #last: NamespaceId = noNamespace;
  #lastLength = 0;
  #lastName = '';
  /** The beginning of a path given as text: a slash, the longest name, and room for a character that does not fit. */
  readonly #start = Buffer.alloc(1 + nameBytesMax + 4);
  #overflowed = false;

  /** Whether there has been a namespace for which no place was left. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  nameOf(id: NamespaceId): string {
    return id === others ? nameOfOthers : this.#names[id]!;
  }

  /** The namespace of the path whose UTF-8 is bytes [start, end); it begins with a slash. */
  find(path: Uint8Array, start: number, end: number): NamespaceId {
    const from = start + 1;
    if (from >= end) return noNamespace;
    const lastEnd = from + this.#lastLength;
    const mayBeLast = lastEnd === end || (lastEnd < end && path[lastEnd] === slash);
    if (mayBeLast && this.#isAt(path, from, this.#last, this.#lastLength)) return this.#last;
    return this.#search(path, from, end);
  }

  /** The same for a path given as text. */
  findText(path: string): NamespaceId {
    const lastEnd = 1 + this.#lastName.length;
    const mayBeLast = path.length === lastEnd || path.charCodeAt(lastEnd) === slash;
    if (mayBeLast && this.#last !== noNamespace && path.startsWith(this.#lastName, 1)) return this.#last;
    return this.find(this.#start, 0, this.#start.write(path, 0));
  }

  /** Forgets them all; their numbers will be those of others. */
  clear(): void {
    this.#names.length = 0;
    this.#slots.fill(0);
    this.#last = noNamespace;
    this.#lastLength = 0;
    this.#lastName = '';
    this.#overflowed = false;
  }

  #isAt(path: Uint8Array, from: number, id: NamespaceId, length: number): boolean {
    const bytes = this.#bytes;
    const row = id * nameBytesMax;
    // Backwards: names that resemble each other do so at the beginning.
    for (let at = length - 1; at >= 0; at--) if (path[from + at] !== bytes[row + at]) return false;
    return true;
  }

  #search(path: Uint8Array, from: number, end: number): NamespaceId {
    // FNV-1a. Whoever makes names collide makes himself wait for at most 256 comparisons.
    let hash = 0x811c9dc5 | 0;
    let nameEnd = from;
    for (; nameEnd < end && path[nameEnd] !== slash; nameEnd++) {
      if (nameEnd - from === nameBytesMax) return this.#other();
      hash = Math.imul(hash ^ path[nameEnd]!, 0x01000193);
    }
    const length = nameEnd - from;
    let slot = (hash ^ (hash >>> 15)) & (slotCount - 1);
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & (slotCount - 1)) {
      const id = this.#slots[slot]! - 1;
      if (this.#hashes[id] === hash && this.#lengths[id] === length && this.#isAt(path, from, id, length)) return this.#found(id);
    }
    const id = this.#names.length;
    if (id === namespacesMax) return this.#other();
    const name = Buffer.from(path.subarray(from, nameEnd));
    name.copy(this.#bytes, id * nameBytesMax);
    this.#names.push(name.toString());
    this.#lengths[id] = length;
    this.#hashes[id] = hash;
    this.#slots[slot] = id + 1;
    return this.#found(id);
  }

  #found(id: NamespaceId): NamespaceId {
    this.#last = id;
    this.#lastLength = this.#lengths[id]!;
    this.#lastName = this.#names[id]!;
    return id;
  }

  #other(): NamespaceId {
    this.#overflowed = true;
    return others;
  }
}

/** Count, sum, least and greatest for each namespace. Rows of numbers rather than objects, since one is brought up to date by each read. */
export class NamespaceSummaries {
  readonly #counts = new Float64Array(namespacesMax + 1);
  readonly #sums = new Float64Array(namespacesMax + 1);
  readonly #mins = new Float64Array(namespacesMax + 1);
  readonly #maxs = new Float64Array(namespacesMax + 1);
  /** 1 for a namespace that has had a value, before the last reset or since. */
  readonly #known = new Uint8Array(namespacesMax + 1);

  add(id: NamespaceId, value: number): void {
    this.#sums[id]! += value;
    // The first value is the least and the greatest, whatever was there before.
    if (this.#counts[id]!++ === 0) {
      this.#mins[id] = this.#maxs[id] = value;
      this.#known[id] = 1;
    } else if (value < this.#mins[id]!) this.#mins[id] = value;
    else if (value > this.#maxs[id]!) this.#maxs[id] = value;
  }

  /** Every namespace that has had a value, in the order in which they were met. */
  *entries(): Generator<readonly [NamespaceId, SummaryValues], void, undefined> {
    for (const [id, isKnown] of this.#known.entries()) {
      if (isKnown === 0) continue;
      const count = this.#counts[id]!;
      const sum = this.#sums[id]!;
      yield [id, { avg: average(sum, count), min: this.#mins[id]!, max: this.#maxs[id]!, count, sum }];
    }
  }

  /** They are all known still, and have no value. */
  reset(): void {
    for (const numbers of [this.#counts, this.#sums, this.#mins, this.#maxs]) numbers.fill(0);
  }

  clear(): void {
    this.reset();
    this.#known.fill(0);
  }
}
