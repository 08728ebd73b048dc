/**
 * The access control lists of the tree, each kept once, in wire form outside of the JavaScript heap.
 *
 * Thousands of znodes share a handful of lists, so a znode holds a small number and this table holds the list, as it goes to replies and
 * snapshots. References are counted; a list nobody uses goes. As objects a list takes eight times its bytes, and a client can make as many as
 * it likes; so only some short ones are kept decoded, since they are asked at nearly every request. A long one is asked through its index.
 *
 * A snapshot written by some versions of ZooKeeper can name a list it does not contain (ZOOKEEPER-3306, ZOOKEEPER-4846). Such a list is
 * *missing*: it is held by an id like any other, grants nothing to anybody, and disappears as soon as the log gives the znode another.
 * It must not be mistaken for an empty list, which ZooKeeper reads as "open to the world".
 */
import { type Acl, openAcl, Perms, readAclList, Reader, writeAclList, Writer } from '@tskeeper/protocol';
import { LinearHash } from '../tables/linear-hash.ts';
import { PagedInts } from '../tables/paged-numbers.ts';
import { AclIndex, type AclSchemeKeys } from './acl-index.ts';
import { ByteArena } from './byte-arena.ts';
import { PathHash } from './path-hash.ts';

/**
 * Positive, or `openAclId`. An id is used again once its list has gone; it means nothing outside this table, and snapshots of other
 * servers number their lists their own way.
 */
export type AclId = number;

/** The list of the znodes made at start: world:anyone may do everything. It has no entry, is not counted, and a client's equal list is not it. */
export const openAclId: AclId = -1;

/** What a missing list reads as. */
const grantsNothing: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, id: Object.freeze({ scheme: 'world', id: 'anyone' }) })]);

const colonByte = 0x3a;
/** In the place of a hash and the colon before it. */
const hidden = Buffer.from(':x');

/** Lists kept decoded: more than most trees have. */
const decodedMax = 4096;
/** See `#shortEntriesMax`. */
const shortBytesMax = 2048;

export class AclTable {
  readonly #arena: ByteArena;
  /** A list with more entries or bytes than this is long: it is not decoded in order to be asked, and has an index. */
  readonly #shortEntriesMax: number;
  readonly #hash: PathHash;
  /** By id: where its bytes are, how many, their hash, and how many users it has, one more than that while the list is there. */
  readonly #location = new PagedInts();
  readonly #length = new PagedInts();
  readonly #hashes = new PagedInts();
  readonly #references = new PagedInts();
  /** The first id never used so far; 0 is never used. */
  #end: AclId = 1;
  readonly #freeIds: AclId[] = [];
  readonly #byBytes = new LinearHash((id) => this.#hashes.get(id));
  #size = 0;
  readonly #scratch = new Writer(256);
  /** Short lists that have been asked, the one decoded first coming first. */
  readonly #decoded = new Map<AclId, readonly Acl[]>();
  readonly #indexes = new Map<AclId, AclIndex>();
  #indexesMade = 0;
  /** So far: by how much it grows tells what indexes have cost. */
  entriesIndexed = 0;
  /** The id of world:anyone with all permissions, which nearly every create names; 0 when nobody uses it. */
  #openId: AclId = 0;
  readonly #missing = new Set<AclId>();
  /** Numbers of the snapshots that are being written, in order. What one of them has listed stays as it is until it is done. */
  readonly #holds: number[] = [];
  #lastHold = 0;
  /**
   * Lists that lost their last user while a snapshot was being written, each with the number of the last that had begun by then, in the order of
   * these. They go when all that began before have ended; a snapshot that begins later does not list them.
   */
  readonly #unused = new Map<AclId, number>();
  /** Lists that came after the last snapshot began: none needs them. */
  readonly #young = new Set<AclId>();

  /** @param arena where the bytes go. */
  constructor(arena = new ByteArena(), hashSeed = 0, shortEntriesMax = 16) {
    this.#shortEntriesMax = shortEntriesMax;
    this.#arena = arena;
    this.#hash = new PathHash(hashSeed);
  }

  /** Returns the id of this list, counting one reference for the caller. Equal lists share an id. */
  intern(acl: readonly Acl[]): AclId {
    const open = isOpen(acl);
    if (open && this.#openId !== 0) {
      this.retain(this.#openId);
      return this.#openId;
    }
    const scratch = this.#scratch;
    scratch.clear();
    writeAclList(scratch, acl);
    const hash = this.#hash.of(scratch.bytes, 0, scratch.offset);
    for (let id = this.#byBytes.first(hash); id !== 0; id = this.#byBytes.next(id)) {
      if (this.#hashes.get(id) !== hash || !this.#isWritten(id)) continue;
      this.retain(id);
      return id;
    }
    const id = this.#add(hash);
    this.#byBytes.insert(id, hash);
    this.#size++;
    if (open) this.#openId = id;
    return id;
  }

  /** Whether the bytes of a list are those that have been written. */
  #isWritten(id: AclId): boolean {
    const { bytes, offset } = this.#scratch;
    if (this.#length.get(id) !== offset) return false;
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    return this.#arena.bufferOf(location).compare(bytes, 0, offset, start, start + offset) === 0;
  }

  /** An id for a list that a snapshot names but does not contain, counting one reference for the caller. */
  addMissing(): AclId {
    this.#scratch.clear();
    writeAclList(this.#scratch, grantsNothing);
    const id = this.#add(0);
    this.#missing.add(id);
    return id;
  }

  /** Keeps what has been written, with one reference. */
  #add(hash: number): AclId {
    const { bytes, offset } = this.#scratch;
    const id = this.#freeIds.pop() ?? this.#end++;
    for (const ints of [this.#location, this.#length, this.#hashes, this.#references]) ints.reach(id);
    const location = this.#arena.alloc(offset);
    bytes.copy(this.#arena.bufferOf(location), this.#arena.offsetOf(location), 0, offset);
    this.#location.set(id, location);
    this.#length.set(id, offset);
    this.#hashes.set(id, hash);
    this.#references.set(id, 2);
    if (this.#holds.length > 0) this.#young.add(id);
    return id;
  }

  retain(id: AclId): void {
    if (id !== openAclId) this.#references.set(id, this.#usersOf(id) + 2);
  }

  release(id: AclId): void {
    if (id === openAclId) return;
    const users = this.#usersOf(id);
    if (users === 0) throw new Error(`ACL ${id} was released more often than it was taken`);
    this.#references.set(id, users);
    if (users > 1) return;
    if (this.#holds.length === 0 || this.#young.has(id)) {
      this.#drop(id);
      return;
    }
    // Behind all others, though it may have been in there, and found users again meanwhile.
    this.#unused.delete(id);
    this.#unused.set(id, this.#lastHold);
  }

  #drop(id: AclId): void {
    this.#references.set(id, 0);
    this.#arena.free(this.#location.get(id));
    this.#freeIds.push(id);
    this.#young.delete(id);
    this.#decoded.delete(id);
    this.#indexes.delete(id);
    if (id === this.#openId) this.#openId = 0;
    if (this.#missing.delete(id)) return;
    this.#byBytes.delete(id, this.#hashes.get(id));
    this.#size--;
  }

  #usersOf(id: AclId): number {
    const users = this.#references.peek(id) - 1;
    if (users < 0) throw new Error(`there is no ACL ${id}`);
    return users;
  }

  /** Everyone may do everything. */
  isOpen(id: AclId): boolean {
    return id === openAclId || id === this.#openId;
  }

  /** The decoded list, frozen. */
  get(id: AclId): readonly Acl[] {
    return id === openAclId ? openAcl : (this.short(id) ?? this.#decode(id));
  }

  /** The decoded list, in order to be asked; undefined if it is long, and `index` is to be asked. */
  short(id: AclId): readonly Acl[] | undefined {
    const decoded = this.#decoded.get(id);
    if (decoded !== undefined) return decoded;
    if (id === openAclId) return openAcl;
    this.#usersOf(id);
    const bytes = this.#length.get(id);
    if (bytes > shortBytesMax || this.#readerOf(id).int32() > this.#shortEntriesMax) return undefined;
    return this.#keepDecoded(id, this.#decode(id));
  }

  #keepDecoded(id: AclId, acl: readonly Acl[]): readonly Acl[] {
    if (this.#decoded.size === decodedMax) {
      for (const oldest of this.#decoded.keys()) {
        this.#decoded.delete(oldest);
        break;
      }
    }
    this.#decoded.set(id, acl);
    return acl;
  }

  #decode(id: AclId): readonly Acl[] {
    this.#usersOf(id);
    const acl = readAclList(this.#readerOf(id));
    for (const entry of acl) Object.freeze(Object.freeze(entry).id);
    return Object.freeze(acl);
  }

  #readerOf(id: AclId): Reader {
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    return new Reader(this.#arena.bufferOf(location), start, start + this.#length.get(id));
  }

  /** That of a long list, made when it is asked for first. `schemes` must be the same each time. */
  index(id: AclId, schemes: AclSchemeKeys): AclIndex {
    const known = this.#indexes.get(id);
    if (known !== undefined) return known;
    this.#usersOf(id);
    const { bytes, offset, limit } = this.#readerOf(id);
    const index = new AclIndex(++this.#indexesMade, bytes, offset, limit, this.#hash, schemes);
    this.#indexes.set(id, index);
    this.entriesIndexed += index.entries;
    return index;
  }

  /** True when the list was lost before it reached us; the znode must not be served to ordinary clients. */
  isMissing(id: AclId): boolean {
    return this.#missing.size > 0 && this.#missing.has(id);
  }

  /** Missing lists still in use. */
  get missingCount(): number {
    return this.#missing.size;
  }

  /** Writes vector<ACL>. */
  write(id: AclId, writer: Writer): void {
    if (id === openAclId) {
      writeAclList(writer, openAcl);
      return;
    }
    this.#usersOf(id);
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    writer.raw(this.#arena.bufferOf(location), start, start + this.#length.get(id));
  }

  /** Writes vector<ACL> as those may see it who may not change it: a digest shows its user, not the hash of the password. */
  writeWithoutHashes(id: AclId, writer: Writer): void {
    if (id === openAclId) {
      writeAclList(writer, openAcl);
      return;
    }
    this.#usersOf(id);
    const reader = this.#readerOf(id);
    const { bytes } = reader;
    const count = reader.int32();
    writer.int32(count);
    for (let i = 0; i < count; i++) {
      const start = reader.offset;
      reader.int32();
      const isDigest = reader.range() && bytes.toString('latin1', reader.rangeStart, reader.rangeEnd) === 'digest';
      const idAt = reader.offset;
      const colon = reader.range() && isDigest ? bytes.indexOf(colonByte, reader.rangeStart) : -1;
      if (colon === -1 || colon >= reader.rangeEnd) {
        writer.raw(bytes, start, reader.offset);
        continue;
      }
      writer.raw(bytes, start, idAt);
      writer.int32(colon - reader.rangeStart + hidden.length);
      writer.raw(bytes, reader.rangeStart, colon);
      writer.raw(hidden);
    }
  }

  /** A snapshot begins: every list that is used now stays until `letGo` of the number returned. */
  hold(): number {
    this.#holds.push(++this.#lastHold);
    this.#young.clear();
    return this.#lastHold;
  }

  letGo(hold: number): void {
    this.#holds.splice(this.#holds.indexOf(hold), 1);
    if (this.#holds.length === 0) this.#young.clear();
    const oldest = this.#holds[0] ?? Infinity;
    for (const [id, since] of this.#unused) {
      if (since >= oldest) return;
      this.#unused.delete(id);
      // It may have found users again.
      if (this.#references.get(id) === 1) this.#drop(id);
    }
  }

  /** Lists in the table; the open one and missing ones are not in it. */
  get size(): number {
    return this.#size;
  }

  /** The id of every list that is used, ascending. */
  *ids(): Iterable<AclId> {
    for (let id = 1; id < this.#end; id++) {
      if (this.#references.get(id) > 1 && !this.#missing.has(id)) yield id;
    }
  }
}

function isOpen(acl: readonly Acl[]): boolean {
  if (acl.length !== 1) return false;
  const { perms, id } = acl[0]!;
  return perms === Perms.all && id.id === 'anyone' && id.scheme === 'world';
}
