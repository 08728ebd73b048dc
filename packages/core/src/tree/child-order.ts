/**
 * The order of children in which they are listed page by page: by czxid, then by the bytes of the
 * name. It is the same at every server, and a position in it (a czxid and a name) stays valid
 * whatever is created and deleted meanwhile: a new child comes last.
 *
 * The list of children is in this order nearly by itself, since a child is appended when it is
 * created. Two exceptions are put in order here, when a page first needs it, and stay so:
 *
 * - Children of one txn (a multi) have one czxid, and are in the order of its parts.
 * - A snapshot of ZooKeeper lists children in any order, and a replay over its fuzzy parts may append
 *   a child that is older than the last one. Such a parent is flagged.
 *
 * Creating a child costs one comparison of two numbers. No index is kept: most parents are never
 * listed page by page.
 */
import type { Zxid } from '@tskeeper/protocol';
import { childCountField, firstChildField, nextSiblingField, type NodeId, type NodeStore, previousSiblingField } from './node-store.ts';
import type { TreeSnapshots } from './tree-snapshot.ts';
import type { ZnodeFields } from './znode-fields.ts';

/**
 * Work that may take many steps: it yields after about `visitsMax` znodes. The tree must not change
 * before it has finished.
 */
export type Ordering<Result> = Generator<void, Result>;

export class ChildOrder {
  readonly #tree: ZnodeFields;
  readonly #rows: NodeStore;
  readonly #snapshots: TreeSnapshots;
  /** The latest czxid of a znode that was linked, so that an ordinary create need not look. */
  #latestCzxid: Zxid = -1;
  /** The children of this parent with this czxid were found or put in order last. */
  #orderedParent: NodeId = 0;
  #orderedZxid: Zxid = -1;

  constructor(tree: ZnodeFields, rows: NodeStore, snapshots: TreeSnapshots) {
    this.#tree = tree;
    this.#rows = rows;
    this.#snapshots = snapshots;
  }

  /** A znode with this czxid was appended to the children of its parent. */
  onLinked(parent: NodeId, node: NodeId, czxid: Zxid): void {
    // With the same czxid it is another znode of one txn, and may have any place among them.
    if (czxid >= this.#latestCzxid) {
      this.#latestCzxid = czxid;
      return;
    }
    if (parent === 0) return;
    // The row may have had other children.
    if (parent === this.#orderedParent) this.#orderedParent = 0;
    const first = this.#rows.get(parent, firstChildField);
    if (first === node) this.#tree.setUnordered(parent, false);
    else if (this.#tree.czxidOf(this.#rows.get(node, previousSiblingField)) > czxid) this.#tree.setUnordered(parent, true);
  }

  /**
   * The first child after a position, 0 if there is none. `child` is the child of that name, if
   * there is one; without a name, the position is after all children of that czxid.
   */
  *after(parent: NodeId, czxid: Zxid, name: Buffer | undefined, child: NodeId, visitsMax: number): Ordering<NodeId> {
    const rows = this.#rows;
    const tree = this.#tree;
    if (tree.isUnordered(parent)) {
      yield* this.#sort(parent, 0, rows.get(parent, firstChildField), rows.get(parent, childCountField), visitsMax);
      tree.setUnordered(parent, false);
    }
    const isThere = child !== 0 && tree.czxidOf(child) === czxid;
    let at = isThere ? child : rows.get(parent, firstChildField);
    let visited = 0;
    if (isThere) {
      // Back to the first child of that txn.
      for (let before = this.#before(parent, at); before !== 0 && tree.czxidOf(before) === czxid; before = this.#before(parent, at)) {
        at = before;
        if (++visited % visitsMax === 0) yield;
      }
    } else {
      while (at !== 0 && tree.czxidOf(at) < czxid) {
        at = rows.get(at, nextSiblingField);
        if (++visited % visitsMax === 0) yield;
      }
    }
    if (at === 0 || tree.czxidOf(at) !== czxid) return at;
    at = yield* this.settle(parent, at, visitsMax);
    if (isThere) return rows.get(child, nextSiblingField);
    const isPassed = (node: NodeId): boolean => name === undefined || tree.compareName(node, name) <= 0;
    while (at !== 0 && tree.czxidOf(at) === czxid && isPassed(at)) {
      at = rows.get(at, nextSiblingField);
      if (++visited % visitsMax === 0) yield;
    }
    return at;
  }

  /**
   * Puts the children of one czxid in order. `first` is the first of them in the list; returns the
   * one that is first afterwards.
   */
  *settle(parent: NodeId, first: NodeId, visitsMax: number): Ordering<NodeId> {
    const rows = this.#rows;
    const tree = this.#tree;
    let next = rows.get(first, nextSiblingField);
    if (next === 0) return first;
    const czxid = tree.czxidOf(first);
    if (tree.czxidOf(next) !== czxid || (parent === this.#orderedParent && czxid === this.#orderedZxid)) return first;
    let count = 1;
    let isOrdered = true;
    for (let last = first; next !== 0 && tree.czxidOf(next) === czxid; next = rows.get(next, nextSiblingField)) {
      if (isOrdered && tree.compareNames(last, next) > 0) isOrdered = false;
      last = next;
      if (++count % visitsMax === 0) yield;
    }
    const before = this.#before(parent, first);
    if (!isOrdered) yield* this.#sort(parent, before, first, count, visitsMax);
    this.#orderedParent = parent;
    this.#orderedZxid = czxid;
    return before === 0 ? rows.get(parent, firstChildField) : rows.get(before, nextSiblingField);
  }

  /** The child before this one, 0 for the first. */
  #before(parent: NodeId, child: NodeId): NodeId {
    // The first child's "previous" is the last.
    return child === this.#rows.get(parent, firstChildField) ? 0 : this.#rows.get(child, previousSiblingField);
  }

  /** Sorts `count` children from `first` on, which follow `before`; 0 if they begin the list. */
  *#sort(parent: NodeId, before: NodeId, first: NodeId, count: number, visitsMax: number): Ordering<void> {
    const rows = this.#rows;
    const tree = this.#tree;
    let visited = 0;
    let nodes = new Int32Array(count);
    let czxids = new Float64Array(count);
    for (let i = 0, at = first; i < count; i++, at = rows.get(at, nextSiblingField)) {
      nodes[i] = at;
      czxids[i] = tree.czxidOf(at);
      if (++visited % visitsMax === 0) yield;
    }
    // A merge sort from the bottom up, which can pause anywhere.
    let mergedNodes = new Int32Array(count);
    let mergedCzxids = new Float64Array(count);
    for (let width = 1; width < count; width *= 2) {
      for (let start = 0; start < count; start += 2 * width) {
        const middle = Math.min(start + width, count);
        const end = Math.min(start + 2 * width, count);
        for (let to = start, a = start, b = middle; to < end; to++) {
          const takesA =
            b >= end ||
            (a < middle && (czxids[a]! < czxids[b]! || (czxids[a] === czxids[b] && tree.compareNames(nodes[a]!, nodes[b]!) < 0)));
          const from = takesA ? a++ : b++;
          mergedNodes[to] = nodes[from]!;
          mergedCzxids[to] = czxids[from]!;
          if (++visited % visitsMax === 0) yield;
        }
      }
      [nodes, mergedNodes] = [mergedNodes, nodes];
      [czxids, mergedCzxids] = [mergedCzxids, czxids];
    }
    // After each move the list is complete, so that a snapshot may be written in between.
    let last = before;
    for (const node of nodes) {
      tree.moveChildAfter(parent, node, last);
      last = node;
      if (++visited % visitsMax !== 0) continue;
      this.#snapshots.onReordered(parent);
      yield;
    }
    this.#snapshots.onReordered(parent);
  }
}
