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
  readonly aclPin: number;
  readonly #preservedBytesMax: number;
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
  #preserved: Writer[] = [];
  #preservedBytes = 0;

  /** `end`: the first row that has never been used. */
  constructor(root: NodeId, end: NodeId, aclHold: number, aheadBytesMax: number) {
    this.next = root;
    this.#end = end;
    this.#written = new Int32Array((end >>> 5) + 1);
    this.aclPin = aclHold;
    this.#preservedBytesMax = aheadBytesMax;
  }

  /**
   * Whether the znode needs no more writing: it has been written, or it was created after the
   * start.
   */
  isWritten(node: NodeId): boolean {
    return node >= this.#end || (this.#written[node >>> 5]! & (1 << (node & 31))) !== 0;
  }

  markWritten(node: NodeId): void {
    if (node < this.#end) this.#written[node >>> 5]! |= 1 << (node & 31);
  }

  /** The output for a record written ahead; call `recordPreserved` after it. */
  preserveWriter(): Writer {
    const last = this.#preserved.at(-1);
    // With room left for a znode of usual size, so that the page does not grow to twice its size.
    if (last !== undefined && last.offset < (pageBytes * 3) / 4) {
      this.#preservedBytes -= last.bytes.length;
      return last;
    }
    const page = new Writer(pageBytes);
    this.#preserved.push(page);
    return page;
  }

  recordPreserved(page: Writer): void {
    this.#preservedBytes += page.bytes.length;
  }

  /** Takes the first page of records written ahead. The caller owns it. */
  takePreserved(): Writer | undefined {
    const page = this.#preserved.shift();
    if (page !== undefined) this.#preservedBytes -= page.bytes.length;
    return page;
  }

  /** Memory of records written ahead of their turn. */
  get preservedBytes(): number {
    return this.#preservedBytes;
  }

  get exceedsPreservedMax(): boolean {
    return this.#preservedBytes > this.#preservedBytesMax;
  }

  /** The snapshot is finished or abandoned. */
  end(): void {
    this.next = 0;
    this.#preserved = [];
    this.#preservedBytes = 0;
  }
}
