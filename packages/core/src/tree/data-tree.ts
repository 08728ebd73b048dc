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
 *   `int dataLength, data, Stat` exactly as sent to clients, so that a reply is one copy.
 * - A path is found by its hash (path-index.ts), and verified by comparing names upwards from its
 *   end.
 * - No object represents a znode. Callers hold a `NodeId`.
 */
import { ErrorCode, formatSessionId, type Millis, readOnlyAcl, sessionIdOf, systemPath, Writer, type Zxid } from '@tskeeper/protocol';
import { type AclId, AclTable, openAclId } from './acl-table.ts';
import { ByteArena } from './byte-arena.ts';
import { copyBytes, int32At, int64At, putInt32, putInt64 } from './bytes.ts';
import { EphemeralTable } from './ephemeral-table.ts';
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
  nextSiblingField,
  type NodeId,
  NodeStore,
  ownerHighField,
  ownerLowField,
  parentField,
  previousSiblingField,
  recordField,
} from './node-store.ts';
import { type NamespaceId, namespaceIdEnd, NamespaceTable, noNamespace } from './namespace-table.ts';
import { PathHash } from './path-hash.ts';
import { PathIndex } from './path-index.ts';
import { QuotaRebuild } from './quota-rebuild.ts';
import { type Quota, quotaRoot, QuotaTable, type QuotaTotals, type QuotaViolation, textOf } from './quota-table.ts';
import { SnapshotWalk } from './snapshot-walk.ts';
import { SweepList } from './sweep-list.ts';
import { crc32, digestedStatBytes, type DigestedStat, putDigestedStat, noDigestPrefix } from './tree-digest.ts';

export type { AclId } from './acl-table.ts';
export type { NodeId } from './node-store.ts';
export type { QuotaTotals, QuotaViolation } from './quota-table.ts';
export { type DigestedStat, nodeDigest } from './tree-digest.ts';

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

export type NodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

const persistent = 0;
const ephemeral = 1;
const container = 2;
const ttl = 3;
const kinds: readonly NodeKind[] = ['persistent', 'ephemeral', 'container', 'ttl'];
const kindMask = 3;
const noDigestFlag = 4;
/** The number of its namespace, 8 bits. */
const namespaceShift = 4;
const namespaceMask = namespaceIdEnd - 1;

const containerOwnerHigh = 0x80000000 | 0;

// Offsets within a Stat on the wire.
const czxidAt = 0;
const mzxidAt = 8;
const ctimeAt = 16;
const mtimeAt = 24;
const versionAt = 32;
const visibleCversionAt = 36;
const aversionAt = 40;
const visibleOwnerAt = 44;
const dataLengthAt = 52;
const childCountAt = 56;
const pzxidAt = 60;
const statBytes = 68;
/** StatPersisted, the form in snapshots: no counts, pzxid last, internal cversion, raw owner. */
const persistedStatBytes = 60;

const slash = 0x2f;
/** Below every zxid. */
const noZxid: Zxid = -1;
const noBytes = Buffer.alloc(0);
const zeroStat = Buffer.alloc(statBytes);
/**
 * A slice visits one znode per this many bytes of its target, so that znodes with nothing to write
 * cannot make it long.
 */
const bytesPerVisit = 16;

export class DataTree {
  readonly acls: AclTable;
  /** The tree digest, a wrapping 64-bit sum, as two int32. */
  digestHigh = 0;
  digestLow = 0;

  /** Bytes of paths and data digested so far. The difference measures the cost of a change. */
  digestedBytes = 0;

  readonly #extendedTypesEnabled: boolean;
  readonly #emulate353TtlNodes: boolean;
  readonly #digestEnabled: boolean;
  readonly #rows = new NodeStore();
  readonly #arena = new ByteArena();
  readonly #index = new PathIndex();
  readonly #hash: PathHash;
  readonly #ephemerals: EphemeralTable;
  readonly #quotas = new QuotaTable();
  readonly namespaces = new NamespaceTable();
  /** The namespace of the znode created, deleted or given data last. */
  changedNamespace: NamespaceId = noNamespace;
  readonly #sweepable = new SweepList(this.#rows);
  /** The quota whose usage is being counted. */
  #recount: Recount | undefined;
  #quotaRebuild: QuotaRebuild | undefined;
  #root: NodeId = 0;
  #nodes = 0;
  #dataBytes = 0;
  /** The current path in UTF-8, from byte 0 on. */
  #path = Buffer.allocUnsafeSlow(1024);
  /**
   * The znode found last, and the very string of its path: a txn is applied, reported and answered
   * with one path. 0 for none.
   */
  #cachedNode: NodeId = 0;
  #cachedPath = '';
  readonly #stat = Buffer.alloc(statBytes);

  /** The snapshots being written. */
  readonly #walks: SnapshotWalk[] = [];

  constructor(options: DataTreeOptions) {
    this.#extendedTypesEnabled = options.extendedTypesEnabled;
    this.#emulate353TtlNodes = options.emulate353TtlNodes;
    this.#digestEnabled = options.digestEnabled;
    this.#hash = new PathHash(options.hashSeed);
    this.acls = new AclTable(this.#arena, options.hashSeed, options.shortAclEntriesMax);
    this.#ephemerals = new EphemeralTable(this.#rows, options.hashSeed);
    if (options.empty !== true) this.#addSystemNodes();
  }

  // ---- look-ups

  /**
   * Finds a znode by the UTF-8 bytes of its path. The empty path and `/` both name the root.
   * Malformed UTF-8 names no znode.
   */
  lookup(path: Buffer, start: number, end: number): NodeId {
    if (end - start <= 1 && (end === start || path[start] === slash)) return this.#root;
    return this.#locate(path, start, end, this.#hash.of(path, start, end));
  }

  find(path: string): NodeId {
    if (this.#cachedNode !== 0 && path === this.#cachedPath) return this.#cachedNode;
    return this.lookup(this.#path, 0, this.#encode(path));
  }

  pathOf(node: NodeId): string {
    if (node === this.#root) return '/';
    const length = this.#pathLength(node);
    this.#reservePath(length);
    this.#putPath(node, this.#path, length);
    return this.#path.toString('utf8', 0, length);
  }

  namespaceOf(node: NodeId): NamespaceId {
    return (this.#rows.get(node, flagsField) >>> namespaceShift) & namespaceMask;
  }

  /** The namespace of a path, whether or not the znode exists. */
  namespaceOfPath(path: string): NamespaceId {
    const end = path.indexOf('/', 1);
    return this.namespaces.find(path.slice(1, end === -1 ? undefined : end));
  }

  /** 0 for the root. */
  parentOf(node: NodeId): NodeId {
    return this.#rows.get(node, parentField);
  }

  #locate(path: Buffer, start: number, end: number, hash: number): NodeId {
    const index = this.#index;
    let node = index.first(hash);
    while (node !== 0 && !this.#isAt(node, path, start, end)) node = index.next();
    return node;
  }

  /** Whether this is the znode of that path: names are compared from the end upwards. */
  #isAt(candidate: NodeId, path: Buffer, start: number, end: number): boolean {
    const rows = this.#rows;
    const arena = this.#arena;
    let node = candidate;
    let at = end;
    while (node !== this.#root) {
      const location = rows.get(node, recordField);
      const nameLength = rows.get(node, nameLengthField);
      at -= nameLength;
      if (at <= start || path[at - 1] !== slash) return false;
      const bytes = arena.bufferOf(location);
      const nameAt = arena.offsetOf(location);
      for (let i = nameLength - 1; i >= 0; i--) if (path[at + i] !== bytes[nameAt + i]) return false;
      at--;
      node = rows.get(node, parentField);
    }
    return at === start;
  }

  #reservePath(bytes: number): void {
    if (bytes > this.#path.length) this.#path = Buffer.allocUnsafeSlow(Math.max(bytes, this.#path.length * 2));
  }

  /** Writes the path's UTF-8 into `#path` and returns its length. */
  #encode(path: string): number {
    const length = path.length;
    this.#reservePath(length * 3);
    const bytes = this.#path;
    for (let i = 0; i < length; i++) {
      const unit = path.charCodeAt(i);
      if (unit >= 0x80) return bytes.write(path, 0, 'utf8');
      bytes[i] = unit;
    }
    return length;
  }

  /** In bytes; 0 for the root, whose path counts as empty. */
  #pathLength(node: NodeId): number {
    let length = 0;
    for (let at = node; at !== this.#root; at = this.#rows.get(at, parentField)) length += 1 + this.#rows.get(at, nameLengthField);
    return length;
  }

  /** Writes the path of a znode so that it ends before `end`. */
  #putPath(node: NodeId, into: Buffer, end: number): void {
    const rows = this.#rows;
    const arena = this.#arena;
    let at = end;
    for (let next = node; next !== this.#root; next = rows.get(next, parentField)) {
      const nameLength = rows.get(next, nameLengthField);
      const location = rows.get(next, recordField);
      at -= nameLength;
      copyBytes(arena.bufferOf(location), arena.offsetOf(location), into, at, nameLength);
      into[--at] = slash;
    }
  }

  // ---- properties of a znode

  aclOf(node: NodeId): AclId {
    return this.#rows.get(node, aclField);
  }

  versionOf(node: NodeId): number {
    return this.#statInt32(node, versionAt);
  }

  /** The internal counter of creates; clients see 2 * this - children. */
  cversionOf(node: NodeId): number {
    return this.#rows.get(node, cversionField);
  }

  aversionOf(node: NodeId): number {
    return this.#statInt32(node, aversionAt);
  }

  czxidOf(node: NodeId): Zxid {
    return this.#statInt64(node, czxidAt);
  }

  mzxidOf(node: NodeId): Zxid {
    return this.#statInt64(node, mzxidAt);
  }

  pzxidOf(node: NodeId): Zxid {
    return this.#statInt64(node, pzxidAt);
  }

  ctimeOf(node: NodeId): Millis {
    return this.#statInt64(node, ctimeAt);
  }

  mtimeOf(node: NodeId): Millis {
    return this.#statInt64(node, mtimeAt);
  }

  childCountOf(node: NodeId): number {
    return this.#rows.get(node, childCountField);
  }

  /**
   * The high half of ephemeralOwner as stored: a session id, or the marker of a container or a TTL.
   */
  ownerHighOf(node: NodeId): number {
    return this.#kindOf(node) === ephemeral ? this.#statInt32(node, visibleOwnerAt) : this.#rows.get(node, ownerHighField);
  }

  ownerLowOf(node: NodeId): number {
    return this.#kindOf(node) === ephemeral ? this.#statInt32(node, visibleOwnerAt + 4) : this.#rows.get(node, ownerLowField);
  }

  kindOf(node: NodeId): NodeKind {
    return kinds[this.#kindOf(node)]!;
  }

  /**
   * The TTL of a TTL znode in ms; 0 for others. The low 40 bits in both layouts, since the maximum
   * is 2^40 - 1.
   */
  ttlOf(node: NodeId): Millis {
    if (this.#kindOf(node) !== ttl) return 0;
    return (this.#rows.get(node, ownerHighField) & 0xff) * 4294967296 + (this.#rows.get(node, ownerLowField) >>> 0);
  }

  /** -1 for null. */
  dataLengthOf(node: NodeId): number {
    return this.#rows.get(node, dataLengthField);
  }

  /** A copy. */
  dataOf(node: NodeId): Buffer | null {
    const length = this.#rows.get(node, dataLengthField);
    if (length === -1) return null;
    const start = this.#dataAt(node) + 4;
    return Buffer.from(this.#recordOf(node).subarray(start, start + length));
  }

  /** The share of the znode in the tree digest: a uint32, 0 if it is not counted. */
  digestOf(node: NodeId): number {
    return this.#rows.get(node, digestField) >>> 0;
  }

  /** The share of the znode in the tree digest with this stat and unchanged path and data. */
  digestAs(node: NodeId, stat: DigestedStat): number {
    if (!this.#digestEnabled || (this.#rows.get(node, flagsField) & noDigestFlag) !== 0) return 0;
    const length = this.#pathLength(node);
    this.#reservePath(length);
    this.#putPath(node, this.#path, length);
    putDigestedStat(this.#stat, stat);
    return crc32(this.#stat, 0, digestedStatBytes, this.#pathAndDataCrc(node, this.#path, length)) >>> 0;
  }

  #kindOf(node: NodeId): number {
    return this.#rows.get(node, flagsField) & kindMask;
  }

  /** The buffer that contains a znode's record; `#dataAt` and `#statAt` are offsets in it. */
  #recordOf(node: NodeId): Buffer {
    return this.#arena.bufferOf(this.#rows.get(node, recordField));
  }

  /** Offset of the data, with their length in front. */
  #dataAt(node: NodeId): number {
    return this.#arena.offsetOf(this.#rows.get(node, recordField)) + this.#rows.get(node, nameLengthField);
  }

  #statAt(node: NodeId): number {
    const dataLength = this.#rows.get(node, dataLengthField);
    return this.#dataAt(node) + 4 + (dataLength > 0 ? dataLength : 0);
  }

  #statInt32(node: NodeId, at: number): number {
    return int32At(this.#recordOf(node), this.#statAt(node) + at);
  }

  #statInt64(node: NodeId, at: number): number {
    return int64At(this.#recordOf(node), this.#statAt(node) + at);
  }

  // ---- wire forms

  writeStat(node: NodeId, writer: Writer): void {
    const start = this.#statAt(node);
    writer.raw(this.#recordOf(node), start, start + statBytes);
  }

  /** Writes the data as a buffer, which may be null. */
  writeData(node: NodeId, writer: Writer): void {
    writer.raw(this.#recordOf(node), this.#dataAt(node), this.#statAt(node));
  }

  /** Writes a GetDataResponse. */
  writeDataAndStat(node: NodeId, writer: Writer): void {
    writer.raw(this.#recordOf(node), this.#dataAt(node), this.#statAt(node) + statBytes);
  }

  /**
   * Writes a vector<ustring>: the names of the children, in order of creation. For znodes with few;
   * see `writeNames`.
   */
  writeChildren(node: NodeId, writer: Writer): void {
    writer.int32(this.#rows.get(node, childCountField));
    this.writeNames(this.#rows.get(node, firstChildField), writer, Infinity, Infinity);
  }

  /** 0 for a znode without children. */
  firstChildOf(node: NodeId): NodeId {
    return this.#rows.get(node, firstChildField);
  }

  /** The next child of the same parent, in order of creation; 0 after the last. */
  nextSiblingOf(node: NodeId): NodeId {
    return this.#rows.get(node, nextSiblingField);
  }

  /**
   * Writes names of a znode's children, in order of creation, from `child` on: at most `max` of
   * them, and none that begins at `end` or beyond. Returns the child to continue with, 0 at the
   * end. The tree must not change between two calls.
   */
  writeNames(child: NodeId, writer: Writer, max: number, end: number): NodeId {
    const rows = this.#rows;
    const arena = this.#arena;
    let at = child;
    for (let written = 0; at !== 0 && written < max && writer.offset < end; written++) {
      const location = rows.get(at, recordField);
      const start = arena.offsetOf(location);
      const length = rows.get(at, nameLengthField);
      writer.int32(length);
      writer.raw(arena.bufferOf(location), start, start + length);
      at = rows.get(at, nextSiblingField);
    }
    return at;
  }

  /** The number of znodes, including the root and the system's own. */
  get size(): number {
    return this.#nodes;
  }

  /**
   * The znode after this one, depth first, among those below `top`; 0 at the end. Start with `top`
   * itself. The tree must not change between two calls.
   */
  nextBelow(node: NodeId, top: NodeId): NodeId {
    return this.#after(node, top);
  }

  /** The same, skipping the subtree of this znode. */
  nextAfterSubtree(node: NodeId, top: NodeId): NodeId {
    return this.#afterSubtree(node, top);
  }

  isRoot(node: NodeId): boolean {
    return node === this.#root;
  }

  /** The znode after this one, depth first, among those below `top`; 0 at the end. */
  #after(node: NodeId, top: NodeId): NodeId {
    const firstChild = this.#rows.get(node, firstChildField);
    return firstChild === 0 ? this.#afterSubtree(node, top) : firstChild;
  }

  /** The same, skipping the subtree of this znode. */
  #afterSubtree(node: NodeId, top: NodeId): NodeId {
    for (let at = node; at !== top; at = this.#rows.get(at, parentField)) {
      const next = this.#rows.get(at, nextSiblingField);
      if (next !== 0) return next;
    }
    return 0;
  }

  // ---- changes

  /**
   * Adds a znode. Takes over the caller's reference to the ACL, whatever the result.
   *
   * `parentCVersion` is the parent's internal cversion after this create, -1 for "one more" (logs
   * before 3.4). It is applied, together with pzxid, only if it is later than the parent's, because
   * a replay may meet a parent that is later already. "Later" uses serial-number arithmetic, so
   * that sequence numbers continue from 2147483647 to -2147483648; ZooKeeper since 3.6 compares
   * plainly and stays at the largest number for ever.
   *
   * If the znode exists, it gets the txn's ACL, and, with `raiseParentOnExists` (txns of type
   * `create`), the parent is raised all the same: the snapshot under the replay may contain the
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
    const end = this.#encode(path);
    const bytes = this.#path;
    const parentEnd = lastSlash(bytes, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(bytes, 0, parentEnd);
    if (parent === 0) {
      this.acls.release(acl);
      return ErrorCode.NoNode;
    }
    const hash = this.#hash.of(bytes, 0, end);
    const existing = end === 1 ? this.#root : this.#locate(bytes, 0, end, hash);
    if (existing !== 0) {
      this.#beforeChange(existing);
      this.acls.release(this.#rows.get(existing, aclField));
      this.#rows.set(existing, aclField, acl);
      if (raiseParentOnExists) this.#bumpParent(parent, parentEnd, parentCVersion, zxid);
      return ErrorCode.NodeExists;
    }
    if (parentEnd === end - 1) {
      // A path that ends in a slash names no znode; requests and logs cannot contain one.
      this.acls.release(acl);
      return ErrorCode.BadArguments;
    }
    this.#beforeChange(parent);
    const node = this.#addNode(parent, parentEnd + 1, end, hash, data, 0, data === null ? -1 : data.length, acl, ownerHigh, ownerLow);
    this.changedNamespace = this.namespaceOf(node);
    const record = this.#recordOf(node);
    const stat = this.#statAt(node);
    putInt64(record, stat + czxidAt, zxid);
    putInt64(record, stat + mzxidAt, zxid);
    putInt64(record, stat + ctimeAt, time);
    putInt64(record, stat + mtimeAt, time);
    putInt64(record, stat + pzxidAt, zxid);
    this.#updateDigest(node, end);
    this.#dataBytes += path.length;
    if (!this.#bumpParent(parent, parentEnd, parentCVersion, zxid)) this.#updateChildrenStat(parent);
    if (this.#quotas.hasQuotas || this.#isBelowQuotaRoot(node, path)) this.#quotaCreated(path, node, data);
    this.#cachePath(node, path);
    return ErrorCode.Ok;
  }

  /**
   * Removes a znode. Its parent's pzxid is raised even if the znode does not exist, if zxid is
   * larger.
   */
  remove(path: string, zxid: Zxid): ErrorCode {
    const end = this.#encode(path);
    const bytes = this.#path;
    const parentEnd = lastSlash(bytes, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(bytes, 0, parentEnd);
    if (parent === 0) return ErrorCode.NoNode;
    const node = this.lookup(bytes, 0, end);
    if (node === this.#root) return ErrorCode.BadArguments;
    if (node === 0) {
      if (zxid > this.pzxidOf(parent)) this.#setPzxid(parent, parentEnd, zxid);
      return ErrorCode.NoNode;
    }
    if (this.#rows.get(node, firstChildField) !== 0) {
      this.#removeBelow(node);
      this.#encode(path);
    }
    this.#beforeChange(node);
    this.changedNamespace = this.namespaceOf(node);
    const dataLength = Math.max(0, this.dataLengthOf(node));
    const countsForQuota = this.#quotas.hasQuotas || this.#isBelowQuotaRoot(node, path);
    this.#dataBytes -= path.length;
    this.#removeNode(node);
    if (zxid > this.pzxidOf(parent)) this.#setPzxid(parent, parentEnd, zxid);
    if (countsForQuota) this.#quotaRemoved(path, dataLength);
    return ErrorCode.Ok;
  }

  /**
   * @param known the znode of that path, if the caller has found it already and it has not been
   * removed since; otherwise 0.
   */
  setData(path: string, data: Uint8Array | null, version: number, zxid: Zxid, time: Millis, known: NodeId = 0): ErrorCode {
    const end = this.#encode(path);
    const node = known === 0 ? this.lookup(this.#path, 0, end) : known;
    if (node === 0) return ErrorCode.NoNode;
    this.changedNamespace = this.namespaceOf(node);
    const before = Math.max(0, this.dataLengthOf(node));
    this.#beforeChange(node);
    this.#replaceData(node, data);
    const bytes = this.#recordOf(node);
    const stat = this.#statAt(node);
    putInt64(bytes, stat + mzxidAt, zxid);
    putInt64(bytes, stat + mtimeAt, time);
    putInt32(bytes, stat + versionAt, version);
    this.#updateDigest(node, node === this.#root ? 0 : end);
    if (this.#quotas.hasQuotas || this.#isBelowQuotaRoot(node, path)) this.#quotaDataSet(path, data, before);
    this.#cachePath(node, path);
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

  #cachePath(node: NodeId, path: string): void {
    this.#cachedNode = node;
    this.#cachedPath = path;
  }

  /** Takes over the caller's reference to the ACL, whatever the result. */
  setAcl(path: string, acl: AclId, version: number): ErrorCode {
    const end = this.#encode(path);
    const node = this.lookup(this.#path, 0, end);
    if (node === 0) {
      this.acls.release(acl);
      return ErrorCode.NoNode;
    }
    this.#beforeChange(node);
    this.acls.release(this.#rows.get(node, aclField));
    this.#rows.set(node, aclField, acl);
    const bytes = this.#recordOf(node);
    const stat = this.#statAt(node);
    putInt32(bytes, stat + aversionAt, version);
    this.#updateDigest(node, node === this.#root ? 0 : end);
    return ErrorCode.Ok;
  }

  /**
   * Raises cversion and pzxid of a parent whose path is `#path` up to `pathEnd`. Returns whether it
   * did.
   */
  #bumpParent(parent: NodeId, pathEnd: number, parentCVersion: number, zxid: Zxid): boolean {
    const current = this.#rows.get(parent, cversionField);
    const wanted = parentCVersion === -1 ? (current + 1) | 0 : parentCVersion;
    if (!isLater(wanted, current)) return false;
    this.#beforeChange(parent);
    this.#rows.set(parent, cversionField, wanted);
    this.#setPzxid(parent, pathEnd, zxid);
    this.#updateChildrenStat(parent);
    return true;
  }

  #setPzxid(node: NodeId, pathEnd: number, zxid: Zxid): void {
    this.#beforeChange(node);
    const bytes = this.#recordOf(node);
    const stat = this.#statAt(node);
    putInt64(bytes, stat + pzxidAt, zxid);
    this.#updateDigest(node, pathEnd);
  }

  /** Updates the visible cversion and the number of children in the Stat. */
  #updateChildrenStat(node: NodeId): void {
    const children = this.#rows.get(node, childCountField);
    const bytes = this.#recordOf(node);
    const stat = this.#statAt(node);
    putInt32(bytes, stat + visibleCversionAt, this.#rows.get(node, cversionField) * 2 - children);
    putInt32(bytes, stat + childCountAt, children);
  }

  /**
   * Creates a znode and links it to its parent, without updating the parent's Stat. Its own Stat is
   * zero except for owner and data length. The full path is `#path` up to `pathEnd`, the name from
   * `nameStart` on; `hash` is that of the path.
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
    const rows = this.#rows;
    const arena = this.#arena;
    const path = this.#path;
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
    // A znode created during a snapshot is not part of it, even if its row was used before.
    for (const walk of this.#walks) walk.markWritten(node);
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
    this.#dataBytes += bytesOfData;
    if (parent === 0) {
      this.#root = node;
      return node;
    }
    rows.set(node, hashField, hash);
    this.#index.insert(hash, node);
    this.#linkChild(parent, node);
    return node;
  }

  /** The namespace of a new znode, whose name is in `#path`. */
  #namespaceBelow(parent: NodeId, nameStart: number, pathEnd: number): NamespaceId {
    if (parent === 0) return noNamespace;
    return parent === this.#root ? this.namespaces.acquire(this.#path.toString('utf8', nameStart, pathEnd)) : this.namespaceOf(parent);
  }

  /**
   * Removes a znode without children, after `#beforeChange`. The caller updates its parent's pzxid.
   */
  #removeNode(node: NodeId): void {
    const rows = this.#rows;
    const parent = rows.get(node, parentField);
    if (node === this.#cachedNode) this.#cachedNode = 0;
    this.#removeDigest(node);
    for (const walk of this.#walks) if (walk.next === node) walk.next = this.#afterSubtree(node, this.#root);
    switch (this.#kindOf(node)) {
      case ephemeral:
        this.#ephemerals.remove(node, this.ownerHighOf(node), this.ownerLowOf(node));
        break;
      case container:
      case ttl:
        this.#sweepable.remove(node);
        break;
    }
    this.#index.remove(rows.get(node, hashField), node);
    if (parent === this.#root) this.namespaces.release(this.namespaceOf(node));
    this.#unlinkChild(parent, node);
    this.#updateChildrenStat(parent);
    this.acls.release(rows.get(node, aclField));
    this.#nodes--;
    this.#dataBytes -= Math.max(0, rows.get(node, dataLengthField));
    this.#arena.free(rows.get(node, recordField));
    // A caller that lists a session's ephemerals may return to this row: it must not look like one.
    rows.set(node, flagsField, 0);
    rows.free(node);
  }

  /**
   * Needed in a replay only: the snapshot contains a later znode of the same path, whose children
   * the log will create again. Otherwise they would be left without a parent.
   */
  #removeBelow(node: NodeId): void {
    const rows = this.#rows;
    while (rows.get(node, firstChildField) !== 0) {
      let leaf = node;
      while (rows.get(leaf, firstChildField) !== 0) leaf = rows.get(leaf, firstChildField);
      this.remove(this.pathOf(leaf), noZxid);
    }
  }

  #linkChild(parent: NodeId, node: NodeId): void {
    const rows = this.#rows;
    const first = rows.get(parent, firstChildField);
    rows.set(node, parentField, parent);
    rows.set(parent, childCountField, rows.get(parent, childCountField) + 1);
    if (first === 0) {
      rows.set(parent, firstChildField, node);
      rows.set(node, previousSiblingField, node);
      return;
    }
    const last = rows.get(first, previousSiblingField);
    rows.set(last, nextSiblingField, node);
    rows.set(node, previousSiblingField, last);
    rows.set(first, previousSiblingField, node);
  }

  #unlinkChild(parent: NodeId, node: NodeId): void {
    const rows = this.#rows;
    const first = rows.get(parent, firstChildField);
    const next = rows.get(node, nextSiblingField);
    const previous = rows.get(node, previousSiblingField);
    rows.set(parent, childCountField, rows.get(parent, childCountField) - 1);
    if (node === first) rows.set(parent, firstChildField, next);
    else rows.set(previous, nextSiblingField, next);
    // The first member's "previous" is the last member.
    if (next !== 0) rows.set(next, previousSiblingField, previous);
    else if (node !== first) rows.set(first, previousSiblingField, previous);
  }

  /** Replaces the data of a znode and the data length in its Stat, but nothing else of the Stat. */
  #replaceData(node: NodeId, data: Uint8Array | null): void {
    const rows = this.#rows;
    const arena = this.#arena;
    const oldLength = rows.get(node, dataLengthField);
    const dataLength = data === null ? -1 : data.length;
    const bytesOfData = data === null ? 0 : data.length;
    const nameLength = rows.get(node, nameLengthField);
    const oldLocation = rows.get(node, recordField);
    const size = nameLength + 4 + bytesOfData + statBytes;
    let location = oldLocation;
    if (dataLength !== oldLength) {
      this.#dataBytes += bytesOfData - Math.max(0, oldLength);
      const stat = this.#stat;
      copyBytes(arena.bufferOf(oldLocation), this.#statAt(node), stat, 0, statBytes);
      if (!arena.fits(oldLocation, size)) {
        location = arena.alloc(size);
        copyBytes(arena.bufferOf(oldLocation), arena.offsetOf(oldLocation), arena.bufferOf(location), arena.offsetOf(location), nameLength);
        arena.free(oldLocation);
        rows.set(node, recordField, location);
      }
      rows.set(node, dataLengthField, dataLength);
      putInt32(stat, dataLengthAt, bytesOfData);
      copyBytes(stat, 0, arena.bufferOf(location), this.#statAt(node), statBytes);
    }
    const record = arena.bufferOf(location);
    const at = arena.offsetOf(location) + nameLength;
    putInt32(record, at, dataLength);
    if (bytesOfData > 0) copyBytes(data!, 0, record, at + 4, bytesOfData);
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

  /** CRC of the path, given as bytes [0, pathEnd), and the data; the caller adds the stat. */
  #pathAndDataCrc(node: NodeId, path: Buffer, pathEnd: number): number {
    const crc = crc32(path, 0, pathEnd);
    const dataLength = this.#rows.get(node, dataLengthField);
    this.digestedBytes += pathEnd + dataLength;
    if (dataLength <= 0) return crc;
    const start = this.#dataAt(node) + 4;
    return crc32(this.#recordOf(node), start, start + dataLength, crc);
  }

  /** Updates a znode's share in the tree digest. Its path is `#path` up to `pathEnd`. */
  #updateDigest(node: NodeId, pathEnd: number): void {
    if (!this.#digestEnabled || (this.#rows.get(node, flagsField) & noDigestFlag) !== 0) return;
    const stat = this.#stat;
    const bytes = this.#recordOf(node);
    const at = this.#statAt(node);
    copyBytes(bytes, at + czxidAt, stat, 0, 16);
    copyBytes(bytes, at + pzxidAt, stat, 16, 8);
    copyBytes(bytes, at + ctimeAt, stat, 24, 20);
    putInt32(stat, 44, this.#rows.get(node, cversionField));
    copyBytes(bytes, at + aversionAt, stat, 48, 4);
    putInt32(stat, 52, this.ownerHighOf(node));
    putInt32(stat, 56, this.ownerLowOf(node));
    const digest = crc32(stat, 0, digestedStatBytes, this.#pathAndDataCrc(node, this.#path, pathEnd));
    this.#addToDigest((digest >>> 0) - this.digestOf(node));
    this.#rows.set(node, digestField, digest);
  }

  #removeDigest(node: NodeId): void {
    this.#addToDigest(-this.digestOf(node));
    this.#rows.set(node, digestField, 0);
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
    return this.#rows.get(node, nextOfOwnerField);
  }

  /** Whether this znode exists and is an ephemeral of this session. */
  isEphemeralOf(node: NodeId, ownerHigh: number, ownerLow: number): boolean {
    return this.#kindOf(node) === ephemeral && this.ownerHighOf(node) === ownerHigh && this.ownerLowOf(node) === ownerLow;
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
      if (this.#rows.get(node, childCountField) === 0) visit(node);
    });
  }

  // ---- quotas

  /** True if any path has limits. While it is false, no verdicts are needed. */
  get hasQuotas(): boolean {
    return this.#quotas.hasQuotas;
  }

  /**
   * Whether a change of this many bytes and znodes at this path would exceed the nearest quota
   * upwards; undefined if not. Usage is that of the present tree, without changes not yet applied,
   * as in ZooKeeper.
   */
  checkQuota(path: string, bytesDelta: number, countDelta: number): QuotaViolation | undefined {
    return this.#quotas.hasQuotas ? this.#quotas.check(path, bytesDelta, countDelta) : undefined;
  }

  /** The sums of all quotas of each namespace. The tree must not change meanwhile. */
  quotaTotals(): Iterable<QuotaTotals> {
    return this.#quotas.totals();
  }

  #isBelowQuotaRoot(node: NodeId, path: string): boolean {
    return (this.#rows.get(node, flagsField) & noDigestFlag) !== 0 && path.startsWith(quotaRoot);
  }

  #quotaCreated(path: string, node: NodeId, data: Uint8Array | null): void {
    const limits = this.#quotas.ofLimitsPath(path);
    if (limits !== undefined) this.#quotas.setLimits(limits, textOf(data));
    const stats = this.#quotas.ofStatsPath(path);
    if (stats === undefined) {
      this.#addUsage(path, data === null ? 0 : data.length, 1);
      return;
    }
    this.#quotas.setStatsNode(stats, node);
    this.#recount = new Recount(stats, this.find(stats.path), path, data === null ? 0 : data.length);
  }

  #quotaRemoved(path: string, dataLength: number): void {
    const limits = this.#quotas.ofLimitsPath(path);
    if (limits !== undefined) this.#quotas.clearLimits(limits);
    const stats = this.#quotas.ofStatsPath(path);
    if (stats !== undefined) this.#quotas.setStatsNode(stats, 0);
    this.#addUsage(path, -dataLength, -1);
  }

  #quotaDataSet(path: string, data: Uint8Array | null, lengthBefore: number): void {
    const limits = this.#quotas.ofLimitsPath(path);
    if (limits !== undefined) this.#quotas.setLimits(limits, textOf(data));
    const stats = this.#quotas.ofStatsPath(path);
    if (stats !== undefined) this.#quotas.setUsageText(stats, textOf(data));
    this.#addUsage(path, (data === null ? 0 : data.length) - lengthBefore, 0);
  }

  /** Updates the usage of the nearest quota. */
  #addUsage(path: string, bytes: number, count: number): void {
    const quota = this.#quotas.nearest(path);
    if (quota === undefined || quota.statsNode === 0) return;
    this.#quotas.addUsage(quota, count, bytes);
    this.#writeUsage(quota);
  }

  /**
   * The usage znode of a quota was created, and the count of its subtree is not complete: call
   * `recountStep`.
   */
  get isRecounting(): boolean {
    return this.#recount !== undefined;
  }

  /**
   * Continues to count the subtree of a quota, including its top, by at most `max` znodes of about
   * 30 ns each. Returns true at the end. Until then the tree must not change.
   */
  recountStep(max: number): boolean {
    const recount = this.#recount;
    if (recount === undefined) return true;
    const { quota, top } = recount;
    let { next } = recount;
    for (let left = max; next !== 0 && left > 0; left--) {
      recount.count++;
      recount.bytes += Math.max(0, this.#rows.get(next, dataLengthField));
      next = this.#after(next, top);
    }
    recount.next = next;
    if (next !== 0) return false;
    this.#recount = undefined;
    this.#quotas.setUsage(quota, recount.count, recount.bytes);
    this.#writeUsage(quota);
    // The usage znode may itself be below a path with a quota.
    this.#addUsage(recount.statsPath, recount.statsBytes, 1);
    return true;
  }

  /** Changes the data only: no version, zxid or digest, since every server counts for itself. */
  #writeUsage(quota: Quota): void {
    this.#beforeChange(quota.statsNode);
    this.#replaceData(quota.statsNode, Buffer.from(this.#quotas.usageText(quota)));
  }

  // ---- counts

  /** As ZooKeeper counts: it has the root under two keys, so an empty tree has 5. */
  get nodeCount(): number {
    return this.#nodes + 1;
  }

  /** Bytes of data plus UTF-16 units of all paths; that of the root is `/`. */
  get approximateDataBytes(): number {
    return this.#dataBytes;
  }

  /** Free memory in the pages of znodes, in bytes. */
  get idleBytes(): number {
    return this.#arena.idleBytes + this.#rows.idleBytes;
  }

  /** Memory of znodes that has been released since the peak, in bytes. */
  get releasedBytes(): number {
    return this.#arena.releasedBytes;
  }

  /** Memory of rows, records and indexes, in bytes. */
  memoryBytes(): number {
    return (
      this.#rows.memoryBytes +
      this.#arena.memoryBytes +
      this.#index.memoryBytes +
      this.#ephemerals.memoryBytes +
      this.#sweepable.memoryBytes +
      this.snapshotPreservedBytes
    );
  }

  // ---- snapshots

  /**
   * Begins a snapshot of this moment. Until `endSnapshot` every znode is written once, as it is
   * now: in its turn, depth first, or, if it is about to change, ahead of its turn. So a snapshot
   * can be written slowly while changes continue, and is still exact for one zxid. Several may be
   * in progress. One that would have to hold more than `preservedBytesMax` of records written ahead is
   * abandoned: `isSnapshotActive` returns false.
   */
  beginSnapshot(preservedBytesMax = Infinity): SnapshotWalk {
    const walk = new SnapshotWalk(this.#root, this.#rows.end, this.acls.pin(), preservedBytesMax);
    this.#walks.push(walk);
    return walk;
  }

  /**
   * Appends further znodes to the writer, about `bytesTarget` bytes. Returns true when all have
   * been written. Parents come first, in the form of snapshots: path, data, ACL id, StatPersisted.
   */
  snapshotSlice(walk: SnapshotWalk, writer: Writer, bytesTarget: number): boolean {
    const start = writer.offset;
    for (let page = walk.takePreserved(); page !== undefined; page = walk.takePreserved()) {
      writer.raw(page.bytes, 0, page.offset);
      if (writer.offset - start >= bytesTarget) return false;
    }
    let visits = Math.ceil(bytesTarget / bytesPerVisit);
    let node = walk.next;
    while (node !== 0 && visits-- > 0 && writer.offset - start < bytesTarget) {
      if (!walk.isWritten(node)) {
        this.#writeNode(node, writer);
        walk.markWritten(node);
      }
      node = this.#after(node, this.#root);
    }
    walk.next = node;
    return node === 0;
  }

  /** Ends a snapshot, finished or not. Does nothing if it has ended. */
  endSnapshot(walk: SnapshotWalk): void {
    const at = this.#walks.indexOf(walk);
    if (at === -1) return;
    this.#walks.splice(at, 1);
    walk.end();
    this.acls.unpin(walk.aclPin);
  }

  /** Whether the snapshot is in progress: neither finished nor abandoned. */
  isSnapshotActive(walk: SnapshotWalk): boolean {
    return this.#walks.includes(walk);
  }

  /** Memory of records written ahead of their turn. */
  get snapshotPreservedBytes(): number {
    let bytes = 0;
    for (const walk of this.#walks) bytes += walk.preservedBytes;
    return bytes;
  }

  /** Must be called before a change of anything that a snapshot contains about a znode. */
  #beforeChange(node: NodeId): void {
    if (this.#walks.length > 0) this.#preserve(node);
  }

  #preserve(node: NodeId): void {
    let isTooMuch = false;
    for (const walk of this.#walks) {
      if (walk.isWritten(node)) continue;
      this.#preserveFor(walk, node);
      isTooMuch ||= walk.exceedsPreservedMax;
    }
    if (isTooMuch) for (const walk of this.#walks.filter(({ exceedsPreservedMax }) => exceedsPreservedMax)) this.endSnapshot(walk);
  }

  #preserveFor(walk: SnapshotWalk, node: NodeId): void {
    // A reader of the file expects parents before children. The parents of a written znode are
    // written, so the climb ends there.
    const chain: NodeId[] = [];
    for (let at = node; at !== 0 && !walk.isWritten(at); at = this.#rows.get(at, parentField)) chain.push(at);
    for (let i = chain.length - 1; i >= 0; i--) {
      const page = walk.preserveWriter();
      this.#writeNode(chain[i]!, page);
      walk.recordPreserved(page);
      walk.markWritten(chain[i]!);
    }
  }

  #writeNode(node: NodeId, writer: Writer): void {
    const rows = this.#rows;
    const record = this.#recordOf(node);
    const dataAt = this.#dataAt(node);
    const stat = this.#statAt(node);
    const pathLength = this.#pathLength(node);
    writer.reserve(4 + pathLength + (stat - dataAt) + 8 + persistedStatBytes);
    writer.int32(pathLength);
    this.#putPath(node, writer.bytes, writer.offset + pathLength);
    writer.offset += pathLength;
    writer.raw(record, dataAt, stat);
    const acl = rows.get(node, aclField);
    writer.int64Halves(acl >> 31, acl);
    writer.raw(record, stat, stat + visibleCversionAt);
    writer.int32(rows.get(node, cversionField));
    writer.raw(record, stat + aversionAt, stat + visibleOwnerAt);
    writer.int64Halves(this.ownerHighOf(node), this.ownerLowOf(node));
    writer.raw(record, stat + pzxidAt, stat + statBytes);
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
    const end = this.#copyPath(bytes, pathStart, pathEnd);
    const path = this.#path;
    const parentEnd = lastSlash(path, end);
    let parent = 0;
    let hash = 0;
    if (end === 0) {
      if (this.#root !== 0) return 'only one root';
    } else {
      if (this.#root === 0) return 'the root before all other znodes';
      parent = parentEnd === -1 ? 0 : this.lookup(path, 0, parentEnd);
      if (parent === 0) return 'a znode after its parent';
      if (parentEnd === end - 1) return 'a znode with a name';
      hash = this.#hash.of(path, 0, end);
      if (this.#locate(path, 0, end, hash) !== 0) return 'each znode only once';
    }
    const ownerHigh = int32At(bytes, statStart + 44);
    const ownerLow = int32At(bytes, statStart + 48);
    if (this.#maybeKindOfOwner(ownerHigh, ownerLow) === undefined) {
      const owner = formatSessionId(sessionIdOf(ownerHigh, ownerLow));
      return `an ephemeralOwner that is valid with extended types enabled, not ${owner}`;
    }
    const node = this.#addNode(parent, parentEnd + 1, end, hash, bytes, dataStart, dataLength, acl, ownerHigh, ownerLow);
    const record = this.#recordOf(node);
    const stat = this.#statAt(node);
    copyBytes(bytes, statStart, record, stat, visibleCversionAt);
    this.#rows.set(node, cversionField, int32At(bytes, statStart + 36));
    copyBytes(bytes, statStart + 40, record, stat + aversionAt, 4);
    copyBytes(bytes, statStart + 52, record, stat + pzxidAt, 8);
    this.#updateChildrenStat(node);
    if (parent !== 0) this.#updateChildrenStat(parent);
    this.#updateDigest(node, end);
    this.#dataBytes += end === 0 ? 1 : utf16Length(path, end);
    return undefined;
  }

  /**
   * All znodes have been loaded: counts the quotas, by at most `max` znodes of about 100 ns each.
   * Returns true at the end. Until then the tree must not change.
   */
  finishLoading(max: number): boolean {
    this.#quotaRebuild ??= new QuotaRebuild(this, this.#quotas, (quota) => this.#writeUsage(quota));
    if (!this.#quotaRebuild.step(max)) return false;
    this.#quotaRebuild = undefined;
    return true;
  }

  /**
   * Copies a path into `#path` as valid UTF-8, with malformed bytes as U+FFFD, as Java decodes
   * them.
   */
  #copyPath(bytes: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) if (bytes[at]! >= 0x80) return this.#encode(bytes.toString('utf8', start, end));
    this.#reservePath(end - start);
    copyBytes(bytes, start, this.#path, 0, end - start);
    return end - start;
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
    const end = this.#encode(path);
    const parentEnd = lastSlash(this.#path, end);
    const parent = parentEnd === -1 ? 0 : this.lookup(this.#path, 0, parentEnd);
    const node = this.#addNode(parent, parentEnd + 1, end, this.#hash.of(this.#path, 0, end), noBytes, 0, 0, acl, 0, 0);
    putInt32(this.#recordOf(node), this.#statAt(node) + aversionAt, aversion);
    if (parent !== 0) this.#updateChildrenStat(parent);
    this.#updateDigest(node, end);
    this.#dataBytes += path === '' ? 1 : path.length;
  }
}

/** The progress of counting a quota's usage. */
class Recount {
  readonly quota: Quota;
  readonly top: NodeId;
  /** The usage znode that caused it. */
  readonly statsPath: string;
  readonly statsBytes: number;
  next: NodeId;
  count = 0;
  bytes = 0;

  constructor(quota: Quota, top: NodeId, statsPath: string, statsBytes: number) {
    this.quota = quota;
    this.top = this.next = top;
    this.statsPath = statsPath;
    this.statsBytes = statsBytes;
  }
}

/** Whether one internal cversion is later than another, on a circle of 2^32. */
function isLater(a: number, b: number): boolean {
  return ((a - b) | 0) > 0;
}

/** Offset of the last slash of bytes [0, end), or -1. */
function lastSlash(bytes: Buffer, end: number): number {
  let at = end - 1;
  while (at >= 0 && bytes[at] !== slash) at--;
  return at;
}

const noDigestPrefixBytes = Buffer.from(noDigestPrefix);

function hasNoDigest(path: Buffer, end: number): boolean {
  if (end < noDigestPrefixBytes.length) return false;
  for (let i = 0; i < noDigestPrefixBytes.length; i++) if (path[i] !== noDigestPrefixBytes[i]) return false;
  return true;
}

/** Length in UTF-16 units of UTF-8 bytes [0, end). */
function utf16Length(bytes: Buffer, end: number): number {
  let length = 0;
  for (let i = 0; i < end; i++) {
    const byte = bytes[i]!;
    // One for every first byte, and one more for a character of four bytes, which has two units.
    if ((byte & 0xc0) !== 0x80) length += byte >= 0xf0 ? 2 : 1;
  }
  return length;
}
