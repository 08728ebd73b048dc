/**
 * Finds znodes by path.
 *
 * A path is looked up by the hash of its UTF-8 bytes, and verified by comparing names upwards from
 * its end; nothing is decoded, and no path is stored as a whole. One buffer holds the path at hand:
 * a change encodes its path once, and finds the parent, the hash and the digest from these bytes.
 */
import { copyBytes } from './bytes.ts';
import { nameLengthField, type NodeId, parentField, recordField } from './node-store.ts';
import { PathHash } from './path-hash.ts';
import { PathIndex } from './path-index.ts';
import { ZnodeFields } from './znode-fields.ts';

const slash = 0x2f;

export abstract class ZnodePaths extends ZnodeFields {
  protected readonly index = new PathIndex();
  protected readonly hash: PathHash;
  /** The current path in UTF-8, from byte 0 on. */
  protected pathBytes = Buffer.allocUnsafeSlow(1024);
  /**
   * The znode found last, and the very string of its path: a txn is applied, reported and answered
   * with one path. 0 for none.
   */
  #cachedNode: NodeId = 0;
  #cachedPath = '';

  constructor(hashSeed: number) {
    super();
    this.hash = new PathHash(hashSeed);
  }

  /**
   * Finds a znode by the UTF-8 bytes of its path. The empty path and `/` both name the root.
   * Malformed UTF-8 names no znode.
   */
  lookup(path: Buffer, start: number, end: number): NodeId {
    if (end - start <= 1 && (end === start || path[start] === slash)) return this.root;
    return this.locate(path, start, end, this.hash.of(path, start, end));
  }

  find(path: string): NodeId {
    if (this.#cachedNode !== 0 && path === this.#cachedPath) return this.#cachedNode;
    return this.lookup(this.pathBytes, 0, this.encode(path));
  }

  pathOf(node: NodeId): string {
    if (node === this.root) return '/';
    const length = this.pathLength(node);
    this.reservePath(length);
    this.putPath(node, this.pathBytes, length);
    return this.pathBytes.toString('utf8', 0, length);
  }

  protected locate(path: Buffer, start: number, end: number, hash: number): NodeId {
    const index = this.index;
    let node = index.first(hash);
    while (node !== 0 && !this.#isAt(node, path, start, end)) node = index.next();
    return node;
  }

  /** Whether this is the znode of that path: names are compared from the end upwards. */
  #isAt(candidate: NodeId, path: Buffer, start: number, end: number): boolean {
    const rows = this.rows;
    const arena = this.arena;
    let node = candidate;
    let at = end;
    while (node !== this.root) {
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

  protected reservePath(bytes: number): void {
    if (bytes > this.pathBytes.length) this.pathBytes = Buffer.allocUnsafeSlow(Math.max(bytes, this.pathBytes.length * 2));
  }

  /** Writes the path's UTF-8 into `pathBytes` and returns its length. */
  protected encode(path: string): number {
    const length = path.length;
    this.reservePath(length * 3);
    const bytes = this.pathBytes;
    for (let i = 0; i < length; i++) {
      const unit = path.charCodeAt(i);
      if (unit >= 0x80) return bytes.write(path, 0, 'utf8');
      bytes[i] = unit;
    }
    return length;
  }

  /**
   * Copies a path into `pathBytes` as valid UTF-8, with malformed bytes as U+FFFD, as Java decodes
   * them.
   */
  protected copyPath(bytes: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) if (bytes[at]! >= 0x80) return this.encode(bytes.toString('utf8', start, end));
    this.reservePath(end - start);
    copyBytes(bytes, start, this.pathBytes, 0, end - start);
    return end - start;
  }

  protected cachePath(node: NodeId, path: string): void {
    this.#cachedNode = node;
    this.#cachedPath = path;
  }

  /** The znode is about to be removed. */
  protected uncachePath(node: NodeId): void {
    if (node === this.#cachedNode) this.#cachedNode = 0;
  }
}

/** Offset of the last slash of bytes [0, end), or -1. */
export function lastSlash(bytes: Buffer, end: number): number {
  let at = end - 1;
  while (at >= 0 && bytes[at] !== slash) at--;
  return at;
}

/** Length in UTF-16 units of UTF-8 bytes [0, end). */
export function utf16Length(bytes: Buffer, end: number): number {
  let length = 0;
  for (let i = 0; i < end; i++) {
    const byte = bytes[i]!;
    // One for every first byte, and one more for a character of four bytes, which has two units.
    if ((byte & 0xc0) !== 0x80) length += byte >= 0xf0 ? 2 : 1;
  }
  return length;
}
