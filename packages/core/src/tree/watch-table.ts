/**
 * The watches of all connections, and the dispatch of events to them.
 *
 * A change of znode N with parent P fires in this order, at most once per connection for the same
 * znode (the modes of watches and ZooKeeper's two tables: watch-mode.ts):
 *
 *     data table of N, with the recursive watches on N and all above it    created, deleted, data changed
 *     child table of N                                                     deleted
 *     child table of P, as "children changed" of P                         created, deleted
 *
 * There can be millions of watches. The rows of watches (watch-rows.ts), of watched paths
 * (watched-paths.ts) and of connections (watchers.ts) are arrays of numbers. The cost of a change
 * is the path's depth plus the number of watchers.
 *
 * A path here is any string of bytes; its validity and permissions are checked elsewhere.
 */
import { EventType } from '@tskeeper/protocol';
import type { CnxnId } from '../client-output.ts';
import {
  child,
  childTable,
  data,
  dataTable,
  isOneShot,
  keyColour,
  keyModeMask,
  keyPathShift,
  modeCount,
  modesOf,
  persistent,
  recursive,
} from './watch-mode.ts';
import { WatchRows } from './watch-rows.ts';
import { WatchStages } from './watch-stages.ts';
import { WatchedPaths } from './watched-paths.ts';
import { closedCnxn, Watchers } from './watchers.ts';

/**
 * Dead rows cleared when a connection closes (a thousand may close in one turn), and at each later
 * addition.
 */
const reapedPerRemovalDefault = 256;
const reapedPerAdd = 4;

export class WatchTable {
  readonly #paths: WatchedPaths;
  readonly #watchers = new Watchers();
  readonly #rows: WatchRows;
  /** The current dispatch. */
  readonly #stages = new WatchStages();
  readonly #reapedPerRemoval: number;
  /** Rows of recursive watches. Without any, the ancestors of a changed path are not looked up. */
  #recursiveCount = 0;

  /**
   * `hashSeed`, drawn at start, prevents clients from choosing paths that fall into one bucket.
   * `reapedAtOnce`: rows cleared when a connection closes.
   */
  constructor(options: { readonly hashSeed: number; readonly reapedAtOnce?: number }) {
    this.#reapedPerRemoval = options.reapedAtOnce ?? reapedPerRemovalDefault;
    this.#paths = new WatchedPaths(options.hashSeed);
    this.#rows = new WatchRows(options.hashSeed, this.#paths, this.#watchers);
  }

  /**
   * As ZooKeeper counts: entries of the data table plus entries of the child table, so a persistent
   * watch counts twice.
   */
  get count(): number {
    return this.#watchers.dataCount + this.#watchers.childCount;
  }

  /** The same for one connection. */
  countOf(cnxn: CnxnId): number {
    const watcher = this.#watchers.find(cnxn);
    return watcher === 0 ? 0 : this.#watchers.countOf(watcher);
  }

  /** Memory of the table, in bytes. */
  get bytes(): number {
    return this.#rows.bytes + this.#paths.bytes + this.#watchers.bytes;
  }

  /** Watches the path in one or more modes. A mode that is set already stays. */
  add(cnxn: CnxnId, path: Buffer, start: number, end: number, modes: number): void {
    this.reap(reapedPerAdd);
    const id = this.#paths.findOrAdd(path, start, end);
    const watcher = this.#watchers.findOrAdd(cnxn);
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) !== 0) this.#addRow(watcher, id, mode);
    }
    this.#maybeFreePath(id);
  }

  addPath(cnxn: CnxnId, path: string, modes: number): void {
    const length = this.#paths.encode(path);
    this.add(cnxn, this.#paths.encoded, 0, length, modes);
  }

  /** checkWatches: whether the connection has a watch of that WatcherType on the path. */
  has(cnxn: CnxnId, path: string, type: number): boolean {
    const watcher = this.#watchers.find(cnxn);
    const id = watcher === 0 ? 0 : this.#paths.find(path);
    if (id === 0) return false;
    const modes = modesOf(type);
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) !== 0 && this.#rows.find(watcher, this.#paths.liveKey(id, mode)) !== 0) return true;
    }
    return false;
  }

  /**
   * removeWatches: removes watches of that WatcherType; the connection's other watches on the path
   * stay.
   */
  remove(cnxn: CnxnId, path: string, type: number): boolean {
    const watcher = this.#watchers.find(cnxn);
    const id = watcher === 0 ? 0 : this.#paths.find(path);
    if (id === 0) return false;
    const modes = modesOf(type);
    let removed = false;
    for (let mode = 0; mode < modeCount; mode++) {
      if ((modes & (1 << mode)) === 0) continue;
      const row = this.#rows.find(watcher, this.#paths.liveKey(id, mode));
      if (row === 0) continue;
      this.#removeRow(row);
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
    const watcher = this.#watchers.find(cnxn);
    if (watcher === 0) return;
    this.#watchers.close(cnxn, watcher);
    this.reap(this.#reapedPerRemoval);
  }

  /** Rows of closed connections are left: `reap` should be called. */
  get hasDeadRows(): boolean {
    return this.#watchers.lastDead !== undefined;
  }

  /** Clears up to `budget` rows of closed connections; returns whether none is left. */
  reap(budget: number): boolean {
    let left = budget;
    for (;;) {
      const watcher = this.#watchers.lastDead;
      if (watcher === undefined) return true;
      for (let row = this.#watchers.ringOf(watcher); row !== 0; row = this.#watchers.ringOf(watcher)) {
        if (left-- === 0) return false;
        const path = this.#rows.keyOf(row) >>> keyPathShift;
        this.#removeRow(row);
        this.#maybeFreePath(path);
      }
      this.#watchers.freeLastDead();
    }
  }

  /**
   * A znode was created, deleted, or its data changed. Removes the one-shot watches that fire from
   * the table at once; `dispatch` notifies them. Returns false if there is no watcher. One dispatch
   * must be finished before the next begins.
   */
  startDispatch(path: string, eventType: number): boolean {
    if (!this.#stages.isEmpty) throw new Error('a change was applied before the watchers of the previous one were notified');
    const paths = this.#paths;
    if (paths.end === 1) return false;
    paths.locate(path, eventType !== EventType.nodeDataChanged, this.#recursiveCount > 0);
    const { ancestors, located: id, locatedParent: parent } = paths;
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
    if (this.#stages.isEmpty) return false;
    this.#stages.start(id, parent);
    return true;
  }

  /**
   * Notifies at most about `budget` watchers of the change; returns whether all have been notified.
   * Between two calls watches may be set and removed, and connections may close: new watches are
   * not notified, removed ones are not either. With `onParent` the event is about the parent of the
   * changed znode.
   */
  dispatch(visit: (cnxn: CnxnId, eventType: number, onParent: boolean) => void, budget: number): boolean {
    const stages = this.#stages;
    const rows = this.#rows;
    const watchers = this.#watchers;
    let left = budget;
    for (; !stages.isOver; stages.finishStage()) {
      const { eventType, onParent, isOneShot: oneShot, dispatchNumber } = stages;
      for (let row = stages.row; row !== 0; row = stages.row) {
        if (left-- <= 0) return false;
        const watcher = rows.watcherOf(row);
        if (oneShot) this.#removeRow(row);
        else stages.pass(row, rows.nextOnPath(row));
        const cnxn = watchers.cnxnOf(watcher);
        if (cnxn !== closedCnxn && watchers.markNotified(watcher, dispatchNumber)) visit(cnxn, eventType, onParent);
      }
    }
    const { firedPath, firedParent } = stages;
    stages.clear();
    if (firedPath !== 0) this.#maybeFreePath(firedPath);
    if (firedParent !== 0) this.#maybeFreePath(firedParent);
    return true;
  }

  /**
   * Of the data table only, as wchs shows it. A path counts until the rows of closed connections
   * are cleared from it.
   */
  summary(): { cnxns: number; paths: number; watches: number } {
    return { cnxns: this.#watchers.cnxnsInDataTable, paths: this.#paths.inDataTable, watches: this.#watchers.dataCount };
  }

  /**
   * The data table by connection, as wchc shows it. The table may change during the iteration: a
   * list whose position in the table is removed ends there.
   */
  *byCnxn(): Generator<{ cnxn: CnxnId; paths: Iterable<string> }, void, undefined> {
    for (let watcher = 1; watcher < this.#watchers.end; watcher++) {
      const cnxn = this.#watchers.cnxnOf(watcher);
      if (cnxn !== closedCnxn && this.#watchers.dataCountOf(watcher) > 0) yield { cnxn, paths: this.#pathsOf(watcher, cnxn) };
    }
  }

  /** The data table by path, as wchp shows it. The rules of `byCnxn` apply. */
  *byPath(): Generator<{ path: string; cnxns: Iterable<CnxnId> }, void, undefined> {
    for (let path = 1; path < this.#paths.end; path++) {
      if (this.#paths.isInDataTable(path)) {
        yield { path: this.#paths.textOf(path), cnxns: this.#cnxnsOn(path) };
      }
    }
  }

  *#pathsOf(watcher: number, cnxn: CnxnId): Generator<string, void, undefined> {
    let row = this.#watchers.ringOf(watcher);
    while (row !== 0) {
      const key = this.#rows.keyOf(row);
      const path = key >>> keyPathShift;
      if (this.#isFirstInDataTable(watcher, path, key)) yield this.#paths.textOf(path);
      if (this.#rows.watcherOf(row) !== watcher || this.#watchers.cnxnOf(watcher) !== cnxn) return;
      row = this.#rows.nextOfWatcher(row);
      if (row === this.#watchers.ringOf(watcher)) return;
    }
  }

  *#cnxnsOn(path: number): Generator<CnxnId, void, undefined> {
    // Shows whether the path number still means this path, and its rows are still those that have
    // not fired.
    const word = this.#paths.wordOf(path);
    for (const mode of dataTable) {
      let row = this.#paths.ringOf(path, mode);
      while (row !== 0) {
        const key = this.#rows.keyOf(row);
        const watcher = this.#rows.watcherOf(row);
        const cnxn = this.#watchers.cnxnOf(watcher);
        if (cnxn !== closedCnxn && this.#isFirstInDataTable(watcher, path, key)) yield cnxn;
        if (this.#rows.keyOf(row) !== key || this.#paths.wordOf(path) !== word) return;
        row = this.#rows.nextOnPath(row);
        if (row === this.#paths.ringOf(path, mode)) break;
      }
    }
  }

  /**
   * Whether this live row represents its (connection, path) pair in lists: the first of its modes
   * in the data table.
   */
  #isFirstInDataTable(watcher: number, path: number, key: number): boolean {
    const own = key & keyModeMask;
    if (own === child || key !== this.#paths.liveKey(path, own)) return false;
    for (const mode of dataTable) {
      if (mode === own) return true;
      if (this.#rows.find(watcher, this.#paths.liveKey(path, mode)) !== 0) return false;
    }
    return false;
  }

  // ---- dispatch

  #addStage(path: number, mode: number, eventType: number, onParent: boolean): void {
    const first = this.#paths.ringOf(path, mode);
    if (first !== 0) this.#stages.add(first, this.#rows.previousOnPath(first), eventType, onParent, isOneShot(mode));
  }

  /**
   * Detaches the ring of a one-shot mode from its path; it continues to exist as the rest of a
   * stage.
   */
  #fire(path: number, mode: number, eventType: number, onParent: boolean): void {
    if (this.#paths.ringOf(path, mode) === 0) return;
    this.#addStage(path, mode, eventType, onParent);
    this.#paths.detachRing(path, mode);
  }

  // ---- rows

  #addRow(watcher: number, path: number, mode: number): void {
    const key = this.#paths.liveKey(path, mode);
    if (this.#rows.find(watcher, key) !== 0) return;
    const isNewInData = mode !== child && !this.#isInTable(watcher, path, dataTable);
    const isNewInChild = (mode === child || mode === persistent) && !this.#isInTable(watcher, path, childTable);
    this.#rows.add(watcher, key);
    if (mode === recursive) this.#recursiveCount++;
    if (isNewInData) this.#watchers.countData(watcher, 1);
    if (isNewInChild) this.#watchers.countChild(watcher, 1);
  }

  /** The path stays, see `#maybeFreePath`. */
  #removeRow(row: number): void {
    const watcher = this.#rows.watcherOf(row);
    const key = this.#rows.keyOf(row);
    const path = key >>> keyPathShift;
    const mode = key & keyModeMask;
    this.#stages.rowRemoved(row, this.#rows.previousOnPath(row), this.#rows.nextOnPath(row));
    this.#rows.remove(row);
    if (mode === recursive) this.#recursiveCount--;
    if (mode !== child && !this.#isInTable(watcher, path, dataTable)) this.#watchers.countData(watcher, -1);
    if ((mode === child || mode === persistent) && !this.#isInTable(watcher, path, childTable)) this.#watchers.countChild(watcher, -1);
  }

  /**
   * Whether the connection has a row on the path in any of these modes, notified or about to be.
   */
  #isInTable(watcher: number, path: number, modes: readonly number[]): boolean {
    const hasFired = this.#stages.hasFired(path);
    for (const mode of modes) {
      const live = this.#paths.liveKey(path, mode);
      if (this.#paths.ringOf(path, mode) !== 0 && this.#rows.find(watcher, live) !== 0) return true;
      if (hasFired && isOneShot(mode) && this.#rows.find(watcher, live ^ keyColour) !== 0) return true;
    }
    return false;
  }

  #maybeFreePath(path: number): void {
    if (!this.#stages.hasFired(path)) this.#paths.maybeFree(path);
  }
}
