/**
 * The tree of znodes, which clients read and write, and which is the same on every server of an
 * ensemble.
 *
 * Nothing is validated here. A change was validated before it got its zxid; applying it must have
 * the same result on every server, and again when a replay applies it to a tree that contains it
 * already (ZooKeeper's own snapshots are fuzzy, so a log is replayed over effects of its later
 * half). docs/internals/znode-store.md draws the layout; in short:
 *
 * - A znode is a row of 16 int32 (node-store.ts) and a record in the arena: name, then
 *   `int dataLength, data, Stat` exactly as sent to clients, so that a reply is one copy
 *   (znode-fields.ts).
 * - A path is found by its hash, and verified by comparing names upwards from its end
 *   (znode-paths.ts).
 * - No object represents a znode. Callers hold a `NodeId`.
 *
 * This class applies changes. It notifies the snapshots being written (tree-snapshot.ts) before a
 * change, and the quotas (quota-usage.ts) after it.
 */
import { ErrorCode, formatSessionId, type Millis, readOnlyAcl, sessionIdOf, statBytes, systemPath, type Zxid } from '@tskeeper/protocol';
import { type AclId, AclTable, openAclId } from './acl-table.ts';
import { copyBytes, int32At, int64At, putInt32, putInt64 } from './bytes.ts';
import { ChildOrder } from './child-order.ts';
import { EphemeralTable } from './ephemeral-table.ts';
import { type NamespaceId, NamespaceTable, noNamespace } from './namespace-table.ts';
import {
  aclField,
  childCountField,
  cversionField,
  dataLengthField,
  digestField,
  firstChildField,
  flagsField,
  hashField,
  nameLengthField,
  nextOfOwnerField,
  type NodeId,
  ownerHighField,
  ownerLowField,
  parentField,
  recordField,
} from './node-store.ts';
import { quotaRoot } from './quota-table.ts';
import { QuotaUsage } from './quota-usage.ts';
import { SweepList } from './sweep-list.ts';
import { crc32, digestedStatBytes, type DigestedStat, hasNoDigest, putDigestedStat } from './tree-digest.ts';
import { TreeSnapshots } from './tree-snapshot.ts';
import {
  aversionAt,
  container,
  ctimeAt,
  czxidAt,
  dataLengthAt,
  ephemeral,
  mtimeAt,
  mzxidAt,
  namespaceShift,
  noDigestFlag,
  persistent,
  pzxidAt,
  ttl,
  versionAt,
  visibleCversionAt,
  visibleOwnerAt,
} from './znode-fields.ts';
import { lastSlash, utf16Length, ZnodePaths } from './znode-paths.ts';

export type { AclId } from './acl-table.ts';
export type { NodeId } from './node-store.ts';
export type { QuotaTotals } from './quota-table.ts';
export { type DigestedStat, nodeDigest } from './tree-digest.ts';
export type { NodeKind } from './znode-fields.ts';

export interface DataTreeOptions {
  /** Keys the hash of paths; up to 53 bits that clients cannot guess. */
  readonly hashSeed: number;
  readonly extendedTypesEnabled: boolean;
  readonly emulate353TtlNodes: boolean;
  /** If false, no digests are computed and the sum stays 0. */
  readonly digestEnabled: boolean;
  /** See `CoreOptions`; a small number by default. */
  readonly shortAclEntriesMax?: number;
  /** Creates no znode, not even the root: the tree will be loaded from a snapshot. */
  readonly empty?: boolean;
}

const containerOwnerHigh = 0x80000000 | 0;
/** Below every zxid. */
const noZxid: Zxid = -1;
const noBytes = Buffer.alloc(0);
const zeroStat = Buffer.alloc(statBytes);

export class DataTree extends ZnodePaths {
  readonly acls: AclTable;
  readonly namespaces = new NamespaceTable();
  readonly quotas = new QuotaUsage(this);
  readonly snapshots: TreeSnapshots;
  readonly childOrder: ChildOrder;
  /** The namespace of the znode created, deleted or given data last. */
  changedNamespace: NamespaceId = noNamespace;
  /** The tree digest, a wrapping 64-bit sum, as two int32. */
  digestHigh = 0;
  digestLow = 0;

  /** The text of the configuration that the last reconfig has replaced; undefined if there was none. */
  replacedConfig: string | undefined;

  /** Bytes of paths and data digested so far. The difference measures the cost of a change. */
  digestedBytes = 0;

  readonly #extendedTypesEnabled: boolean;
  readonly #emulate353TtlNodes: boolean;
  readonly #digestEnabled: boolean;
  readonly #ephemerals: EphemeralTable;
  readonly #sweepable = new SweepList(this.rows);
  #nodes = 0;

  constructor(options: DataTreeOptions) {
    super(options.hashSeed);
    this.#extendedTypesEnabled = options.extendedTypesEnabled;
    this.#emulate353TtlNodes = options.emulate353TtlNodes;
    this.#digestEnabled = options.digestEnabled;
    this.acls = new AclTable(this.arena, options.hashSeed, options.shortAclEntriesMax);
    this.snapshots = new TreeSnapshots(this, this.rows, this.acls);
    this.childOrder = new ChildOrder(this, this.rows, this.snapshots);
    this.#ephemerals = new EphemeralTable(this.rows, options.hashSeed);
    if (options.empty !== true) this.#addSystemNodes();
  }

  /** The namespace of a path, whether or not the znode exists. */
  namespaceOfPath(path: string): NamespaceId {
    const end = path.indexOf('/', 1);
    return this.namespaces.find(path.slice(1, end === -1 ? undefined : end));
  }

  // ---- changes

  /**
   * Adds a znode. Takes over the caller's reference to the ACL, whatever the result.
   *
   * `parentCVersion` is the parent's internal cversion after this create, -1 for "one more" (logs
   * before 3.4). It is applied, together with pzxid, only if it is later than the parent's, because
   * a replay may meet a parent that is later already. "Later" uses serial-number arithmetic, so
   * that sequence numbers continue from 2147483647 to -2147483648; ZooKeeper since 3.6 compares
   * plainly and stays at the largest number forever.
   *
   * If the znode exists, it gets the txn's ACL, and, with `raiseParentOnExists` (txns of type
   * `create`), the parent is raised nevertheless: the snapshot under the replay may contain the
   * parent from before, and the child from after, a delete and a new create.
   */
  create(
    path: string,
    data: Uint8Array | null,
    acl: AclId,
    ownerHigh: number,
    ownerLow: number,
    parentCVersion: number,
    zxid: Zxid,
    time: Millis,
    raiseParentOnExists: boolean,
  ): ErrorCode {
    const end = this.encode(path);
    const bytes = this.pathBytes;
    const parentEnd = lastSlash(bytes, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(bytes, 0, parentEnd);
    if (parent === 0) {
      this.acls.release(acl);
      return ErrorCode.NoNode;
    }
    const hash = this.hash.of(bytes, 0, end);
    const existing = end === 1 ? this.root : this.locate(bytes, 0, end, hash);
    if (existing !== 0) {
      this.snapshots.beforeChange(existing);
      this.acls.release(this.rows.get(existing, aclField));
      this.rows.set(existing, aclField, acl);
      if (raiseParentOnExists) this.#bumpParent(parent, parentEnd, parentCVersion, zxid);
      return ErrorCode.NodeExists;
    }
    if (parentEnd === end - 1) {
      // A path that ends in a slash names no znode; requests and logs cannot contain one.
      this.acls.release(acl);
      return ErrorCode.BadArguments;
    }
    this.snapshots.beforeChange(parent);
    const node = this.#addNode(parent, parentEnd + 1, end, hash, data, 0, data === null ? -1 : data.length, acl, ownerHigh, ownerLow);
    this.changedNamespace = this.namespaceOf(node);
    const record = this.recordOf(node);
    const stat = this.statAt(node);
    putInt64(record, stat + czxidAt, zxid);
    putInt64(record, stat + mzxidAt, zxid);
    putInt64(record, stat + ctimeAt, time);
    putInt64(record, stat + mtimeAt, time);
    putInt64(record, stat + pzxidAt, zxid);
    this.childOrder.onLinked(parent, node, zxid);
    this.#updateDigest(node, end);
    this.dataBytes += path.length;
    if (!this.#bumpParent(parent, parentEnd, parentCVersion, zxid)) this.updateChildrenStat(parent);
    if (this.quotas.hasQuotas || this.#isBelowQuotaRoot(node, path)) this.quotas.onCreated(path, node, data);
    this.cachePath(node, path);
    return ErrorCode.Ok;
  }

  /**
   * Removes a znode. Its parent's pzxid is raised even if the znode does not exist, if zxid is
   * larger.
   */
  remove(path: string, zxid: Zxid): ErrorCode {
    const end = this.encode(path);
    const bytes = this.pathBytes;
    const parentEnd = lastSlash(bytes, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(bytes, 0, parentEnd);
    if (parent === 0) return ErrorCode.NoNode;
    const node = this.lookup(bytes, 0, end);
    if (node === this.root) return ErrorCode.BadArguments;
    if (node === 0) {
      if (zxid > this.pzxidOf(parent)) this.#setPzxid(parent, parentEnd, zxid);
      return ErrorCode.NoNode;
    }
    if (this.rows.get(node, firstChildField) !== 0) {
      this.#removeBelow(node);
      this.encode(path);
    }
    this.snapshots.beforeChange(node);
    this.changedNamespace = this.namespaceOf(node);
    const dataLength = Math.max(0, this.dataLengthOf(node));
    const countsForQuota = this.quotas.hasQuotas || this.#isBelowQuotaRoot(node, path);
    this.dataBytes -= path.length;
    this.#removeNode(node);
    if (zxid > this.pzxidOf(parent)) this.#setPzxid(parent, parentEnd, zxid);
    if (countsForQuota) this.quotas.onRemoved(path, dataLength);
    return ErrorCode.Ok;
  }

  /**
   * @param known the znode of that path, if the caller has found it already and it has not been
   * removed since; otherwise 0.
   */
  setData(path: string, data: Uint8Array | null, version: number, zxid: Zxid, time: Millis, known: NodeId = 0): ErrorCode {
    const end = this.encode(path);
    const node = known === 0 ? this.lookup(this.pathBytes, 0, end) : known;
    if (node === 0) return ErrorCode.NoNode;
    this.changedNamespace = this.namespaceOf(node);
    const before = Math.max(0, this.dataLengthOf(node));
    this.snapshots.beforeChange(node);
    this.replaceData(node, data);
    const bytes = this.recordOf(node);
    const stat = this.statAt(node);
    putInt64(bytes, stat + mzxidAt, zxid);
    putInt64(bytes, stat + mtimeAt, time);
    putInt32(bytes, stat + versionAt, version);
    this.#updateDigest(node, node === this.root ? 0 : end);
    if (this.quotas.hasQuotas || this.#isBelowQuotaRoot(node, path)) this.quotas.onDataSet(path, data, before);
    this.cachePath(node, path);
    return ErrorCode.Ok;
  }

  /**
   * Writes the server's configuration into /zookeeper/config, with its version as the zxid. No txn
   * does that, and each server does it for itself, so servers with the same configuration show the
   * same znode: its time is 0, where ZooKeeper uses the time of its own start. Its digest is not
   * counted.
   */
  setConfig(text: string, version: Zxid): void {
    const data = Buffer.from(text, 'utf8');
    if (this.setData(systemPath.config, data, -1, version, 0) === ErrorCode.Ok) return;
    // Snapshots of ZooKeeper 3.4 do not contain it.
    this.#addSystemNode(systemPath.config, this.acls.intern(readOnlyAcl), -1);
    this.setData(systemPath.config, data, -1, version, 0);
  }

  /** The txn of a reconfig is about to replace the configuration. */
  noteReconfig(): void {
    this.replacedConfig = this.dataOf(this.find(systemPath.config))?.toString('utf8');
  }

  /** Takes over the caller's reference to the ACL, whatever the result. */
  setAcl(path: string, acl: AclId, version: number): ErrorCode {
    const end = this.encode(path);
    const node = this.lookup(this.pathBytes, 0, end);
    if (node === 0) {
      this.acls.release(acl);
      return ErrorCode.NoNode;
    }
    this.snapshots.beforeChange(node);
    this.acls.release(this.rows.get(node, aclField));
    this.rows.set(node, aclField, acl);
    const bytes = this.recordOf(node);
    const stat = this.statAt(node);
    putInt32(bytes, stat + aversionAt, version);
    this.#updateDigest(node, node === this.root ? 0 : end);
    return ErrorCode.Ok;
  }

  /**
   * Raises cversion and pzxid of a parent whose path is `pathBytes` up to `pathEnd`. Returns
   * whether it did.
   */
  #bumpParent(parent: NodeId, pathEnd: number, parentCVersion: number, zxid: Zxid): boolean {
    const current = this.rows.get(parent, cversionField);
    const wanted = parentCVersion === -1 ? (current + 1) | 0 : parentCVersion;
    if (!isLater(wanted, current)) return false;
    this.snapshots.beforeChange(parent);
    this.rows.set(parent, cversionField, wanted);
    this.#setPzxid(parent, pathEnd, zxid);
    this.updateChildrenStat(parent);
    return true;
  }

  #setPzxid(node: NodeId, pathEnd: number, zxid: Zxid): void {
    this.snapshots.beforeChange(node);
    const bytes = this.recordOf(node);
    const stat = this.statAt(node);
    putInt64(bytes, stat + pzxidAt, zxid);
    this.#updateDigest(node, pathEnd);
  }

  /**
   * Creates a znode and links it to its parent, without updating the parent's Stat. Its own Stat is
   * zero except for owner and data length. The full path is `pathBytes` up to `pathEnd`, the name
   * from `nameStart` on; `hash` is that of the path.
   */
  #addNode(
    parent: NodeId,
    nameStart: number,
    pathEnd: number,
    hash: number,
    data: Uint8Array | null,
    dataStart: number,
    dataLength: number,
    acl: AclId,
    ownerHigh: number,
    ownerLow: number,
  ): NodeId {
    const rows = this.rows;
    const arena = this.arena;
    const path = this.pathBytes;
    const nameLength = pathEnd - nameStart;
    const bytesOfData = dataLength > 0 ? dataLength : 0;
    const node = rows.alloc();
    const location = arena.alloc(nameLength + 4 + bytesOfData + statBytes);
    const record = arena.bufferOf(location);
    let at = arena.offsetOf(location);
    copyBytes(path, nameStart, record, at, nameLength);
    at += nameLength;
    putInt32(record, at, dataLength);
    at += 4;
    if (bytesOfData > 0) copyBytes(data!, dataStart, record, at, bytesOfData);
    at += bytesOfData;
    record.set(zeroStat, at);
    putInt32(record, at + dataLengthAt, bytesOfData);

    rows.set(node, recordField, location);
    rows.set(node, nameLengthField, nameLength);
    rows.set(node, dataLengthField, dataLength);
    rows.set(node, aclField, acl);
    const kind = this.#kindOfOwner(ownerHigh, ownerLow);
    const uncounted = hasNoDigest(path, pathEnd) ? noDigestFlag : 0;
    this.snapshots.onCreated(node);
    const namespace = this.#namespaceBelow(parent, nameStart, pathEnd);
    rows.set(node, flagsField, kind | uncounted | (namespace << namespaceShift));
    switch (kind) {
      case ephemeral:
        putInt32(record, at + visibleOwnerAt, ownerHigh);
        putInt32(record, at + visibleOwnerAt + 4, ownerLow);
        this.#ephemerals.add(node, ownerHigh, ownerLow);
        break;
      case container:
      case ttl:
        rows.set(node, ownerHighField, ownerHigh);
        rows.set(node, ownerLowField, ownerLow);
        this.#sweepable.add(node);
        break;
    }
    this.#nodes++;
    this.dataBytes += bytesOfData;
    if (parent === 0) {
      this.root = node;
      return node;
    }
    rows.set(node, hashField, hash);
    this.index.insert(hash, node);
    this.linkChild(parent, node);
    return node;
  }

  /** The namespace of a new znode, whose name is in `pathBytes`. */
  #namespaceBelow(parent: NodeId, nameStart: number, pathEnd: number): NamespaceId {
    if (parent === 0) return noNamespace;
    return parent === this.root ? this.namespaces.acquire(this.pathBytes.toString('utf8', nameStart, pathEnd)) : this.namespaceOf(parent);
  }

  /**
   * Removes a znode without children. The caller calls `snapshots.beforeChange` for it first, and
   * updates its parent's pzxid afterwards.
   */
  #removeNode(node: NodeId): void {
    const rows = this.rows;
    const parent = rows.get(node, parentField);
    this.uncachePath(node);
    this.#removeDigest(node);
    this.snapshots.beforeRemove(node);
    switch (this.kindBitsOf(node)) {
      case ephemeral:
        this.#ephemerals.remove(node, this.ownerHighOf(node), this.ownerLowOf(node));
        break;
      case container:
      case ttl:
        this.#sweepable.remove(node);
        break;
    }
    this.index.remove(rows.get(node, hashField), node);
    if (parent === this.root) this.namespaces.release(this.namespaceOf(node));
    this.unlinkChild(parent, node);
    this.updateChildrenStat(parent);
    this.acls.release(rows.get(node, aclField));
    this.#nodes--;
    this.dataBytes -= Math.max(0, rows.get(node, dataLengthField));
    this.arena.free(rows.get(node, recordField));
    // A caller that lists a session's ephemerals may return to this row: it must not look like one.
    rows.set(node, flagsField, 0);
    rows.free(node);
  }

  /**
   * Needed in a replay only: the snapshot contains a later znode of the same path, whose children
   * the log will create again. Otherwise they would be left without a parent.
   */
  #removeBelow(node: NodeId): void {
    const rows = this.rows;
    while (rows.get(node, firstChildField) !== 0) {
      let leaf = node;
      while (rows.get(leaf, firstChildField) !== 0) leaf = rows.get(leaf, firstChildField);
      this.remove(this.pathOf(leaf), noZxid);
    }
  }

  #kindOfOwner(high: number, low: number): number {
    const kind = this.#maybeKindOfOwner(high, low);
    // A txn with such an owner got it from a session of server 255, which is impossible with
    // extended types enabled.
    return kind === undefined ? ephemeral : kind;
  }

  /** undefined for an owner that is invalid with extended types enabled. */
  #maybeKindOfOwner(high: number, low: number): number | undefined {
    if (high === 0 && low === 0) return persistent;
    if (high === containerOwnerHigh && low === 0) return container;
    if (this.#extendedTypesEnabled && high < 0) {
      if (this.#emulate353TtlNodes) return ttl;
      if (high >>> 24 === 0xff) return (high & 0x00ffff00) === 0 ? ttl : undefined;
    }
    return ephemeral;
  }

  // ---- the tree digest

  get digestEnabled(): boolean {
    return this.#digestEnabled;
  }

  /** The share of the znode in the tree digest with this stat and unchanged path and data. */
  digestAs(node: NodeId, stat: DigestedStat): number {
    if (!this.#digestEnabled || (this.rows.get(node, flagsField) & noDigestFlag) !== 0) return 0;
    const length = this.pathLength(node);
    this.reservePath(length);
    this.putPath(node, this.pathBytes, length);
    putDigestedStat(this.stat, stat);
    return crc32(this.stat, 0, digestedStatBytes, this.#pathAndDataCrc(node, this.pathBytes, length)) >>> 0;
  }

  /** CRC of the path, given as bytes [0, pathEnd), and the data; the caller adds the stat. */
  #pathAndDataCrc(node: NodeId, path: Buffer, pathEnd: number): number {
    const crc = crc32(path, 0, pathEnd);
    const dataLength = this.rows.get(node, dataLengthField);
    this.digestedBytes += pathEnd + dataLength;
    if (dataLength <= 0) return crc;
    const start = this.dataAt(node) + 4;
    return crc32(this.recordOf(node), start, start + dataLength, crc);
  }

  /** Updates a znode's share in the tree digest. Its path is `pathBytes` up to `pathEnd`. */
  #updateDigest(node: NodeId, pathEnd: number): void {
    if (!this.#digestEnabled || (this.rows.get(node, flagsField) & noDigestFlag) !== 0) return;
    const stat = this.stat;
    const bytes = this.recordOf(node);
    const at = this.statAt(node);
    copyBytes(bytes, at + czxidAt, stat, 0, 16);
    copyBytes(bytes, at + pzxidAt, stat, 16, 8);
    copyBytes(bytes, at + ctimeAt, stat, 24, 20);
    putInt32(stat, 44, this.rows.get(node, cversionField));
    copyBytes(bytes, at + aversionAt, stat, 48, 4);
    putInt32(stat, 52, this.ownerHighOf(node));
    putInt32(stat, 56, this.ownerLowOf(node));
    const digest = crc32(stat, 0, digestedStatBytes, this.#pathAndDataCrc(node, this.pathBytes, pathEnd));
    this.#addToDigest((digest >>> 0) - this.digestOf(node));
    this.rows.set(node, digestField, digest);
  }

  #removeDigest(node: NodeId): void {
    this.#addToDigest(-this.digestOf(node));
    this.rows.set(node, digestField, 0);
  }

  #addToDigest(difference: number): void {
    const low = (this.digestLow >>> 0) + difference;
    this.digestLow = low | 0;
    this.digestHigh = (this.digestHigh + Math.floor(low / 4294967296)) | 0;
  }

  // ---- ephemerals and sweeps

  /**
   * Visits the ephemerals of one session in no particular order; the visitor must not change the
   * tree.
   */
  forEachEphemeral(ownerHigh: number, ownerLow: number, visit: (node: NodeId) => void): void {
    this.#ephemerals.forEach(ownerHigh, ownerLow, visit);
  }

  /**
   * The first of a session's ephemerals in that order, 0 if it has none; `nextEphemeral` returns
   * the others.
   */
  firstEphemeral(ownerHigh: number, ownerLow: number): NodeId {
    return this.#ephemerals.firstOf(ownerHigh, ownerLow);
  }

  /**
   * The ephemeral of the same session after this one, 0 at the end. The tree must not change
   * between two calls.
   */
  nextEphemeral(node: NodeId): NodeId {
    return this.rows.get(node, nextOfOwnerField);
  }

  /** Whether this znode exists and is an ephemeral of this session. */
  isEphemeralOf(node: NodeId, ownerHigh: number, ownerLow: number): boolean {
    return this.kindBitsOf(node) === ephemeral && this.ownerHighOf(node) === ownerHigh && this.ownerLowOf(node) === ownerLow;
  }

  ephemeralCountOf(ownerHigh: number, ownerLow: number): number {
    return this.#ephemerals.countOf(ownerHigh, ownerLow);
  }

  /**
   * Every session that has ephemerals, in the session table or not. The tree must not change
   * meanwhile.
   */
  owners(): Iterable<[high: number, low: number]> {
    return this.#ephemerals.owners();
  }

  get ephemeralCount(): number {
    return this.#ephemerals.count;
  }

  /** Number of containers and TTL znodes. */
  get sweepableCount(): number {
    return this.#sweepable.count;
  }

  /**
   * Visits containers and TTL znodes without children; the visitor decides which are due. Looks at
   * no more than `budget` of them and returns the cursor for the next call, 0 at the end. Start
   * with 0. The tree may change between calls: a znode that exists all the time is visited,
   * possibly twice.
   */
  sweepCandidates(cursor: number, budget: number, visit: (node: NodeId) => void): number {
    return this.#sweepable.visit(cursor, budget, (node) => {
      if (this.rows.get(node, childCountField) === 0) visit(node);
    });
  }

  // ---- quotas

  #isBelowQuotaRoot(node: NodeId, path: string): boolean {
    return (this.rows.get(node, flagsField) & noDigestFlag) !== 0 && path.startsWith(quotaRoot);
  }

  /**
   * Replaces the data of a usage znode, and nothing else: no version, zxid or digest, since every
   * server counts for itself. For quota-usage.ts.
   */
  writeUsage(statsNode: NodeId, text: string): void {
    this.snapshots.beforeChange(statsNode);
    this.replaceData(statsNode, Buffer.from(text));
  }

  // ---- counts

  /** The number of znodes, including the root and the system's own. */
  get size(): number {
    return this.#nodes;
  }

  /** As ZooKeeper counts: it has the root under two keys, so an empty tree has 5. */
  get nodeCount(): number {
    return this.#nodes + 1;
  }

  /** Bytes of data plus UTF-16 units of all paths; that of the root is `/`. */
  get approximateDataBytes(): number {
    return this.dataBytes;
  }

  /** Free memory in the pages of znodes, in bytes. */
  get idleBytes(): number {
    return this.arena.idleBytes + this.rows.idleBytes;
  }

  /** Memory of znodes that has been released since the peak, in bytes. */
  get releasedBytes(): number {
    return this.arena.releasedBytes;
  }

  /** Memory of rows, records and indexes, in bytes. */
  memoryBytes(): number {
    return (
      this.rows.memoryBytes +
      this.arena.memoryBytes +
      this.index.memoryBytes +
      this.#ephemerals.memoryBytes +
      this.#sweepable.memoryBytes +
      this.snapshots.preservedBytes
    );
  }

  // ---- loading

  /**
   * Adds a znode of a snapshot; for snapshot-loader.ts, on a tree created `empty`. Path, data and
   * StatPersisted are given by their offsets in `bytes`; the reference to the ACL is taken over.
   * Returns undefined, or what was expected if the znode is invalid.
   */
  loadNode(
    bytes: Buffer,
    pathStart: number,
    pathEnd: number,
    dataStart: number,
    dataLength: number,
    acl: AclId,
    statStart: number,
  ): string | undefined {
    const end = this.copyPath(bytes, pathStart, pathEnd);
    const path = this.pathBytes;
    const parentEnd = lastSlash(path, end);
    let parent = 0;
    let hash = 0;
    if (end === 0) {
      if (this.root !== 0) return 'only one root';
    } else {
      if (this.root === 0) return 'the root before all other znodes';
      parent = parentEnd === -1 ? 0 : this.lookup(path, 0, parentEnd);
      if (parent === 0) return 'a znode after its parent';
      if (parentEnd === end - 1) return 'a znode with a name';
      hash = this.hash.of(path, 0, end);
      if (this.locate(path, 0, end, hash) !== 0) return 'each znode only once';
    }
    const ownerHigh = int32At(bytes, statStart + 44);
    const ownerLow = int32At(bytes, statStart + 48);
    if (this.#maybeKindOfOwner(ownerHigh, ownerLow) === undefined) {
      const owner = formatSessionId(sessionIdOf(ownerHigh, ownerLow));
      return `an ephemeralOwner that is valid with extended types enabled, not ${owner}`;
    }
    const node = this.#addNode(parent, parentEnd + 1, end, hash, bytes, dataStart, dataLength, acl, ownerHigh, ownerLow);
    const record = this.recordOf(node);
    const stat = this.statAt(node);
    copyBytes(bytes, statStart, record, stat, visibleCversionAt);
    this.rows.set(node, cversionField, int32At(bytes, statStart + 36));
    copyBytes(bytes, statStart + 40, record, stat + aversionAt, 4);
    copyBytes(bytes, statStart + 52, record, stat + pzxidAt, 8);
    this.childOrder.onLinked(parent, node, int64At(bytes, statStart));
    this.updateChildrenStat(node);
    if (parent !== 0) this.updateChildrenStat(parent);
    this.#updateDigest(node, end);
    this.dataBytes += end === 0 ? 1 : utf16Length(path, end);
    return undefined;
  }

  #addSystemNodes(): void {
    this.#addSystemNode('', openAclId, 0);
    this.#addSystemNode(systemPath.zookeeper, openAclId, 0);
    // An operator decides who may change the configuration, so at first no client may
    // (ZOOKEEPER-2014).
    this.#addSystemNode(systemPath.config, this.acls.intern(readOnlyAcl), -1);
    this.#addSystemNode(quotaRoot, openAclId, 0);
  }

  #addSystemNode(path: string, acl: AclId, aversion: number): void {
    const end = this.encode(path);
    const parentEnd = lastSlash(this.pathBytes, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(this.pathBytes, 0, parentEnd);
    const node = this.#addNode(parent, parentEnd + 1, end, this.hash.of(this.pathBytes, 0, end), noBytes, 0, 0, acl, 0, 0);
    this.childOrder.onLinked(parent, node, 0);
    putInt32(this.recordOf(node), this.statAt(node) + aversionAt, aversion);
    if (parent !== 0) this.updateChildrenStat(parent);
    this.#updateDigest(node, end);
    this.dataBytes += path === '' ? 1 : path.length;
  }
}

/** Whether one internal cversion is later than another, on a circle of 2^32. */
function isLater(a: number, b: number): boolean {
  return ((a - b) | 0) > 0;
}
