/**
 * The watches themselves. There can be millions, so a watch is a row in arrays of numbers, about 70
 * bytes including its share of a path's row.
 *
 * A row is on two rings: the watches of one mode on one path, which starts at the path, and all
 * watches of one connection, which starts at its watcher.
 */
import { LinearHash, mix } from '../tables/linear-hash.ts';
import { PagedInts } from '../tables/paged-numbers.ts';
import { keyModeMask, keyPathShift } from './watch-mode.ts';
import type { WatchedPaths } from './watched-paths.ts';
import type { Watchers } from './watchers.ts';

export class WatchRows {
  readonly #paths: WatchedPaths;
  readonly #watchers: Watchers;
  readonly #hashStart: number;
  // Rows, from 1. An unused row has watcher 0 and is linked into the chain of unused rows by
  // #nextOnPath.
  readonly #watcher = new PagedInts();
  readonly #key = new PagedInts();
  readonly #nextOnPath = new PagedInts();
  readonly #previousOnPath = new PagedInts();
  readonly #nextOfWatcher = new PagedInts();
  readonly #previousOfWatcher = new PagedInts();
  readonly #rows = new LinearHash((row) => this.#hash(this.#watcher.get(row), this.#key.get(row)));
  #end = 1;
  #unused = 0;

  constructor(hashSeed: number, paths: WatchedPaths, watchers: Watchers) {
    this.#hashStart = mix(hashSeed);
    this.#paths = paths;
    this.#watchers = watchers;
  }

  /** Memory of the table, in bytes. */
  get bytes(): number {
    let sum = this.#rows.bytes;
    for (const column of [this.#watcher, this.#key, this.#nextOnPath, this.#previousOnPath, this.#nextOfWatcher, this.#previousOfWatcher]) {
      sum += column.bytes;
    }
    return sum;
  }

  /** The row of a watcher under this key, 0 for none. */
  find(watcher: number, key: number): number {
    for (let row = this.#rows.first(this.#hash(watcher, key)); row !== 0; row = this.#rows.next(row)) {
      if (this.#key.get(row) === key && this.#watcher.get(row) === watcher) return row;
    }
    return 0;
  }

  watcherOf(row: number): number {
    return this.#watcher.get(row);
  }

  keyOf(row: number): number {
    return this.#key.get(row);
  }

  nextOnPath(row: number): number {
    return this.#nextOnPath.get(row);
  }

  previousOnPath(row: number): number {
    return this.#previousOnPath.get(row);
  }

  nextOfWatcher(row: number): number {
    return this.#nextOfWatcher.get(row);
  }

  /** Adds a row, at the end of both its rings. */
  add(watcher: number, key: number): void {
    let row = this.#unused;
    if (row === 0) {
      row = this.#end++;
      this.#watcher.ensure(row);
      this.#key.ensure(row);
      this.#nextOnPath.ensure(row);
      this.#previousOnPath.ensure(row);
      this.#nextOfWatcher.ensure(row);
      this.#previousOfWatcher.ensure(row);
    } else {
      this.#unused = this.#nextOnPath.get(row);
    }
    this.#watcher.set(row, watcher);
    this.#key.set(row, key);
    this.#rows.insert(row, this.#hash(watcher, key));

    const path = key >>> keyPathShift;
    const mode = key & keyModeMask;
    const first = this.#paths.ringOf(path, mode);
    if (first === 0) {
      this.#nextOnPath.set(row, row);
      this.#previousOnPath.set(row, row);
      this.#paths.setRing(path, mode, row);
    } else {
      const last = this.#previousOnPath.get(first);
      this.#nextOnPath.set(last, row);
      this.#previousOnPath.set(row, last);
      this.#nextOnPath.set(row, first);
      this.#previousOnPath.set(first, row);
    }

    const firstOwn = this.#watchers.ringOf(watcher);
    if (firstOwn === 0) {
      this.#nextOfWatcher.set(row, row);
      this.#previousOfWatcher.set(row, row);
      this.#watchers.setRing(watcher, row);
    } else {
      const last = this.#previousOfWatcher.get(firstOwn);
      this.#nextOfWatcher.set(last, row);
      this.#previousOfWatcher.set(row, last);
      this.#nextOfWatcher.set(row, firstOwn);
      this.#previousOfWatcher.set(firstOwn, row);
    }
  }

  /** Removes a row from both its rings. */
  remove(row: number): void {
    const watcher = this.#watcher.get(row);
    const key = this.#key.get(row);
    const path = key >>> keyPathShift;
    const mode = key & keyModeMask;
    this.#rows.delete(row, this.#hash(watcher, key));

    const next = this.#nextOnPath.get(row);
    const previous = this.#previousOnPath.get(row);
    if (this.#paths.ringOf(path, mode) === row) this.#paths.setRing(path, mode, next === row ? 0 : next);
    this.#nextOnPath.set(previous, next);
    this.#previousOnPath.set(next, previous);

    const nextOwn = this.#nextOfWatcher.get(row);
    const previousOwn = this.#previousOfWatcher.get(row);
    if (this.#watchers.ringOf(watcher) === row) this.#watchers.setRing(watcher, nextOwn === row ? 0 : nextOwn);
    this.#nextOfWatcher.set(previousOwn, nextOwn);
    this.#previousOfWatcher.set(nextOwn, previousOwn);

    this.#watcher.set(row, 0);
    this.#key.set(row, 0);
    this.#nextOnPath.set(row, this.#unused);
    this.#unused = row;
  }

  #hash(watcher: number, key: number): number {
    return mix(Math.imul(watcher, 0x9e3779b1) ^ key ^ this.#hashStart);
  }
}
