/**
 * A removeRecursive of ClickHouse Keeper being validated: a znode and all below it are deleted in one
 * txn, or none.
 *
 * What will exist when the txn is applied is in two places. A znode of the tree that no outstanding
 * change concerns will be there; all others are among the outstanding changes, as they will be. The
 * znodes are deleted from the deepest level up, so that each is empty when its turn comes: the txn is
 * a multi of deletes, which every server of ZooKeeper can apply.
 */
import { ErrorCode, isReservedPath, type MultiMember, OpCode, Perms, pathError, type Zxid } from '@tskeeper/protocol';
import type { Permissions } from '../auth/permissions.ts';
import type { WriteOrigin } from '../pending/proposal.ts';
import type { AclId } from '../tree/acl-table.ts';
import type { DataTree, NodeId } from '../tree/data-tree.ts';
import { bytesPerUnit, unitsPerPart, unitsPerPath } from '../step-budget.ts';
import type { OutstandingChanges, PendingZnode } from './outstanding-changes.ts';
import { parentOf, type WriteValidator } from './write-validator.ts';

/** What is to be removed, and how much may be. */
export interface Removal {
  readonly path: string;
  /** The most znodes. */
  readonly limit: number;
  /** The most bytes of the deletes in the txn. */
  readonly bytesMax: number;
}

export interface RemovalDependencies {
  readonly tree: DataTree;
  readonly permissions: Permissions;
  readonly validator: WriteValidator;
  readonly outstandingChanges: OutstandingChanges;
}

/** Bytes of a delete in a multi: its type, its length, and the length of its path. */
const bytesPerDelete = 12;

export class PendingRemoval {
  readonly #origin: WriteOrigin;
  readonly #removal: Removal;
  readonly #zxid: Zxid;
  readonly #tree: DataTree;
  readonly #permissions: Permissions;
  readonly #validator: WriteValidator;
  readonly #outstandingChanges: OutstandingChanges;
  #top: NodeId = 0;
  /** The next znode of the tree; 0 after the last. */
  #next: NodeId = 0;
  #changed: Iterator<readonly [string, PendingZnode]> | undefined;
  /** By the number of slashes. */
  readonly #pathsByDepth: string[][] = [];
  #mayRemoveAll = true;
  #count = 0;
  /** Units spent so far. */
  workUnits = 0;
  /** The error that refuses it; undefined until then. */
  error: number | undefined;
  /** Of the deletes so far. */
  bytes = 0;
  /** The deletes, deepest first. None: there is nothing to remove. */
  readonly deletes: MultiMember[] = [];

  constructor(
    origin: WriteOrigin,
    removal: Removal,
    zxid: Zxid,
    { tree, permissions, validator, outstandingChanges }: RemovalDependencies,
  ) {
    this.#origin = origin;
    this.#removal = removal;
    this.#zxid = zxid;
    this.#tree = tree;
    this.#permissions = permissions;
    this.#validator = validator;
    this.#outstandingChanges = outstandingChanges;
    this.error = this.#begin(removal.path);
  }

  get path(): string {
    return this.#removal.path;
  }

  /** Returns the error, if there is one that depends on no other znode than the parent. */
  #begin(path: string): number | undefined {
    const fault = this.#validator.checkSession(this.#origin);
    if (fault !== undefined) return fault;
    if (pathError(path) !== undefined || isReservedPath(path)) return ErrorCode.BadArguments;
    const parent = this.#outstandingChanges.find(parentOf(path));
    if (parent === undefined) return undefined;
    if (!this.#mayRemove(parent.acl)) return ErrorCode.NoAuth;
    if (this.#outstandingChanges.find(path) === undefined) return undefined;
    this.#top = this.#next = this.#tree.find(path);
    this.#changed = this.#outstandingChanges.entries();
    return undefined;
  }

  /** Goes on for about `budget` units; returns whether it is done. */
  advance(budget: number): boolean {
    const end = this.workUnits + budget;
    while (this.error === undefined && this.#changed !== undefined) {
      if (this.workUnits >= end) return false;
      this.workUnits += this.#collectOne(this.#changed);
    }
    if (this.error !== undefined) return true;
    for (let level = this.#pathsByDepth.at(-1); level !== undefined; level = this.#pathsByDepth.at(-1)) {
      for (let path = level.pop(); path !== undefined; path = level.pop()) {
        const digestedBefore = this.#outstandingChanges.digestedBytes;
        this.#validator.removeZnode(path, this.#zxid);
        this.deletes.push({ type: OpCode.delete, txn: { kind: 'delete', path } });
        this.workUnits += unitsPerPart + (this.#outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit;
        if (this.workUnits >= end) return false;
      }
      this.#pathsByDepth.pop();
    }
    return true;
  }

  /** Looks at one znode; returns the units that it took. */
  #collectOne(changed: Iterator<readonly [string, PendingZnode]>): number {
    const workBefore = this.#permissions.workUnits;
    const node = this.#next;
    if (node !== 0) {
      this.#next = this.#tree.nextBelow(node, this.#top);
      const path = this.#tree.pathOf(node);
      if (this.#outstandingChanges.peek(path) === undefined) this.#collect(path, this.#tree.aclOf(node));
      return unitsPerPath + this.#permissions.workUnits - workBefore;
    }
    const next = changed.next();
    if (next.done === true) {
      this.#changed = undefined;
      if (!this.#mayRemoveAll) this.error ??= ErrorCode.NoAuth;
      return 1;
    }
    const [path, znode] = next.value;
    const { path: top } = this.#removal;
    if (znode.exists && path.startsWith(top) && (path.length === top.length || path[top.length] === '/')) this.#collect(path, znode.acl);
    return 1 + this.#permissions.workUnits - workBefore;
  }

  /**
   * A subtree with too many znodes is refused as such, whatever else is wrong: which of them are
   * looked at first must not decide the error.
   */
  #collect(path: string, acl: AclId): void {
    this.#count++;
    this.bytes += bytesPerDelete + Buffer.byteLength(path);
    if (this.#count > this.#removal.limit || this.bytes > this.#removal.bytesMax) {
      this.error = ErrorCode.NotEmpty;
      return;
    }
    // As in Keeper, the permission counts for the znode itself as well, not only for its children.
    this.#mayRemoveAll &&= this.#mayRemove(acl);
    const depth = depthOf(path);
    while (this.#pathsByDepth.length <= depth) this.#pathsByDepth.push([]);
    this.#pathsByDepth[depth]!.push(path);
  }

  #mayRemove(acl: AclId): boolean {
    return this.#permissions.permits(acl, Perms.delete, this.#origin.identities);
  }
}

function depthOf(path: string): number {
  let depth = 0;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) depth++;
  return depth;
}
