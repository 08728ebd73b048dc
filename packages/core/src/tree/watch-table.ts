/**
 * The watches of all connections, and the dispatch of events to them.
 *
 * In ZooKeeper's terms, a server has two tables, "data" and "child". A data watch (getData, exists)
 * is in the first, a child watch (getChildren) in the second, a persistent watch in both, a
 * persistent-recursive one in the first. Data and child watches are one-shot. A change of znode N
 * with parent P fires in this order, at most once per connection for the same znode:
 *
 *     data table of N, with the recursive watches on N and all above it    created, deleted, data changed
 *     child table of N                                                     deleted
 *     child table of P, as "children changed" of P                         created, deleted
 *
 * There can be millions of watches, so a watch is a row in arrays of numbers, about 70 bytes
 * including its share of a path's row, plus the path itself once. A row is on two rings: the
 * watches of one mode on one path, and all watches of one connection. The watches of a change are
 * found by the prefixes of its path, in one pass over the bytes; the cost is the path's depth plus
 * the number of watchers.
 *
 * A path here is any string of bytes; its validity and permissions are checked elsewhere.
 */
import { isUtf8 } from 'node:buffer';
import { EventType, WatcherType } from '@tskeeper/protocol';
import type { CnxnId } from '../client-output.ts';
import { ByteStrings } from '../tables/byte-strings.ts';
import { LinearHash, mix } from '../tables/linear-hash.ts';
import { PagedDoubles, PagedInts } from '../tables/paged-numbers.ts';

/**
 * How a path is watched. One connection may watch one path in several modes at once, hence bits.
 */
export const WatchMode = { data: 1, child: 2, persistent: 4, recursive: 8 } as const;

/** The same modes as positions, which rows use. */
const data = 0;
const child = 1;
const persistent = 2;
const recursive = 3;
const modeCount = 4;

const dataTable: readonly number[] = [data, persistent, recursive];
const childTable: readonly number[] = [child, persistent];

/**
 * The key of a row: path number, colour, mode. Firing a one-shot mode of a path detaches a whole
 * ring at once and toggles the path's colour for that mode, so that rows that have fired, but whose
 * events are not sent yet, are never taken for live ones.
 */
const keyModeMask = 3;
const keyGeneration = 4;
const keyPathShift = 3;

/** The word of a path holds 30 bits of its hash above the colours of its two one-shot modes. */
const wordHashShift = 2;

/**
 * Dead rows cleared when a connection closes (a thousand may close in one turn), and at each later
 * addition.
 */
const reapedPerRemovalDefault = 256;
const reapedPerAdd = 4;

export class WatchTable {
  // Rows, from 1. An unused row has watcher 0 and is linked into the chain of unused rows by
  // #rowNextOnPath.
  readonly #rowWatcher = new PagedInts();
  readonly #rowKey = new PagedInts();
  readonly #rowNextOnPath = new PagedInts();
  readonly #rowPreviousOnPath = new PagedInts();
  readonly #rowNextOfWatcher = new PagedInts();
  readonly #rowPreviousOfWatcher = new PagedInts();
  readonly #rows = new LinearHash((row) => this.#hashOfRow(this.#rowWatcher.get(row), this.#rowKey.get(row)));
  #rowEnd = 1;
  #unusedRow = 0;

  // Paths, from 1, while they are watched. The text of an unused one links to the next unused.
  readonly #pathWord = new PagedInts();
  readonly #pathText = new PagedInts();
  /** The first row of each mode's ring, at path * modeCount + mode. */
  readonly #pathRing = new PagedInts();
  readonly #paths = new LinearHash((path) => this.#pathWord.get(path) >>> wordHashShift);
  readonly #texts = new ByteStrings();
  #pathEnd = 1;
  #unusedPath = 0;
  #pathsInDataTable = 0;

  // Watchers, from 1: a connection with watches. When a connection closes, its watcher remains,
  // with cnxn -1, until its rows are cleared; so the connection's id can be reused at once.
  readonly #watcherOf = new PagedInts();
  readonly #watcherCnxn = new PagedInts();
  readonly #watcherRing = new PagedInts();
  readonly #watcherData = new PagedInts();
  readonly #watcherChild = new PagedInts();
  /**
   * The dispatch in which this watcher was last notified. Doubles, because dispatches exceed 2^31
   * within hours.
   */
  readonly #watcherLastDispatch = new PagedDoubles();
  readonly #unusedWatchers: number[] = [];
  readonly #deadWatchers: number[] = [];
  #watcherEnd = 1;

  /** (connection, path) pairs in each table, of open connections. */
  #dataCount = 0;
  #childCount = 0;
  #cnxnsInDataTable = 0;
  #recursiveCount = 0;

  // The current dispatch. Stages are processed in order; a stage runs from its next row to its last
  // one, both updated when rows are removed.
  readonly #stageNext: number[] = [];
  readonly #stageLast: number[] = [];
  readonly #stageEvent: number[] = [];
  readonly #stageOnParent: boolean[] = [];
  readonly #stageOneShot: boolean[] = [];
  #stage = 0;
  #stages = 0;
  #dispatchNumber = 0;
  /**
   * The two paths whose rows may have fired without their events being sent: they are kept until
   * the end. 0 for none.
   */
  #firedPath = 0;
  #firedParent = 0;

  readonly #hashStart: number;
  readonly #hashFactor: number;
  readonly #reapedPerRemoval: number;
  #scratch = Buffer.allocUnsafeSlow(1024);
  /** Paths above the changed one, from the root down, that have recursive watches. */
  readonly #ancestors: number[] = [];

  /**
   * `hashSeed`, drawn at start, prevents clients from choosing paths that fall into one bucket.
   * `reapedAtOnce`: rows cleared when a connection closes.
   */
  constructor(options: { readonly hashSeed: number; readonly reapedAtOnce?: number }) {
    this.#reapedPerRemoval = options.reapedAtOnce ?? reapedPerRemovalDefault;
    this.#hashStart = mix(options.hashSeed);
    this.#hashFactor = mix(options.hashSeed ^ 0x5bd1e995) | 1;
  }

  /**
   * As ZooKeeper counts: entries of the data table plus entries of the child table, so a persistent
   * watch counts twice.
   */
  get count(): number {
    return this.#dataCount + this.#childCount;
  }

  /** The same for one connection. */
  countOf(cnxn: CnxnId): number {
    const watcher = this.#watcherOf.peek(cnxn);
    return watcher === 0 ? 0 : this.#watcherData.get(watcher) + this.#watcherChild.get(watcher);
  }

  /** Memory of the table, in bytes. */
  get bytes(): number {
    let sum = this.#rows.bytes + this.#paths.bytes + this.#texts.bytes + this.#watcherLastDispatch.bytes;
    for (const column of [
      this.#rowWatcher,
      this.#rowKey,
      this.#rowNextOnPath,
      this.#rowPreviousOnPath,
      this.#rowNextOfWatcher,
      this.#rowPreviousOfWatcher,
      this.#pathWord,
      this.#pathText,
      this.#pathRing,
      this.#watcherOf,
      this.#watcherCnxn,
      this.#watcherRing,
      this.#watcherData,
      this.#watcherChild,
    ]) {
      sum += column.bytes;
    }
    return sum;
  }

  /** Watches the path in one or more modes. A mode that is set already stays. */
  add(cnxn: CnxnId, path: Buffer, start: number, end: number, modes: number): void {
    this.reap(reapedPerAdd);
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
    let id = this.#findPath(hash, bytes, from, to);
    if (id === 0) id = this.#addPath(hash, bytes, from, to);
    const watcher = this.#watcherFor(cnxn);
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) !== 0) this.#addRow(watcher, id, mode);
    }
    this.#maybeFreePath(id);
  }

  addPath(cnxn: CnxnId, path: string, modes: number): void {
    const length = this.#encode(path);
    this.add(cnxn, this.#scratch, 0, length, modes);
  }

  /** checkWatches: whether the connection has a watch of that WatcherType on the path. */
  has(cnxn: CnxnId, path: string, type: number): boolean {
    const watcher = this.#watcherOf.peek(cnxn);
    const id = watcher === 0 ? 0 : this.#findText(path);
    if (id === 0) return false;
    const modes = modesOf(type);
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) !== 0 && this.#findRow(watcher, this.#liveKey(id, mode)) !== 0) return true;
    }
    return false;
  }

  /**
   * removeWatches: removes watches of that WatcherType; the connection's other watches on the path
   * stay.
   */
  remove(cnxn: CnxnId, path: string, type: number): boolean {
    const watcher = this.#watcherOf.peek(cnxn);
    const id = watcher === 0 ? 0 : this.#findText(path);
    if (id === 0) return false;
    const modes = modesOf(type);
    let removed = false;
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) === 0) continue;
      const row = this.#findRow(watcher, this.#liveKey(id, mode));
      if (row === 0) continue;
      this.#freeRow(row);
      removed = true;
    }
    this.#maybeFreePath(id);
    return removed;
  }

  /**
   * The connection is closed: none of its watches fires, counts or is listed any more, and its id
   * may be reused. The rows of a connection with very many watches are cleared gradually, by `reap`
   * and by later additions.
   */
  removeAll(cnxn: CnxnId): void {
    const watcher = this.#watcherOf.peek(cnxn);
    if (watcher === 0) return;
    this.#watcherOf.set(cnxn, 0);
    this.#watcherCnxn.set(watcher, -1);
    this.#dataCount -= this.#watcherData.get(watcher);
    this.#childCount -= this.#watcherChild.get(watcher);
    if (this.#watcherData.get(watcher) > 0) this.#cnxnsInDataTable--;
    this.#deadWatchers.push(watcher);
    this.reap(this.#reapedPerRemoval);
  }

  /** Rows of closed connections are left: `reap` should be called. */
  get hasDeadRows(): boolean {
    return this.#deadWatchers.length > 0;
  }

  /** Clears up to `budget` rows of closed connections; returns whether none is left. */
  reap(budget: number): boolean {
    let left = budget;
    for (;;) {
      const watcher = this.#deadWatchers.at(-1);
      if (watcher === undefined) return true;
      for (let row = this.#watcherRing.get(watcher); row !== 0; row = this.#watcherRing.get(watcher)) {
        if (left-- === 0) return false;
        const path = this.#rowKey.get(row) >>> keyPathShift;
        this.#freeRow(row);
        this.#maybeFreePath(path);
      }
      this.#deadWatchers.pop();
      this.#unusedWatchers.push(watcher);
    }
  }

  /**
   * A znode was created, deleted, or its data changed. Removes the one-shot watches that fire from
   * the table at once; `drain` notifies them. Returns false if there is no watcher. One dispatch
   * must be finished before the next begins.
   */
  startDispatch(path: string, eventType: number): boolean {
    if (this.#stages !== 0) throw new Error('a change was applied before the watchers of the previous one were notified');
    if (this.#pathEnd === 1) return false;
    const length = this.#encode(path);
    const bytes = this.#scratch;

    let parent = 0;
    let hash = this.#hashStart;
    let slashHash = hash;
    let slash = -1;
    const ancestors = this.#ancestors;
    ancestors.length = 0;
    for (let i = 0; i < length; i++) {
      if (bytes[i] === 0x2f && i > 0) {
        if (this.#recursiveCount > 0) this.#noteAncestor(hash, i);
        slash = i;
        slashHash = hash;
      }
      hash = this.#step(hash, bytes[i]!);
      // The root is the only prefix that ends in a slash.
      if (i === 0 && length > 1) {
        if (this.#recursiveCount > 0) this.#noteAncestor(hash, 1);
        slash = 1;
        slashHash = hash;
      }
    }
    const id = this.#findPath(finish(hash), bytes, 0, length);
    if (eventType !== EventType.nodeDataChanged && slash !== -1) parent = this.#findPath(finish(slashHash), bytes, 0, slash);

    if (id !== 0) {
      this.#fire(id, data, eventType, false);
      this.#addStage(id, persistent, eventType, false);
      this.#addStage(id, recursive, eventType, false);
    }
    for (let i = ancestors.length - 1; i >= 0; i--) this.#addStage(ancestors[i]!, recursive, eventType, false);
    // A persistent watch is in the child table as well, but has been notified already.
    if (id !== 0 && eventType === EventType.nodeDeleted) this.#fire(id, child, eventType, false);
    if (parent !== 0) {
      this.#fire(parent, child, EventType.nodeChildrenChanged, true);
      this.#addStage(parent, persistent, EventType.nodeChildrenChanged, true);
    }
    if (this.#stages === 0) return false;
    this.#firedPath = id;
    this.#firedParent = parent;
    // Two numbers: a connection notified of the znode may also be notified of its parent.
    this.#dispatchNumber += 2;
    return true;
  }

  /**
   * Notifies at most about `budget` watchers of the change; returns whether all have been notified.
   * Between two calls watches may be set and removed, and connections may close: new watches are
   * not notified, removed ones are not either. With `onParent` the event is about the parent of the
   * changed znode.
   */
  dispatch(visit: (cnxn: CnxnId, eventType: number, onParent: boolean) => void, budget: number): boolean {
    let left = budget;
    for (; this.#stage < this.#stages; this.#stage++) {
      const stage = this.#stage;
      const eventType = this.#stageEvent[stage]!;
      const onParent = this.#stageOnParent[stage]!;
      const oneShot = this.#stageOneShot[stage]!;
      const telling = onParent ? this.#dispatchNumber : this.#dispatchNumber - 1;
      for (let row = this.#stageNext[stage]!; row !== 0; row = this.#stageNext[stage]!) {
        if (left-- <= 0) return false;
        const watcher = this.#rowWatcher.get(row);
        if (oneShot) this.#freeRow(row);
        else this.#stageNext[stage] = row === this.#stageLast[stage] ? 0 : this.#rowNextOnPath.get(row);
        const cnxn = this.#watcherCnxn.get(watcher);
        if (cnxn === -1 || this.#watcherLastDispatch.get(watcher) >= telling) continue;
        this.#watcherLastDispatch.set(watcher, telling);
        visit(cnxn, eventType, onParent);
      }
    }
    this.#stage = 0;
    this.#stages = 0;
    const path = this.#firedPath;
    const parent = this.#firedParent;
    this.#firedPath = 0;
    this.#firedParent = 0;
    if (path !== 0) this.#maybeFreePath(path);
    if (parent !== 0) this.#maybeFreePath(parent);
    return true;
  }

  /**
   * Of the data table only, as wchs shows it. A path counts until the rows of closed connections
   * are cleared from it.
   */
  summary(): { cnxns: number; paths: number; watches: number } {
    return { cnxns: this.#cnxnsInDataTable, paths: this.#pathsInDataTable, watches: this.#dataCount };
  }

  /**
   * The data table by connection, as wchc shows it. The table may change during the iteration: a
   * list whose position in the table is removed ends there.
   */
  *byCnxn(): Generator<{ cnxn: CnxnId; paths: Iterable<string> }, void, undefined> {
    for (let watcher = 1; watcher < this.#watcherEnd; watcher++) {
      const cnxn = this.#watcherCnxn.get(watcher);
      if (cnxn !== -1 && this.#watcherData.get(watcher) > 0) yield { cnxn, paths: this.#pathsOf(watcher, cnxn) };
    }
  }

  /** The data table by path, as wchp shows it. The rules of `byCnxn` apply. */
  *byPath(): Generator<{ path: string; cnxns: Iterable<CnxnId> }, void, undefined> {
    for (let path = 1; path < this.#pathEnd; path++) {
      if (this.#isInDataTable(path)) {
        yield { path: this.#texts.text(this.#pathText.get(path)), cnxns: this.#cnxnsOn(path) };
      }
    }
  }

  *#pathsOf(watcher: number, cnxn: CnxnId): Generator<string, void, undefined> {
    let row = this.#watcherRing.get(watcher);
    while (row !== 0) {
      const key = this.#rowKey.get(row);
      const path = key >>> keyPathShift;
      if (this.#isFirstInDataTable(watcher, path, key)) yield this.#texts.text(this.#pathText.get(path));
      if (this.#rowWatcher.get(row) !== watcher || this.#watcherCnxn.get(watcher) !== cnxn) return;
      row = this.#rowNextOfWatcher.get(row);
      if (row === this.#watcherRing.get(watcher)) return;
    }
  }

  *#cnxnsOn(path: number): Generator<CnxnId, void, undefined> {
    // Shows whether the path number still means this path, and its rows are still those that have
    // not fired.
    const word = this.#pathWord.get(path);
    for (const mode of dataTable) {
      let row = this.#pathRing.get(path * modeCount + mode);
      while (row !== 0) {
        const key = this.#rowKey.get(row);
        const watcher = this.#rowWatcher.get(row);
        const cnxn = this.#watcherCnxn.get(watcher);
        if (cnxn !== -1 && this.#isFirstInDataTable(watcher, path, key)) yield cnxn;
        if (this.#rowKey.get(row) !== key || this.#pathWord.get(path) !== word) return;
        row = this.#rowNextOnPath.get(row);
        if (row === this.#pathRing.get(path * modeCount + mode)) break;
      }
    }
  }

  /**
   * Whether this live row represents its (connection, path) pair in lists: the first of its modes
   * in the data table.
   */
  #isFirstInDataTable(watcher: number, path: number, key: number): boolean {
    const own = key & keyModeMask;
    if (own === child || key !== this.#liveKey(path, own)) return false;
    for (const mode of dataTable) {
      if (mode === own) return true;
      if (this.#findRow(watcher, this.#liveKey(path, mode)) !== 0) return false;
    }
    return false;
  }

  #isInDataTable(path: number): boolean {
    for (const mode of dataTable) {
      if (this.#pathRing.get(path * modeCount + mode) !== 0) return true;
    }
    return false;
  }

  // ---- dispatch

  #noteAncestor(hash: number, end: number): void {
    const id = this.#findPath(finish(hash), this.#scratch, 0, end);
    if (id !== 0 && this.#pathRing.get(id * modeCount + recursive) !== 0) this.#ancestors.push(id);
  }

  #addStage(path: number, mode: number, eventType: number, onParent: boolean): void {
    const first = this.#pathRing.get(path * modeCount + mode);
    if (first === 0) return;
    const stage = this.#stages++;
    this.#stageNext[stage] = first;
    this.#stageLast[stage] = this.#rowPreviousOnPath.get(first);
    this.#stageEvent[stage] = eventType;
    this.#stageOnParent[stage] = onParent;
    this.#stageOneShot[stage] = mode === data || mode === child;
  }

  /**
   * Detaches the ring of a one-shot mode from its path; it continues to exist as the rest of a
   * stage.
   */
  #fire(path: number, mode: number, eventType: number, onParent: boolean): void {
    if (this.#pathRing.get(path * modeCount + mode) === 0) return;
    this.#addStage(path, mode, eventType, onParent);
    this.#setRing(path, mode, 0);
    this.#pathWord.set(path, this.#pathWord.get(path) ^ (1 << mode));
  }

  // ---- rows

  #addRow(watcher: number, path: number, mode: number): void {
    const key = this.#liveKey(path, mode);
    if (this.#findRow(watcher, key) !== 0) return;
    const isNewInData = mode !== child && !this.#isInTable(watcher, path, dataTable);
    const isNewInChild = (mode === child || mode === persistent) && !this.#isInTable(watcher, path, childTable);

    let row = this.#unusedRow;
    if (row === 0) {
      row = this.#rowEnd++;
      this.#rowWatcher.ensure(row);
      this.#rowKey.ensure(row);
      this.#rowNextOnPath.ensure(row);
      this.#rowPreviousOnPath.ensure(row);
      this.#rowNextOfWatcher.ensure(row);
      this.#rowPreviousOfWatcher.ensure(row);
    } else {
      this.#unusedRow = this.#rowNextOnPath.get(row);
    }
    this.#rowWatcher.set(row, watcher);
    this.#rowKey.set(row, key);
    this.#rows.insert(row, this.#hashOfRow(watcher, key));

    const first = this.#pathRing.get(path * modeCount + mode);
    if (first === 0) {
      this.#rowNextOnPath.set(row, row);
      this.#rowPreviousOnPath.set(row, row);
      this.#setRing(path, mode, row);
    } else {
      const last = this.#rowPreviousOnPath.get(first);
      this.#rowNextOnPath.set(last, row);
      this.#rowPreviousOnPath.set(row, last);
      this.#rowNextOnPath.set(row, first);
      this.#rowPreviousOnPath.set(first, row);
    }

    const firstOwn = this.#watcherRing.get(watcher);
    if (firstOwn === 0) {
      this.#rowNextOfWatcher.set(row, row);
      this.#rowPreviousOfWatcher.set(row, row);
      this.#watcherRing.set(watcher, row);
    } else {
      const last = this.#rowPreviousOfWatcher.get(firstOwn);
      this.#rowNextOfWatcher.set(last, row);
      this.#rowPreviousOfWatcher.set(row, last);
      this.#rowNextOfWatcher.set(row, firstOwn);
      this.#rowPreviousOfWatcher.set(firstOwn, row);
    }

    if (mode === recursive) this.#recursiveCount++;
    if (isNewInData) this.#countData(watcher, 1);
    if (isNewInChild) this.#countChild(watcher, 1);
  }

  /** Removes a row from all its rings. The path stays, see `#maybeFreePath`. */
  #freeRow(row: number): void {
    const watcher = this.#rowWatcher.get(row);
    const key = this.#rowKey.get(row);
    const path = key >>> keyPathShift;
    const mode = key & keyModeMask;
    this.#rows.delete(row, this.#hashOfRow(watcher, key));

    const next = this.#rowNextOnPath.get(row);
    const previous = this.#rowPreviousOnPath.get(row);
    for (let stage = this.#stage; stage < this.#stages; stage++) {
      if (this.#stageNext[stage] === row) this.#stageNext[stage] = this.#stageLast[stage] === row ? 0 : next;
      else if (this.#stageLast[stage] === row) this.#stageLast[stage] = previous;
    }
    if (this.#pathRing.get(path * modeCount + mode) === row) this.#setRing(path, mode, next === row ? 0 : next);
    this.#rowNextOnPath.set(previous, next);
    this.#rowPreviousOnPath.set(next, previous);

    const nextOwn = this.#rowNextOfWatcher.get(row);
    const previousOwn = this.#rowPreviousOfWatcher.get(row);
    if (this.#watcherRing.get(watcher) === row) this.#watcherRing.set(watcher, nextOwn === row ? 0 : nextOwn);
    this.#rowNextOfWatcher.set(previousOwn, nextOwn);
    this.#rowPreviousOfWatcher.set(nextOwn, previousOwn);

    this.#rowWatcher.set(row, 0);
    this.#rowKey.set(row, 0);
    this.#rowNextOnPath.set(row, this.#unusedRow);
    this.#unusedRow = row;

    if (mode === recursive) this.#recursiveCount--;
    if (mode !== child && !this.#isInTable(watcher, path, dataTable)) this.#countData(watcher, -1);
    if ((mode === child || mode === persistent) && !this.#isInTable(watcher, path, childTable)) this.#countChild(watcher, -1);
  }

  #countData(watcher: number, by: 1 | -1): void {
    const count = this.#watcherData.get(watcher) + by;
    this.#watcherData.set(watcher, count);
    if (this.#watcherCnxn.get(watcher) === -1) return;
    this.#dataCount += by;
    if (by === 1 ? count === 1 : count === 0) this.#cnxnsInDataTable += by;
  }

  #countChild(watcher: number, by: 1 | -1): void {
    this.#watcherChild.set(watcher, this.#watcherChild.get(watcher) + by);
    if (this.#watcherCnxn.get(watcher) !== -1) this.#childCount += by;
  }

  /**
   * Whether the connection has a row on the path in any of these modes, notified or about to be.
   */
  #isInTable(watcher: number, path: number, modes: readonly number[]): boolean {
    const hasFired = path === this.#firedPath || path === this.#firedParent;
    for (const mode of modes) {
      const live = this.#liveKey(path, mode);
      if (this.#pathRing.get(path * modeCount + mode) !== 0 && this.#findRow(watcher, live) !== 0) return true;
      if (hasFired && (mode === data || mode === child) && this.#findRow(watcher, live ^ keyGeneration) !== 0) return true;
    }
    return false;
  }

  #liveKey(path: number, mode: number): number {
    const colour = mode === data || mode === child ? (this.#pathWord.get(path) >>> mode) & 1 : 0;
    return (path << keyPathShift) | (colour * keyGeneration) | mode;
  }

  #findRow(watcher: number, key: number): number {
    for (let row = this.#rows.first(this.#hashOfRow(watcher, key)); row !== 0; row = this.#rows.next(row)) {
      if (this.#rowKey.get(row) === key && this.#rowWatcher.get(row) === watcher) return row;
    }
    return 0;
  }

  #hashOfRow(watcher: number, key: number): number {
    return mix(Math.imul(watcher, 0x9e3779b1) ^ key ^ this.#hashStart);
  }

  // ---- paths

  #setRing(path: number, mode: number, row: number): void {
    const at = path * modeCount + mode;
    if (mode === child) {
      this.#pathRing.set(at, row);
      return;
    }
    const before = this.#isInDataTable(path);
    this.#pathRing.set(at, row);
    const after = this.#isInDataTable(path);
    if (before !== after) this.#pathsInDataTable += after ? 1 : -1;
  }

  #addPath(hash: number, bytes: Buffer, start: number, end: number): number {
    let path = this.#unusedPath;
    if (path === 0) {
      path = this.#pathEnd++;
      this.#pathWord.ensure(path);
      this.#pathText.ensure(path);
      this.#pathRing.ensure(path * modeCount + modeCount - 1);
    } else {
      this.#unusedPath = this.#pathText.get(path);
    }
    this.#pathWord.set(path, hash << wordHashShift);
    this.#pathText.set(path, this.#texts.put(bytes, start, end));
    this.#paths.insert(path, hash);
    return path;
  }

  #maybeFreePath(path: number): void {
    if (path === this.#firedPath || path === this.#firedParent) return;
    const at = path * modeCount;
    if (
      this.#pathRing.get(at) !== 0 ||
      this.#pathRing.get(at + 1) !== 0 ||
      this.#pathRing.get(at + 2) !== 0 ||
      this.#pathRing.get(at + 3) !== 0
    ) {
      return;
    }
    this.#paths.delete(path, this.#pathWord.get(path) >>> wordHashShift);
    this.#texts.free(this.#pathText.get(path));
    this.#pathText.set(path, this.#unusedPath);
    this.#unusedPath = path;
  }

  #findText(path: string): number {
    const length = this.#encode(path);
    return this.#findPath(this.#hash(this.#scratch, 0, length), this.#scratch, 0, length);
  }

  #findPath(hash: number, bytes: Buffer, start: number, end: number): number {
    for (let path = this.#paths.first(hash); path !== 0; path = this.#paths.next(path)) {
      if (this.#pathWord.get(path) >>> wordHashShift === hash && this.#texts.equals(this.#pathText.get(path), bytes, start, end))
        return path;
    }
    return 0;
  }

  #hash(bytes: Buffer, start: number, end: number): number {
    let hash = this.#hashStart;
    for (let i = start; i < end; i++) hash = this.#step(hash, bytes[i]!);
    return finish(hash);
  }

  /**
   * Adds one byte. The hashes of prefixes are intermediate results, which makes a dispatch one
   * pass.
   */
  #step(hash: number, byte: number): number {
    const h = Math.imul(hash ^ byte, this.#hashFactor);
    return h ^ (h >>> 15);
  }

  /** Writes the text's UTF-8 into the scratch buffer and returns its length. */
  #encode(text: string): number {
    if (text.length * 3 > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(text.length * 3);
    return this.#scratch.write(text, 'utf8');
  }

  // ---- watchers

  #watcherFor(cnxn: CnxnId): number {
    this.#watcherOf.ensure(cnxn);
    let watcher = this.#watcherOf.get(cnxn);
    if (watcher !== 0) return watcher;
    watcher = this.#unusedWatchers.pop() ?? this.#watcherEnd++;
    this.#watcherCnxn.ensure(watcher);
    this.#watcherRing.ensure(watcher);
    this.#watcherData.ensure(watcher);
    this.#watcherChild.ensure(watcher);
    this.#watcherLastDispatch.ensure(watcher);
    this.#watcherOf.set(cnxn, watcher);
    this.#watcherCnxn.set(watcher, cnxn);
    this.#watcherLastDispatch.set(watcher, 0);
    return watcher;
  }
}

/** The modes of a WatcherType; none for an unknown type. */
function modesOf(type: number): number {
  switch (type) {
    case WatcherType.children:
      return WatchMode.child;
    case WatcherType.data:
      return WatchMode.data;
    case WatcherType.any:
      return WatchMode.data | WatchMode.child | WatchMode.persistent | WatchMode.recursive;
    case WatcherType.persistent:
      return WatchMode.persistent;
    case WatcherType.persistentRecursive:
      return WatchMode.recursive;
    default:
      return 0;
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
