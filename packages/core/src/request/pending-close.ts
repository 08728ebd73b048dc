/**
 * A session being closed: which of its ephemerals have been removed.
 *
 * All of them are deleted in the txn that closes the session. A session can own very many, so this
 * keeps its place between steps.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { DataTree, NodeId } from '../tree/data-tree.ts';
import { type OutstandingChanges, PendingZnode } from './outstanding-changes.ts';
import type { WriteOrigin } from '../pending/proposal.ts';
import { bytesPerUnit, unitsPerChange } from '../step-budget.ts';
import { parentOf } from './write-validator.ts';

/** The state of a parent after the close, and its share in the tree digest before. */
interface ChangedParent {
  readonly after: PendingZnode;
  readonly digestBefore: number;
}

export class PendingClose {
  readonly #origin: WriteOrigin;
  readonly #zxid: Zxid;
  readonly #tree: DataTree;
  readonly #outstandingChanges: OutstandingChanges;
  /** The next of those in the tree, 0 after the last. */
  #nextEphemeral: NodeId;
  /** Those the tree does not have yet, and how many of them have been removed. */
  readonly #newPaths: readonly string[];
  #newPathsRemoved = 0;
  /** Those that have been removed. */
  readonly paths: string[] = [];
  /** Upper bound of the bytes of the paths in a txn. */
  pathBytesMax = 0;
  /** Shared by all paths: a path is removed once in a txn. */
  readonly #deletedZnode = new PendingZnode();
  /**
   * The remaining state of each parent, recorded once when all its removed children have been
   * subtracted.
   */
  readonly #parents = new Map<string, ChangedParent>();
  #parentsRemaining: Iterator<[string, ChangedParent]> | undefined;

  constructor(origin: WriteOrigin, zxid: Zxid, tree: DataTree, outstandingChanges: OutstandingChanges) {
    const { sessionHigh, sessionLow } = origin;
    this.#origin = origin;
    this.#zxid = zxid;
    this.#tree = tree;
    this.#outstandingChanges = outstandingChanges;
    this.#nextEphemeral = tree.firstEphemeral(sessionHigh, sessionLow);
    this.#newPaths = outstandingChanges.newEphemerals(sessionHigh, sessionLow);
    this.#deletedZnode.exists = false;
  }

  /**
   * Removes the ephemerals that a session will own once all proposals have been applied: first
   * those in the tree, then those that the tree does not have yet; finally the parents are updated.
   * Spends about `budget` units; returns whether all is done.
   */
  removeEphemerals(budget: number): boolean {
    const { sessionHigh: high, sessionLow: low } = this.#origin;
    const outstandingChanges = this.#outstandingChanges;
    const tree = this.#tree;
    let left = budget;
    for (; this.#nextEphemeral !== 0; this.#nextEphemeral = tree.nextEphemeral(this.#nextEphemeral)) {
      if (left <= 0) return false;
      left -= unitsPerChange;
      const path = tree.pathOf(this.#nextEphemeral);
      const future = outstandingChanges.peek(path);
      if (future === undefined) this.#removeEphemeral(path, tree.digestOf(this.#nextEphemeral));
      else if (future.exists && future.ownerHigh === high && future.ownerLow === low) this.#removeEphemeral(path, future.digest);
    }
    for (; this.#newPathsRemoved < this.#newPaths.length; this.#newPathsRemoved++) {
      if (left <= 0) return false;
      left -= unitsPerChange;
      const path = this.#newPaths[this.#newPathsRemoved]!;
      this.#removeEphemeral(path, outstandingChanges.find(path)!.digest);
    }
    this.#parentsRemaining ??= this.#parents.entries();
    for (;;) {
      if (left <= 0) return false;
      const next = this.#parentsRemaining.next();
      if (next.done === true) return true;
      const digestedBefore = outstandingChanges.digestedBytes;
      const [path, { after, digestBefore }] = next.value;
      after.pzxid = this.#zxid;
      outstandingChanges.record(path, this.#zxid, after, digestBefore);
      left -= unitsPerChange + (outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit;
    }
  }

  #removeEphemeral(path: string, digestBefore: number): void {
    this.paths.push(path);
    this.pathBytesMax += 4 + path.length * 3;
    this.#outstandingChanges.record(path, this.#zxid, this.#deletedZnode, digestBefore);
    const parentPath = parentOf(path);
    let parent = this.#parents.get(parentPath);
    if (parent === undefined) {
      const before = this.#outstandingChanges.find(parentPath);
      if (before === undefined) throw new Error(`the ephemeral ${path} has no parent`);
      parent = { after: before.copyIfRecorded(), digestBefore: before.digest };
      this.#parents.set(parentPath, parent);
    }
    parent.after.childCount--;
  }
}
