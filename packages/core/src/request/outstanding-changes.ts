/**
 * The state of the tree once all proposals have been applied.
 *
 * A write is validated before earlier writes have been applied, so the tree alone is stale. Each
 * proposal records here the znodes it will change, under its zxid; they are forgotten when it has
 * been applied. The tree digest is kept as well, since a txn is logged with the digest of the tree
 * after it.
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import { type Observer, silentObserver } from '../observer.ts';
import { type AclId, openAclId } from '../tree/acl-table.ts';
import { type DataTree, type NodeId, nodeDigest } from '../tree/data-tree.ts';

/**
 * The future state of a znode. Never changed once recorded: the next proposal that changes the
 * znode makes a copy with `copyIfRecorded`.
 */
export class PendingZnode {
  /** False if it will be deleted. */
  exists = true;
  /** The znode in the tree that it is derived from; 0 if there is none yet. */
  node: NodeId = 0;
  /** Once recorded, it holds a reference to the list. */
  acl: AclId = openAclId;
  ownerHigh = 0;
  ownerLow = 0;
  version = 0;
  /** The internal counter of creates. */
  cversion = 0;
  aversion = 0;
  childCount = 0;
  czxid: Zxid = 0;
  mzxid: Zxid = 0;
  pzxid: Zxid = 0;
  ctime: Millis = 0;
  mtime: Millis = 0;
  /** undefined: as in the tree. */
  data: Uint8Array | null | undefined;
  /** The share of this znode in the tree digest. */
  digest = 0;
  /** Recorded objects may be shared. */
  isRecorded = false;

  /**
   * The same znode, to be changed and then recorded. It may be this object, which then changes too.
   */
  copyIfRecorded(): PendingZnode {
    if (!this.isRecorded) return this;
    const copy = new PendingZnode();
    copy.node = this.node;
    copy.acl = this.acl;
    copy.ownerHigh = this.ownerHigh;
    copy.ownerLow = this.ownerLow;
    copy.version = this.version;
    copy.cversion = this.cversion;
    copy.aversion = this.aversion;
    copy.childCount = this.childCount;
    copy.czxid = this.czxid;
    copy.mzxid = this.mzxid;
    copy.pzxid = this.pzxid;
    copy.ctime = this.ctime;
    copy.mtime = this.mtime;
    copy.data = this.data;
    copy.digest = this.digest;
    return copy;
  }
}

/** The change of one znode by one proposal, with what is needed to roll it back. */
interface ChangeRecord {
  readonly zxid: Zxid;
  readonly path: string;
  readonly znode: PendingZnode;
  /** The state recorded by an earlier proposal, if any. */
  readonly before: PendingZnode | undefined;
  readonly digestDelta: number;
}

export class OutstandingChanges {
  readonly #tree: DataTree;
  readonly #digestEnabled: boolean;
  readonly #observer: Observer;
  readonly #latestByPath = new Map<string, PendingZnode>();
  /**
   * Recorded ephemerals that the tree does not have yet, by the low half of their owner: closing a
   * session must find its ephemerals without visiting all outstanding changes.
   */
  readonly #newEphemerals = new Map<number, Set<ChangeRecord>>();
  /** Recorded changes in zxid order; those before `#first` have been applied. */
  #queue: ChangeRecord[] = [];
  #first = 0;

  /** The tree digest after all proposals, a wrapping 64-bit sum as two int32. */
  digestHigh: number;
  digestLow: number;
  /**
   * Bytes of paths and data digested here so far, without those of the tree. See
   * `DataTree.digestedBytes`.
   */
  #digestedBytes = 0;

  constructor(tree: DataTree, digestEnabled: boolean, observer: Observer = silentObserver) {
    this.#tree = tree;
    this.#digestEnabled = digestEnabled;
    this.#observer = observer;
    this.digestHigh = tree.digestHigh;
    this.digestLow = tree.digestLow;
  }

  /** Changes proposed and not yet applied. */
  get size(): number {
    return this.#queue.length - this.#first;
  }

  /** Bytes digested so far, here and in the tree. */
  get digestedBytes(): number {
    return this.#digestedBytes + this.#tree.digestedBytes;
  }

  /** The state of a znode after the proposals; undefined if none of them changes it. */
  peek(path: string): PendingZnode | undefined {
    return this.#latestByPath.get(path);
  }

  /** Every path that the proposals change, with its state after them. */
  entries(): Iterator<readonly [string, PendingZnode]> {
    return this.#latestByPath.entries();
  }

  /** The future state of the znode, or undefined if it will not exist. */
  find(path: string): PendingZnode | undefined {
    if (this.#latestByPath.size > 0) {
      const future = this.#latestByPath.get(path);
      if (future !== undefined) return future.exists ? future : undefined;
    }
    const node = this.#tree.find(path);
    return node === 0 ? undefined : this.#currentZnode(node);
  }

  #currentZnode(node: NodeId): PendingZnode {
    const tree = this.#tree;
    const today = new PendingZnode();
    today.node = node;
    today.acl = tree.aclOf(node);
    today.ownerHigh = tree.ownerHighOf(node);
    today.ownerLow = tree.ownerLowOf(node);
    today.version = tree.versionOf(node);
    today.cversion = tree.cversionOf(node);
    today.aversion = tree.aversionOf(node);
    today.childCount = tree.childCountOf(node);
    today.czxid = tree.czxidOf(node);
    today.mzxid = tree.mzxidOf(node);
    today.pzxid = tree.pzxidOf(node);
    today.ctime = tree.ctimeOf(node);
    today.mtime = tree.mtimeOf(node);
    today.digest = tree.digestOf(node);
    return today;
  }

  /** Length of the znode's data in bytes, 0 for null. */
  dataLength(future: PendingZnode): number {
    if (future.data === undefined) return Math.max(0, this.#tree.dataLengthOf(future.node));
    return future.data === null ? 0 : future.data.length;
  }

  /**
   * Records the state of a znode after the txn `zxid`. `digestBefore` is its share in the tree
   * digest before, 0 for a new znode.
   */
  record(path: string, zxid: Zxid, znode: PendingZnode, digestBefore: number): void {
    znode.isRecorded = true;
    this.#tree.acls.retain(znode.acl);
    if (this.#digestEnabled) znode.digest = znode.exists ? this.#digestOf(path, znode) : 0;
    const digestDelta = znode.digest - digestBefore;
    const recorded: ChangeRecord = { zxid, path, znode, before: this.#latestByPath.get(path), digestDelta };
    this.#queue.push(recorded);
    this.#latestByPath.set(path, znode);
    if (isNewEphemeral(znode)) this.#addNewEphemeral(recorded);
    if (digestDelta !== 0) this.#addToDigest(digestDelta);
    this.#observer.changeQueued();
  }

  #digestOf(path: string, future: PendingZnode): number {
    if (future.data === undefined) return this.#tree.digestAs(future.node, future);
    this.#digestedBytes += path.length + (future.data?.length ?? 0);
    return nodeDigest(path, future.data, future);
  }

  #addNewEphemeral(recorded: ChangeRecord): void {
    const { ownerLow } = recorded.znode;
    const noted = this.#newEphemerals.get(ownerLow);
    if (noted === undefined) this.#newEphemerals.set(ownerLow, new Set([recorded]));
    else noted.add(recorded);
  }

  /** Paths of the ephemerals that this session will own and that are not in the tree yet. */
  newEphemerals(ownerHigh: number, ownerLow: number): string[] {
    const paths: string[] = [];
    for (const { path, znode } of this.#newEphemerals.get(ownerLow) ?? []) {
      // Only the latest state of a path counts. It may be in the tree by now, and only changed
      // since.
      if (znode.ownerHigh !== ownerHigh || this.#latestByPath.get(path) !== znode) continue;
      if (!this.#tree.isEphemeralOf(this.#tree.find(path), ownerHigh, ownerLow)) paths.push(path);
    }
    return paths;
  }

  #addToDigest(difference: number): void {
    const low = (this.digestLow >>> 0) + difference;
    this.digestLow = low | 0;
    this.digestHigh = (this.digestHigh + Math.floor(low / 4294967296)) | 0;
  }

  /**
   * Rolls back the records of `zxid`, the proposal being validated, latest first and at most `max`
   * of them. Returns whether none is left.
   */
  rollback(zxid: Zxid, max = Infinity): boolean {
    const queue = this.#queue;
    for (let left = max; queue.length > this.#first && queue[queue.length - 1]!.zxid === zxid; left--) {
      if (left === 0) return false;
      const recorded = queue.pop()!;
      const { path, znode, before, digestDelta } = recorded;
      this.#tree.acls.release(znode.acl);
      if (before === undefined) this.#latestByPath.delete(path);
      else this.#latestByPath.set(path, before);
      if (isNewEphemeral(znode)) this.#removeNewEphemeral(recorded);
      this.#addToDigest(-digestDelta);
    }
    return true;
  }

  /**
   * The txns up to `zxid` have been applied: the tree is up to date now. Forgets at most `max`
   * changes and returns whether none is left; until then none of these znodes may be looked up.
   */
  removeApplied(zxid: Zxid, max = Infinity): boolean {
    const before = this.size;
    const all = this.#removeUpTo(zxid, max);
    if (this.size < before) this.#observer.changesRemoved(before - this.size);
    return all;
  }

  #removeUpTo(zxid: Zxid, max: number): boolean {
    const queue = this.#queue;
    for (let left = max; this.#first < queue.length; left--) {
      const recorded = queue[this.#first]!;
      if (recorded.zxid > zxid) break;
      if (left === 0) return false;
      // A later proposal may have replaced it; that state stays.
      if (this.#latestByPath.get(recorded.path) === recorded.znode) this.#latestByPath.delete(recorded.path);
      if (isNewEphemeral(recorded.znode)) this.#removeNewEphemeral(recorded);
      this.#tree.acls.release(recorded.znode.acl);
      this.#first++;
    }
    if (this.#first === queue.length) {
      queue.length = 0;
      this.#first = 0;
    } else if (this.#first >= 4096 && this.#first * 2 > queue.length) {
      this.#queue = queue.slice(this.#first);
      this.#first = 0;
    }
    return true;
  }

  #removeNewEphemeral(recorded: ChangeRecord): void {
    const { ownerLow } = recorded.znode;
    const noted = this.#newEphemerals.get(ownerLow)!;
    noted.delete(recorded);
    if (noted.size === 0) this.#newEphemerals.delete(ownerLow);
  }
}

/** A recorded state never changes, so the result is the same when it is recorded and forgotten. */
function isNewEphemeral(future: PendingZnode): boolean {
  // The owner of a container or TTL znode has the sign bit set: it may be taken for a session here,
  // which is harmless and costs little.
  return future.node === 0 && future.exists && (future.ownerHigh !== 0 || future.ownerLow !== 0);
}
