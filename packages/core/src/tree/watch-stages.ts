/**
 * What remains to be notified of the current change: rings of watches, in the order in which they
 * fire, called stages.
 *
 * A stage runs from its next row to its last one. Between two steps of a dispatch, watches may be
 * removed; both are updated then. A ring is circular, so a new watch on the path is added after the
 * last row of the stage, and is not notified.
 */
export class WatchStages {
  readonly #next: number[] = [];
  readonly #last: number[] = [];
  readonly #eventType: number[] = [];
  readonly #onParent: boolean[] = [];
  readonly #isOneShot: boolean[] = [];
  #stage = 0;
  #count = 0;
  #dispatchNumber = 0;
  /**
   * The two paths whose rows may have fired without their events being sent: they are kept until
   * the end. 0 for none.
   */
  #firedPath = 0;
  #firedParent = 0;

  /** No stage has been added since the last dispatch has ended. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Adds the ring that begins with `first` and ends with `last`. */
  add(first: number, last: number, eventType: number, onParent: boolean, isOneShot: boolean): void {
    const stage = this.#count++;
    this.#next[stage] = first;
    this.#last[stage] = last;
    this.#eventType[stage] = eventType;
    this.#onParent[stage] = onParent;
    this.#isOneShot[stage] = isOneShot;
  }

  /** All stages of a change have been added. The paths are the changed one and its parent. */
  start(path: number, parent: number): void {
    this.#firedPath = path;
    this.#firedParent = parent;
    // Two numbers: a connection notified of the znode may also be notified of its parent.
    this.#dispatchNumber += 2;
  }

  get firedPath(): number {
    return this.#firedPath;
  }

  get firedParent(): number {
    return this.#firedParent;
  }

  /** Whether rows of this path may have fired without their events being sent. */
  hasFired(path: number): boolean {
    return path === this.#firedPath || path === this.#firedParent;
  }

  // ---- the current stage

  get isOver(): boolean {
    return this.#stage >= this.#count;
  }

  get eventType(): number {
    return this.#eventType[this.#stage]!;
  }

  get onParent(): boolean {
    return this.#onParent[this.#stage]!;
  }

  get isOneShot(): boolean {
    return this.#isOneShot[this.#stage]!;
  }

  /** The number under which a connection is notified at most once. */
  get dispatchNumber(): number {
    return this.onParent ? this.#dispatchNumber : this.#dispatchNumber - 1;
  }

  /** The next row to be notified; 0 after the last. */
  get row(): number {
    return this.#next[this.#stage]!;
  }

  /** `row` is done, and stays on its ring, where `next` follows. */
  pass(row: number, next: number): void {
    const stage = this.#stage;
    this.#next[stage] = row === this.#last[stage] ? 0 : next;
  }

  finishStage(): void {
    this.#stage++;
  }

  /** All stages are done. */
  clear(): void {
    this.#stage = 0;
    this.#count = 0;
    this.#firedPath = 0;
    this.#firedParent = 0;
  }

  /** A row is about to leave its ring, where it stands between these two. */
  rowRemoved(row: number, previous: number, next: number): void {
    for (let stage = this.#stage; stage < this.#count; stage++) {
      if (this.#next[stage] === row) this.#next[stage] = this.#last[stage] === row ? 0 : next;
      else if (this.#last[stage] === row) this.#last[stage] = previous;
    }
  }
}
