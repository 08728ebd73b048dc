/**
 * The connections that have watches, each with a number, a ring of its rows, and counts.
 *
 * When a connection closes, its watcher remains, without a connection, until its rows are cleared.
 * So the id of the connection can be reused at once, however many watches it had.
 */
import type { CnxnId } from '../client-output.ts';
import { PagedDoubles, PagedInts } from '../tables/paged-numbers.ts';

/** The connection of a watcher whose connection is closed. */
export const closedCnxn: CnxnId = -1;

export class Watchers {
  readonly #ofCnxn = new PagedInts();
  // Watchers, from 1.
  readonly #cnxn = new PagedInts();
  readonly #ring = new PagedInts();
  readonly #dataCounts = new PagedInts();
  readonly #childCounts = new PagedInts();
  /**
   * The dispatch in which this watcher was last notified. Doubles, because dispatches exceed 2^31
   * within hours.
   */
  readonly #lastDispatch = new PagedDoubles();
  readonly #unused: number[] = [];
  readonly #dead: number[] = [];
  #end = 1;

  /** (connection, path) pairs in each table, of open connections. */
  #dataCount = 0;
  #childCount = 0;
  #cnxnsInDataTable = 0;

  /** Memory of the table, in bytes. */
  get bytes(): number {
    let sum = this.#lastDispatch.bytes;
    for (const column of [this.#ofCnxn, this.#cnxn, this.#ring, this.#dataCounts, this.#childCounts]) sum += column.bytes;
    return sum;
  }

  /** One more than the highest watcher number in use. */
  get end(): number {
    return this.#end;
  }

  get dataCount(): number {
    return this.#dataCount;
  }

  get childCount(): number {
    return this.#childCount;
  }

  get cnxnsInDataTable(): number {
    return this.#cnxnsInDataTable;
  }

  /** The watcher of a connection, 0 for none. */
  find(cnxn: CnxnId): number {
    return this.#ofCnxn.peek(cnxn);
  }

  findOrAdd(cnxn: CnxnId): number {
    this.#ofCnxn.ensure(cnxn);
    let watcher = this.#ofCnxn.get(cnxn);
    if (watcher !== 0) return watcher;
    watcher = this.#unused.pop() ?? this.#end++;
    this.#cnxn.ensure(watcher);
    this.#ring.ensure(watcher);
    this.#dataCounts.ensure(watcher);
    this.#childCounts.ensure(watcher);
    this.#lastDispatch.ensure(watcher);
    this.#ofCnxn.set(cnxn, watcher);
    this.#cnxn.set(watcher, cnxn);
    this.#lastDispatch.set(watcher, 0);
    return watcher;
  }

  /** The connection of a watcher, `closedCnxn` if it is closed. */
  cnxnOf(watcher: number): CnxnId {
    return this.#cnxn.get(watcher);
  }

  /** A row of the watcher; 0 for none. */
  ringOf(watcher: number): number {
    return this.#ring.get(watcher);
  }

  setRing(watcher: number, row: number): void {
    this.#ring.set(watcher, row);
  }

  dataCountOf(watcher: number): number {
    return this.#dataCounts.get(watcher);
  }

  /** Entries in both tables. */
  countOf(watcher: number): number {
    return this.#dataCounts.get(watcher) + this.#childCounts.get(watcher);
  }

  countData(watcher: number, by: 1 | -1): void {
    const count = this.#dataCounts.get(watcher) + by;
    this.#dataCounts.set(watcher, count);
    if (this.#cnxn.get(watcher) === closedCnxn) return;
    this.#dataCount += by;
    if (by === 1 ? count === 1 : count === 0) this.#cnxnsInDataTable += by;
  }

  countChild(watcher: number, by: 1 | -1): void {
    this.#childCounts.set(watcher, this.#childCounts.get(watcher) + by);
    if (this.#cnxn.get(watcher) !== closedCnxn) this.#childCount += by;
  }

  /** Returns whether the watcher has not been notified in this dispatch, or a later one, before. */
  markNotified(watcher: number, dispatch: number): boolean {
    if (this.#lastDispatch.get(watcher) >= dispatch) return false;
    this.#lastDispatch.set(watcher, dispatch);
    return true;
  }

  /** The connection is closed: its watches no longer count. */
  close(cnxn: CnxnId, watcher: number): void {
    this.#ofCnxn.set(cnxn, 0);
    this.#cnxn.set(watcher, closedCnxn);
    this.#dataCount -= this.#dataCounts.get(watcher);
    this.#childCount -= this.#childCounts.get(watcher);
    if (this.#dataCounts.get(watcher) > 0) this.#cnxnsInDataTable--;
    this.#dead.push(watcher);
  }

  /** A closed watcher whose rows must be cleared; undefined if there is none. */
  get lastDead(): number | undefined {
    return this.#dead.at(-1);
  }

  /** The rows of `lastDead` have been cleared. */
  freeLastDead(): void {
    this.#unused.push(this.#dead.pop()!);
  }
}
