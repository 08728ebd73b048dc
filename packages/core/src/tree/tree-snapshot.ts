/**
 * The snapshots of the tree that are being written, each of them exact for one zxid although
 * changes continue.
 *
 * ZooKeeper's snapshots are fuzzy: they contain some of the changes made while they were written. A
 * znode here is written ahead of its turn when it is about to change, to each snapshot that lacks
 * it, and the ACLs that a snapshot may refer to are pinned until it ends. So every change first
 * calls `beforeChange`; a change that does not would appear in a snapshot of an earlier zxid.
 */
import type { Writer } from '@tskeeper/protocol';
import type { AclTable } from './acl-table.ts';
import { type NodeId, type NodeStore, parentField } from './node-store.ts';
import { SnapshotWalk } from './snapshot-walk.ts';
import type { ZnodeFields } from './znode-fields.ts';

/**
 * A slice visits one znode per this many bytes of its target, so that znodes with nothing to write
 * cannot make it long.
 */
const bytesPerVisit = 16;

export class TreeSnapshots {
  readonly #tree: ZnodeFields;
  readonly #rows: NodeStore;
  readonly #acls: AclTable;
  /** The snapshots being written. */
  readonly #walks: SnapshotWalk[] = [];

  constructor(tree: ZnodeFields, rows: NodeStore, acls: AclTable) {
    this.#tree = tree;
    this.#rows = rows;
    this.#acls = acls;
  }

  /**
   * Begins a snapshot of this moment. Until `end` every znode is written once, as it is now: in
   * depth-first order, or earlier if it is about to change. So a snapshot can be written slowly
   * while changes continue, and is still exact for one zxid. Several may be in progress. One that
   * would have to hold more than `preservedBytesMax` of records written ahead is abandoned:
   * `isActive` returns false.
   */
  begin(preservedBytesMax = Infinity): SnapshotWalk {
    const walk = new SnapshotWalk(this.#tree.root, this.#rows.end, this.#acls.pin(), preservedBytesMax);
    this.#walks.push(walk);
    return walk;
  }

  /**
   * Appends further znodes to the writer, about `bytesTarget` bytes. Returns true when all have
   * been written. Parents come first, in the form of snapshots: path, data, ACL id, StatPersisted.
   */
  slice(walk: SnapshotWalk, writer: Writer, bytesTarget: number): boolean {
    const start = writer.offset;
    for (let page = walk.takePreserved(); page !== undefined; page = walk.takePreserved()) {
      writer.raw(page.bytes, 0, page.offset);
      if (writer.offset - start >= bytesTarget) return false;
    }
    let visits = Math.ceil(bytesTarget / bytesPerVisit);
    let node = walk.next;
    while (node !== 0 && visits-- > 0 && writer.offset - start < bytesTarget) {
      if (!walk.isWritten(node)) {
        this.#tree.writePersisted(node, writer);
        walk.markWritten(node);
      }
      node = this.#tree.nextBelow(node, this.#tree.root);
    }
    walk.next = node;
    return node === 0;
  }

  /** Ends a snapshot, finished or not. Does nothing if it has ended. */
  end(walk: SnapshotWalk): void {
    const at = this.#walks.indexOf(walk);
    if (at === -1) return;
    this.#walks.splice(at, 1);
    walk.end();
    this.#acls.unpin(walk.aclPin);
  }

  /** Whether the snapshot is in progress: neither finished nor abandoned. */
  isActive(walk: SnapshotWalk): boolean {
    return this.#walks.includes(walk);
  }

  /** Memory of records written ahead of their turn. */
  get preservedBytes(): number {
    let bytes = 0;
    for (const walk of this.#walks) bytes += walk.preservedBytes;
    return bytes;
  }

  /** Must be called before a change of anything that a snapshot contains about a znode. */
  beforeChange(node: NodeId): void {
    if (this.#walks.length > 0) this.#preserve(node);
  }

  /** A znode created during a snapshot is not part of it, even if its row was used before. */
  onCreated(node: NodeId): void {
    for (const walk of this.#walks) walk.markWritten(node);
  }

  /** Must be called before a znode is unlinked: a walk must not stop at it. */
  beforeRemove(node: NodeId): void {
    for (const walk of this.#walks) if (walk.next === node) walk.next = this.#tree.nextAfterSubtree(node, this.#tree.root);
  }

  /**
   * Children of this znode have changed places: a walk among them, or below one of them, visits all
   * of them again. It writes none twice.
   */
  onReordered(parent: NodeId): void {
    for (const walk of this.#walks) {
      let at = walk.next;
      while (at !== 0 && at !== parent) at = this.#rows.get(at, parentField);
      if (at !== 0) walk.next = parent;
    }
  }

  #preserve(node: NodeId): void {
    let isTooMuch = false;
    for (const walk of this.#walks) {
      if (walk.isWritten(node)) continue;
      this.#preserveFor(walk, node);
      isTooMuch ||= walk.exceedsPreservedMax;
    }
    if (isTooMuch) for (const walk of this.#walks.filter(({ exceedsPreservedMax }) => exceedsPreservedMax)) this.end(walk);
  }

  #preserveFor(walk: SnapshotWalk, node: NodeId): void {
    // A reader of the file expects parents before children. The parents of a written znode are
    // written, so the climb ends there.
    const chain: NodeId[] = [];
    for (let at = node; at !== 0 && !walk.isWritten(at); at = this.#rows.get(at, parentField)) chain.push(at);
    for (let i = chain.length - 1; i >= 0; i--) {
      const page = walk.preserveWriter();
      this.#tree.writePersisted(chain[i]!, page);
      walk.recordPreserved(page);
      walk.markWritten(chain[i]!);
    }
  }
}
