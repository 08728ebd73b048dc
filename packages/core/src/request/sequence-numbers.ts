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

export class SequenceNumbers {
  readonly #tree: DataTree;
  readonly #outstandingChanges: OutstandingChanges;
  /** Whether this server begins records, and reads a counter without one as unsigned. */
  readonly #isWide: boolean;
  /** Parents whose record is due. */
  readonly #due = new Set<string>();

  constructor(tree: DataTree, outstandingChanges: OutstandingChanges, isWide: boolean) {
    this.#tree = tree;
    this.#outstandingChanges = outstandingChanges;
    this.#isWide = isWide;
  }

  /** The number of the next sequential child. */
  next(parentPath: string, parent: PendingZnode): number {
    const recorded = this.#recordOf(parentPath, parent.czxid);
    if (recorded !== undefined) return recorded + ((parent.cversion - recorded) | 0);
    return this.#isWide ? parent.cversion >>> 0 : parent.cversion;
  }

  /** A child is created: the record of its parent may be due now. */
  counted(parentPath: string): void {
    if (this.#isWide && this.recordDue(parentPath) !== undefined) this.#due.add(parentPath);
  }

  /** Takes a parent whose record may be due. */
  takeDue(): string | undefined {
    if (this.#due.size === 0) return undefined;
    const [path] = this.#due;
    this.#due.delete(path!);
    return path;
  }

  /** The content of the record, if it is due. */
  recordDue(parentPath: string): Buffer | undefined {
    const parent = this.#outstandingChanges.find(parentPath);
    if (parent === undefined) return undefined;
    const recorded = this.#recordOf(parentPath, parent.czxid);
    const number = this.next(parentPath, parent);
    const isDue = recorded === undefined ? number >= recordFrom : Math.abs(number - recorded) >= recordEvery;
    return isDue ? Buffer.from(`number=${number}\nczxid=${formatZxid(parent.czxid)}\n`) : undefined;
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
