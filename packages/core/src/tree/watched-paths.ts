/**
 * The paths that are watched, each with a number and the rings of its watches.
 *
 * A change fires watches on the changed path, its parent and all its ancestors. The hash of a path
 * is computed byte by byte, and the hash of each prefix is an intermediate result; so all of them
 * are found in one pass over the bytes.
 *
 * A path here is any string of bytes; its validity is checked elsewhere.
 */
import { isUtf8 } from 'node:buffer';
import { ByteStrings } from '../tables/byte-strings.ts';
import { LinearHash, mix } from '../tables/linear-hash.ts';
import { PagedInts } from '../tables/paged-numbers.ts';
import { child, dataTable, isOneShot, keyColour, keyPathShift, modeCount, recursive } from './watch-mode.ts';

/** The word of a path holds 30 bits of its hash above the colours of its two one-shot modes. */
const wordHashShift = 2;

export class WatchedPaths {
  // Paths, from 1, while they are watched. The text of an unused one links to the next unused.
  readonly #word = new PagedInts();
  readonly #text = new PagedInts();
  /** The first row of each mode's ring, at path * modeCount + mode. */
  readonly #ring = new PagedInts();
  readonly #paths = new LinearHash((path) => this.#word.get(path) >>> wordHashShift);
  readonly #texts = new ByteStrings();
  #end = 1;
  #unused = 0;
  #inDataTable = 0;

  readonly #hashStart: number;
  readonly #hashFactor: number;
  #encoded = Buffer.allocUnsafeSlow(1024);

  // What `locate` has found, 0 for none; and the ancestors, from the root down.
  located = 0;
  locatedParent = 0;
  readonly ancestors: number[] = [];

  /** `hashSeed`, drawn at start, prevents clients from choosing paths that fall into one bucket. */
  constructor(hashSeed: number) {
    this.#hashStart = mix(hashSeed);
    this.#hashFactor = mix(hashSeed ^ 0x5bd1e995) | 1;
  }

  /** Memory of the table, in bytes. */
  get bytes(): number {
    return this.#word.bytes + this.#text.bytes + this.#ring.bytes + this.#paths.bytes + this.#texts.bytes;
  }

  /** One more than the highest path number in use. */
  get end(): number {
    return this.#end;
  }

  /** Paths with a watch in the data table. */
  get inDataTable(): number {
    return this.#inDataTable;
  }

  /** The bytes that `encode` wrote last. */
  get encoded(): Buffer {
    return this.#encoded;
  }

  /** Writes the text's UTF-8 into `encoded` and returns its length. */
  encode(text: string): number {
    if (text.length * 3 > this.#encoded.length) this.#encoded = Buffer.allocUnsafeSlow(text.length * 3);
    return this.#encoded.write(text, 'utf8');
  }

  /** The number of a path, 0 if it is not watched. */
  find(path: string): number {
    const length = this.encode(path);
    return this.#find(this.#hash(this.#encoded, 0, length), this.#encoded, 0, length);
  }

  findOrAdd(path: Buffer, start: number, end: number): number {
    let bytes = path;
    let from = start;
    let to = end;
    if (!isAscii(path, start, end) && !isUtf8(path.subarray(start, end))) {
      // Malformed text is stored as readers decode it, so that a removal with the decoded text
      // finds it.
      bytes = Buffer.from(path.toString('utf8', start, end));
      from = 0;
      to = bytes.length;
    }
    const hash = this.#hash(bytes, from, to);
    const id = this.#find(hash, bytes, from, to);
    return id === 0 ? this.#add(hash, bytes, from, to) : id;
  }

  /**
   * Finds the paths whose watches a change of `path` may fire: itself, its parent, and those above
   * it that have recursive watches.
   */
  locate(path: string, wantsParent: boolean, wantsAncestors: boolean): void {
    const length = this.encode(path);
    const bytes = this.#encoded;
    let hash = this.#hashStart;
    let slashHash = hash;
    let slash = -1;
    this.ancestors.length = 0;
    for (let i = 0; i < length; i++) {
      if (bytes[i] === 0x2f && i > 0) {
        if (wantsAncestors) this.#noteAncestor(hash, i);
        slash = i;
        slashHash = hash;
      }
      hash = this.#step(hash, bytes[i]!);
      // The root is the only prefix that ends in a slash.
      if (i === 0 && length > 1) {
        if (wantsAncestors) this.#noteAncestor(hash, 1);
        slash = 1;
        slashHash = hash;
      }
    }
    this.located = this.#find(finish(hash), bytes, 0, length);
    this.locatedParent = wantsParent && slash !== -1 ? this.#find(finish(slashHash), bytes, 0, slash) : 0;
  }

  #noteAncestor(hash: number, end: number): void {
    const id = this.#find(finish(hash), this.#encoded, 0, end);
    if (id !== 0 && this.ringOf(id, recursive) !== 0) this.ancestors.push(id);
  }

  textOf(path: number): string {
    return this.#texts.text(this.#text.get(path));
  }

  /** Changes when a path number gets another path, or one of its one-shot rings fires. */
  wordOf(path: number): number {
    return this.#word.get(path);
  }

  /** The first row of the watches in this mode; 0 for none. */
  ringOf(path: number, mode: number): number {
    return this.#ring.get(path * modeCount + mode);
  }

  setRing(path: number, mode: number, row: number): void {
    const at = path * modeCount + mode;
    if (mode === child) {
      this.#ring.set(at, row);
      return;
    }
    const before = this.isInDataTable(path);
    this.#ring.set(at, row);
    const after = this.isInDataTable(path);
    if (before !== after) this.#inDataTable += after ? 1 : -1;
  }

  isInDataTable(path: number): boolean {
    for (const mode of dataTable) {
      if (this.#ring.get(path * modeCount + mode) !== 0) return true;
    }
    return false;
  }

  /** The key of a row in this mode that has not fired. */
  liveKey(path: number, mode: number): number {
    const colour = isOneShot(mode) ? (this.#word.get(path) >>> mode) & 1 : 0;
    return (path << keyPathShift) | (colour * keyColour) | mode;
  }

  /** Detaches the ring of a one-shot mode: its rows are no longer live. */
  detachRing(path: number, mode: number): void {
    this.setRing(path, mode, 0);
    this.#word.set(path, this.#word.get(path) ^ (1 << mode));
  }

  /** Frees the number of a path if it is no longer watched. */
  maybeFree(path: number): void {
    const at = path * modeCount;
    if (this.#ring.get(at) !== 0 || this.#ring.get(at + 1) !== 0 || this.#ring.get(at + 2) !== 0 || this.#ring.get(at + 3) !== 0) {
      return;
    }
    this.#paths.delete(path, this.#word.get(path) >>> wordHashShift);
    this.#texts.free(this.#text.get(path));
    this.#text.set(path, this.#unused);
    this.#unused = path;
  }

  #add(hash: number, bytes: Buffer, start: number, end: number): number {
    let path = this.#unused;
    if (path === 0) {
      path = this.#end++;
      this.#word.ensure(path);
      this.#text.ensure(path);
      this.#ring.ensure(path * modeCount + modeCount - 1);
    } else {
      this.#unused = this.#text.get(path);
    }
    this.#word.set(path, hash << wordHashShift);
    this.#text.set(path, this.#texts.put(bytes, start, end));
    this.#paths.insert(path, hash);
    return path;
  }

  #find(hash: number, bytes: Buffer, start: number, end: number): number {
    for (let path = this.#paths.first(hash); path !== 0; path = this.#paths.next(path)) {
      if (this.#word.get(path) >>> wordHashShift === hash && this.#texts.equals(this.#text.get(path), bytes, start, end)) return path;
    }
    return 0;
  }

  #hash(bytes: Buffer, start: number, end: number): number {
    let hash = this.#hashStart;
    for (let i = start; i < end; i++) hash = this.#step(hash, bytes[i]!);
    return finish(hash);
  }

  /** Adds one byte. */
  #step(hash: number, byte: number): number {
    const h = Math.imul(hash ^ byte, this.#hashFactor);
    return h ^ (h >>> 15);
  }
}

function finish(hash: number): number {
  return mix(hash) >>> 2;
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if (bytes[i]! > 0x7f) return false;
  }
  return true;
}
