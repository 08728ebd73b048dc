/**
 * The numbers of sequential znodes. A parent counts its creates in 32 bits, as in ZooKeeper's logs
 * and snapshots; with tskeeper.wideSequences its children have the number that these bits belong to.
 *
 * Up to 2^32 the bits alone are enough. Beyond it a znode below /zookeeper/sequences records a number
 * that the parent has reached, and the next one is that with the same 32 bits that is nearest to the
 * record. The leader renews a record long before it is half a circle away, with txns that every
 * server can apply: a create or a setData.
 */
import { formatZxid, sequenceRecordPath, systemPath, type Zxid } from '@tskeeper/protocol';
import type { DataTree } from '../tree/data-tree.ts';
import type { OutstandingChanges, PendingZnode } from './outstanding-changes.ts';

/** A parent without a record gets its first when its number has reached this. */
const recordFrom = 2 ** 31;
/** A record is renewed when the number is so far from it. */
const recordEvery = 2 ** 30;

/** A number that a parent has reached. */
interface RecordedNumber {
  readonly number: number;
  /** Of the parent: a later znode with the same path begins anew. */
  readonly czxid: Zxid;
}

/** The record of a parent, as it must be written. */
export interface DueRecord {
  readonly parentPath: string;
  readonly data: Buffer;
}

export class SequenceNumbers {
  readonly #tree: DataTree;
  readonly #outstandingChanges: OutstandingChanges;
  /** Whether this server begins records, and reads a counter without one as unsigned. */
  readonly #isWide: boolean;
  /**
   * Parents whose record is due, with the number of the create that made it due. Until the record is
   * written this counts as one: a multi may create many children, past the end of 32 bits.
   */
  readonly #due = new Map<string, RecordedNumber>();

  constructor(tree: DataTree, outstandingChanges: OutstandingChanges, isWide: boolean) {
    this.#tree = tree;
    this.#outstandingChanges = outstandingChanges;
    this.#isWide = isWide;
  }

  /** The number of the next sequential child. */
  next(parentPath: string, parent: PendingZnode): number {
    const due = this.#due.get(parentPath);
    const recorded = due?.czxid === parent.czxid ? due.number : this.#recordOf(parentPath, parent.czxid);
    if (recorded !== undefined) return recorded + ((parent.cversion - recorded) | 0);
    return this.#isWide ? parent.cversion >>> 0 : parent.cversion;
  }

  /** A child is created: the record of its parent may be due now. */
  counted(parentPath: string): void {
    if (!this.#isWide) return;
    const parent = this.#outstandingChanges.find(parentPath)!;
    const number = this.next(parentPath, parent);
    if (this.#isDue(parentPath, parent.czxid, number)) this.#due.set(parentPath, { number, czxid: parent.czxid });
  }

  /** Takes a record that is due; undefined if none is. A multi that failed may have counted as well. */
  takeDue(): DueRecord | undefined {
    for (const parentPath of this.#due.keys()) {
      const parent = this.#outstandingChanges.find(parentPath);
      const number = parent === undefined ? 0 : this.next(parentPath, parent);
      this.#due.delete(parentPath);
      if (parent === undefined || !this.#isDue(parentPath, parent.czxid, number)) continue;
      return { parentPath, data: Buffer.from(`number=${number}\nczxid=${formatZxid(parent.czxid)}\n`) };
    }
    return undefined;
  }

  #isDue(parentPath: string, czxid: Zxid, number: number): boolean {
    const recorded = this.#recordOf(parentPath, czxid);
    return recorded === undefined ? number >= recordFrom : Math.abs(number - recorded) >= recordEvery;
  }

  /**
   * The recorded number; undefined if there is none, or it is that of an earlier znode with the same
   * path.
   */
  #recordOf(parentPath: string, czxid: Zxid): number | undefined {
    if (this.#tree.find(systemPath.sequences) === 0 && this.#outstandingChanges.peek(systemPath.sequences) === undefined) return undefined;
    const record = this.#outstandingChanges.find(sequenceRecordPath(parentPath));
    if (record === undefined) return undefined;
    const data = record.data === undefined ? this.#tree.dataOf(record.node) : Buffer.from(record.data ?? []);
    const [, number, of] = /^number=(\d{1,15})\nczxid=(0x[0-9a-f]+)\n$/.exec(data?.toString('latin1') ?? '') ?? [];
    return number === undefined || of !== formatZxid(czxid) ? undefined : Number(number);
  }
}
