/**
 * A snapshot of the tree in progress: the znodes written, the position, and the records written
 * ahead.
 *
 * Several are in progress at once, each for its own moment: the one for this server's file, and one
 * for each learner that is sent SNAP. A znode that is about to change is first written to each of
 * them that lacks it (`DataTree`); so a slow one delays none of the others, and it costs the memory
 * of the records written ahead, which is bounded.
 */
import { Writer } from '@tskeeper/protocol';
import type { NodeId } from './node-store.ts';

/** Size of a page of records written ahead. */
const pageBytes = 256 * 1024;

export class SnapshotWalk {
  /** Its hold on the ACLs. */
  readonly aclHold: number;
  readonly #aheadBytesMax: number;
  /** One bit for each row that existed at the start: set when the znode needs no more writing. */
  readonly #written: Int32Array;
  /** Rows from here on hold later znodes, which are not part of the snapshot. */
  readonly #end: NodeId;
  /** The znode at which the next slice continues, 0 when every znode has been visited. */
  next: NodeId;
  /**
   * Records written ahead because their znodes were about to change; they are sent before anything
   * else.
   */
  #ahead: Writer[] = [];
  #aheadBytes = 0;

  /** `end`: the first row that has never been used. */
  constructor(root: NodeId, end: NodeId, aclHold: number, aheadBytesMax: number) {
    this.next = root;
    this.#end = end;
    this.#written = new Int32Array((end >>> 5) + 1);
    this.aclHold = aclHold;
    this.#aheadBytesMax = aheadBytesMax;
  }

  /**
   * Whether the znode needs no more writing: it has been written, or it was created after the
   * start.
   */
  has(node: NodeId): boolean {
    return node >= this.#end || (this.#written[node >>> 5]! & (1 << (node & 31))) !== 0;
  }

  note(node: NodeId): void {
    if (node < this.#end) this.#written[node >>> 5]! |= 1 << (node & 31);
  }

  /** The output for a record written ahead; call `wroteAhead` after it. */
  aheadWriter(): Writer {
    const last = this.#ahead.at(-1);
    // With room left for a znode of usual size, so that the page does not grow to twice its size.
    if (last !== undefined && last.offset < (pageBytes * 3) / 4) {
      this.#aheadBytes -= last.bytes.length;
      return last;
    }
    const page = new Writer(pageBytes);
    this.#ahead.push(page);
    return page;
  }

  wroteAhead(page: Writer): void {
    this.#aheadBytes += page.bytes.length;
  }

  /** Takes the first page of records written ahead. The caller owns it. */
  takeAhead(): Writer | undefined {
    const page = this.#ahead.shift();
    if (page !== undefined) this.#aheadBytes -= page.bytes.length;
    return page;
  }

  /** Memory of records written ahead of their turn. */
  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  get holdsTooMuch(): boolean {
    return this.#aheadBytes > this.#aheadBytesMax;
  }

  /** The snapshot is finished or abandoned. */
  end(): void {
    this.next = 0;
    this.#ahead = [];
    this.#aheadBytes = 0;
  }
}
