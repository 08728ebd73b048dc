/**
 * The layout of a znode, and access to its fields by handle.
 *
 * Fields of fixed size are in the row; name, data and Stat are in the record, in wire form (see
 * docs/internals/znode-store.md), so an answer to a read copies bytes and builds no object. A
 * number of the Stat is decoded where it is asked for. `DataTree` extends this class: it finds
 * znodes and changes them, and callers read them through the same object.
 */
import { type Millis, statBytes, type Writer, type Zxid } from '@tskeeper/protocol';
import type { AclId } from './acl-table.ts';
import { ByteArena } from './byte-arena.ts';
import { copyBytes, int32At, int64At, putInt32 } from './bytes.ts';
import { type NamespaceId, namespaceIdEnd } from './namespace-table.ts';
import {
  aclField,
  childCountField,
  cversionField,
  dataLengthField,
  digestField,
  firstChildField,
  flagsField,
  nameLengthField,
  nextSiblingField,
  type NodeId,
  NodeStore,
  ownerHighField,
  ownerLowField,
  parentField,
  previousSiblingField,
  recordField,
} from './node-store.ts';

export type NodeKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

export const persistent = 0;
export const ephemeral = 1;
export const container = 2;
export const ttl = 3;
const kinds: readonly NodeKind[] = ['persistent', 'ephemeral', 'container', 'ttl'];
const kindMask = 3;
export const noDigestFlag = 4;
/** Of a parent: a child follows one with a later czxid; see child-order.ts. */
const unorderedFlag = 8;
/** The number of its namespace, 8 bits. */
export const namespaceShift = 4;
const namespaceMask = namespaceIdEnd - 1;

// Offsets within a Stat on the wire.
export const czxidAt = 0;
export const mzxidAt = 8;
export const ctimeAt = 16;
export const mtimeAt = 24;
export const versionAt = 32;
export const visibleCversionAt = 36;
export const aversionAt = 40;
export const visibleOwnerAt = 44;
export const dataLengthAt = 52;
const childCountAt = 56;
export const pzxidAt = 60;
/** StatPersisted, the form in snapshots: no counts, pzxid last, internal cversion, raw owner. */
const persistedStatBytes = 60;

const slash = 0x2f;

export abstract class ZnodeFields {
  protected readonly rows = new NodeStore();
  protected readonly arena = new ByteArena();
  /** 0 until it has been created. */
  root: NodeId = 0;
  /** Bytes of data plus UTF-16 units of all paths; that of the root is `/`. */
  protected dataBytes = 0;
  /** Scratch memory for one Stat. */
  protected readonly stat = Buffer.alloc(statBytes);

  // ---- links

  /** 0 for the root. */
  parentOf(node: NodeId): NodeId {
    return this.rows.get(node, parentField);
  }

  isRoot(node: NodeId): boolean {
    return node === this.root;
  }

  /** 0 for a znode without children. */
  firstChildOf(node: NodeId): NodeId {
    return this.rows.get(node, firstChildField);
  }

  /** The next child of the same parent, in order of creation; 0 after the last. */
  nextSiblingOf(node: NodeId): NodeId {
    return this.rows.get(node, nextSiblingField);
  }

  /**
   * The znode after this one, depth first, among those below `top`; 0 at the end. Start with `top`
   * itself. The tree must not change between two calls.
   */
  nextBelow(node: NodeId, top: NodeId): NodeId {
    const firstChild = this.rows.get(node, firstChildField);
    return firstChild === 0 ? this.nextAfterSubtree(node, top) : firstChild;
  }

  /** The same, skipping the subtree of this znode. */
  nextAfterSubtree(node: NodeId, top: NodeId): NodeId {
    for (let at = node; at !== top; at = this.rows.get(at, parentField)) {
      const next = this.rows.get(at, nextSiblingField);
      if (next !== 0) return next;
    }
    return 0;
  }

  /** Moves a child directly after another one of the same parent, or to the beginning for 0. */
  moveChildAfter(parent: NodeId, node: NodeId, after: NodeId): void {
    const rows = this.rows;
    if ((after === 0 ? rows.get(parent, firstChildField) : rows.get(after, nextSiblingField)) === node) return;
    this.unlinkChild(parent, node);
    rows.set(parent, childCountField, rows.get(parent, childCountField) + 1);
    const first = rows.get(parent, firstChildField);
    const next = after === 0 ? first : rows.get(after, nextSiblingField);
    // The first member's "previous" is the last member.
    const previous = after === 0 ? rows.get(first, previousSiblingField) : after;
    rows.set(node, nextSiblingField, next);
    rows.set(node, previousSiblingField, previous);
    rows.set(next === 0 ? first : next, previousSiblingField, node);
    if (after === 0) rows.set(parent, firstChildField, node);
    else rows.set(after, nextSiblingField, node);
  }

  isUnordered(parent: NodeId): boolean {
    return (this.rows.get(parent, flagsField) & unorderedFlag) !== 0;
  }

  setUnordered(parent: NodeId, isUnordered: boolean): void {
    const flags = this.rows.get(parent, flagsField);
    this.rows.set(parent, flagsField, isUnordered ? flags | unorderedFlag : flags & ~unorderedFlag);
  }

  /** Compares the bytes of the names of two znodes. */
  compareNames(a: NodeId, b: NodeId): number {
    const location = this.rows.get(b, recordField);
    const start = this.arena.offsetOf(location);
    return this.#compareName(a, this.arena.bufferOf(location), start, start + this.rows.get(b, nameLengthField));
  }

  compareName(node: NodeId, name: Buffer): number {
    return this.#compareName(node, name, 0, name.length);
  }

  #compareName(node: NodeId, bytes: Buffer, start: number, end: number): number {
    const location = this.rows.get(node, recordField);
    const own = this.arena.offsetOf(location);
    return this.arena.bufferOf(location).compare(bytes, start, end, own, own + this.rows.get(node, nameLengthField));
  }

  // ---- properties of a znode

  namespaceOf(node: NodeId): NamespaceId {
    return (this.rows.get(node, flagsField) >>> namespaceShift) & namespaceMask;
  }

  aclOf(node: NodeId): AclId {
    return this.rows.get(node, aclField);
  }

  versionOf(node: NodeId): number {
    return this.#statInt32(node, versionAt);
  }

  /** The internal counter of creates; clients see 2 * this - children. */
  cversionOf(node: NodeId): number {
    return this.rows.get(node, cversionField);
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
    return this.rows.get(node, childCountField);
  }

  /**
   * The high half of ephemeralOwner as stored: a session id, or the marker of a container or a TTL.
   */
  ownerHighOf(node: NodeId): number {
    return this.kindBitsOf(node) === ephemeral ? this.#statInt32(node, visibleOwnerAt) : this.rows.get(node, ownerHighField);
  }

  ownerLowOf(node: NodeId): number {
    return this.kindBitsOf(node) === ephemeral ? this.#statInt32(node, visibleOwnerAt + 4) : this.rows.get(node, ownerLowField);
  }

  kindOf(node: NodeId): NodeKind {
    return kinds[this.kindBitsOf(node)]!;
  }

  /**
   * The TTL of a TTL znode in ms; 0 for others. The low 40 bits in both layouts, since the maximum
   * is 2^40 - 1.
   */
  ttlOf(node: NodeId): Millis {
    if (this.kindBitsOf(node) !== ttl) return 0;
    return (this.rows.get(node, ownerHighField) & 0xff) * 4294967296 + (this.rows.get(node, ownerLowField) >>> 0);
  }

  /** -1 for null. */
  dataLengthOf(node: NodeId): number {
    return this.rows.get(node, dataLengthField);
  }

  /** A copy. */
  dataOf(node: NodeId): Buffer | null {
    const length = this.rows.get(node, dataLengthField);
    if (length === -1) return null;
    const start = this.dataAt(node) + 4;
    return Buffer.from(this.recordOf(node).subarray(start, start + length));
  }

  /** The share of the znode in the tree digest: a uint32, 0 if it is not counted. */
  digestOf(node: NodeId): number {
    return this.rows.get(node, digestField) >>> 0;
  }

  // ---- wire forms

  writeStat(node: NodeId, writer: Writer): void {
    const start = this.statAt(node);
    writer.raw(this.recordOf(node), start, start + statBytes);
  }

  /** Writes the data as a buffer, which may be null. */
  writeData(node: NodeId, writer: Writer): void {
    writer.raw(this.recordOf(node), this.dataAt(node), this.statAt(node));
  }

  /** Writes a GetDataResponse. */
  writeDataAndStat(node: NodeId, writer: Writer): void {
    writer.raw(this.recordOf(node), this.dataAt(node), this.statAt(node) + statBytes);
  }

  /**
   * Writes a vector<ustring>: the names of the children, in order of creation. For znodes with few;
   * see `writeNames`.
   */
  writeChildren(node: NodeId, writer: Writer): void {
    writer.int32(this.rows.get(node, childCountField));
    this.writeNames(this.rows.get(node, firstChildField), writer, Infinity, Infinity);
  }

  /**
   * Writes names of a znode's children, in order of creation, from `child` on: at most `max` of
   * them, and none that begins at `end` or beyond. Returns the child to continue with, 0 at the
   * end. The tree must not change between two calls.
   */
  writeNames(child: NodeId, writer: Writer, max: number, end: number): NodeId {
    const rows = this.rows;
    const arena = this.arena;
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

  /** Writes the name as a ustring. */
  writeName(node: NodeId, writer: Writer): void {
    const location = this.rows.get(node, recordField);
    const start = this.arena.offsetOf(location);
    const length = this.rows.get(node, nameLengthField);
    writer.int32(length);
    writer.raw(this.arena.bufferOf(location), start, start + length);
  }

  /** In bytes. */
  nameLengthOf(node: NodeId): number {
    return this.rows.get(node, nameLengthField);
  }

  /** Writes a znode in the form of snapshots: path, data, ACL id, StatPersisted. */
  writePersisted(node: NodeId, writer: Writer): void {
    const rows = this.rows;
    const record = this.recordOf(node);
    const dataAt = this.dataAt(node);
    const stat = this.statAt(node);
    const pathLength = this.pathLength(node);
    writer.reserve(4 + pathLength + (stat - dataAt) + 8 + persistedStatBytes);
    writer.int32(pathLength);
    this.putPath(node, writer.bytes, writer.offset + pathLength);
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

  // ---- the record

  /** In bytes; 0 for the root, whose path counts as empty. */
  protected pathLength(node: NodeId): number {
    let length = 0;
    for (let at = node; at !== this.root; at = this.rows.get(at, parentField)) length += 1 + this.rows.get(at, nameLengthField);
    return length;
  }

  /** Writes the path of a znode so that it ends before `end`. */
  protected putPath(node: NodeId, into: Buffer, end: number): void {
    const rows = this.rows;
    const arena = this.arena;
    let at = end;
    for (let next = node; next !== this.root; next = rows.get(next, parentField)) {
      const nameLength = rows.get(next, nameLengthField);
      const location = rows.get(next, recordField);
      at -= nameLength;
      copyBytes(arena.bufferOf(location), arena.offsetOf(location), into, at, nameLength);
      into[--at] = slash;
    }
  }

  protected kindBitsOf(node: NodeId): number {
    return this.rows.get(node, flagsField) & kindMask;
  }

  /** The buffer that contains a znode's record; `dataAt` and `statAt` are offsets in it. */
  protected recordOf(node: NodeId): Buffer {
    return this.arena.bufferOf(this.rows.get(node, recordField));
  }

  /** Offset of the data, with their length in front. */
  protected dataAt(node: NodeId): number {
    return this.arena.offsetOf(this.rows.get(node, recordField)) + this.rows.get(node, nameLengthField);
  }

  protected statAt(node: NodeId): number {
    const dataLength = this.rows.get(node, dataLengthField);
    return this.dataAt(node) + 4 + (dataLength > 0 ? dataLength : 0);
  }

  #statInt32(node: NodeId, at: number): number {
    return int32At(this.recordOf(node), this.statAt(node) + at);
  }

  #statInt64(node: NodeId, at: number): number {
    return int64At(this.recordOf(node), this.statAt(node) + at);
  }

  // ---- parts of a change

  /** Updates the visible cversion and the number of children in the Stat. */
  protected updateChildrenStat(node: NodeId): void {
    const children = this.rows.get(node, childCountField);
    const bytes = this.recordOf(node);
    const stat = this.statAt(node);
    putInt32(bytes, stat + visibleCversionAt, this.rows.get(node, cversionField) * 2 - children);
    putInt32(bytes, stat + childCountAt, children);
  }

  protected linkChild(parent: NodeId, node: NodeId): void {
    const rows = this.rows;
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

  protected unlinkChild(parent: NodeId, node: NodeId): void {
    const rows = this.rows;
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
  protected replaceData(node: NodeId, data: Uint8Array | null): void {
    const rows = this.rows;
    const arena = this.arena;
    const oldLength = rows.get(node, dataLengthField);
    const dataLength = data === null ? -1 : data.length;
    const bytesOfData = data === null ? 0 : data.length;
    const nameLength = rows.get(node, nameLengthField);
    const oldLocation = rows.get(node, recordField);
    const size = nameLength + 4 + bytesOfData + statBytes;
    let location = oldLocation;
    if (dataLength !== oldLength) {
      this.dataBytes += bytesOfData - Math.max(0, oldLength);
      const stat = this.stat;
      copyBytes(arena.bufferOf(oldLocation), this.statAt(node), stat, 0, statBytes);
      if (!arena.fits(oldLocation, size)) {
        location = arena.alloc(size);
        copyBytes(arena.bufferOf(oldLocation), arena.offsetOf(oldLocation), arena.bufferOf(location), arena.offsetOf(location), nameLength);
        arena.free(oldLocation);
        rows.set(node, recordField, location);
      }
      rows.set(node, dataLengthField, dataLength);
      putInt32(stat, dataLengthAt, bytesOfData);
      copyBytes(stat, 0, arena.bufferOf(location), this.statAt(node), statBytes);
    }
    const record = arena.bufferOf(location);
    const at = arena.offsetOf(location) + nameLength;
    putInt32(record, at, dataLength);
    if (bytesOfData > 0) copyBytes(data!, 0, record, at + 4, bytesOfData);
  }
}
