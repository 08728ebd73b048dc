/**
 * One snapshot of the tree while it is being written: which znodes it has, where it goes on, and what it was given ahead of its turn.
 *
 * Several are under way at once, each as of its own moment: the one for the file of this server, and one for each learner that is sent SNAP. A
 * znode that is about to change is written to each of them that lacks it (`DataTree`); so a slow one makes none of the others wait, and what it
 * costs is the memory of what is ahead, which is bounded.
 */
import { Writer } from '@tskeeper/protocol';
import type { NodeId } from './node-store.ts';

/** Bytes set aside per page of what is written ahead. */
const pageBytes = 256 * 1024;

export class SnapshotWalk {
  /** Of the ACLs that it needs. */
  readonly aclHold: number;
  readonly #aheadBytesMax: number;
  /** One bit for each row that there was when the walk began: set when nothing is left to be written of it. */
  readonly #written: Int32Array;
  /** Rows from here on hold znodes that came later, and these are not in the snapshot. */
  readonly #end: NodeId;
  /** The znode at which the next slice goes on, 0 when every znode has been visited. */
  next: NodeId;
  /** Records written ahead of their turn because the znode was about to change; they go out before anything else. */
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

  /** Whether nothing is left to be written of the znode: it has been written, or it came into being after the walk began. */
  has(node: NodeId): boolean {
    return node >= this.#end || (this.#written[node >>> 5]! & (1 << (node & 31))) !== 0;
  }

  note(node: NodeId): void {
    if (node < this.#end) this.#written[node >>> 5]! |= 1 << (node & 31);
  }

  /** Where a record goes that is written ahead; `wroteAhead` follows. */
  aheadWriter(): Writer {
    const last = this.#ahead.at(-1);
    // With room left for a znode of usual size, so that it does not grow to twice what is needed.
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

  /** The first page of what was written ahead, which is the caller's from now on. */
  takeAhead(): Writer | undefined {
    const page = this.#ahead.shift();
    if (page !== undefined) this.#aheadBytes -= page.bytes.length;
    return page;
  }

  /** Memory held for records that were written ahead of their turn. */
  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  get holdsTooMuch(): boolean {
    return this.#aheadBytes > this.#aheadBytesMax;
  }

  /** It has come to its end, or is given up. */
  end(): void {
    this.next = 0;
    this.#ahead = [];
    this.#aheadBytes = 0;
  }
}
