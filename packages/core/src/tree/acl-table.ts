/**
 * The access control lists of the tree, each stored once, in wire form outside of the JavaScript
 * heap.
 *
 * Thousands of znodes share a few lists, so a znode holds a small number and this table holds the
 * list, as sent in replies and written to snapshots. References are counted; an unused list is
 * removed. As objects, a list takes eight times its bytes, and a client can create any number; so
 * only some short ones are kept decoded, since nearly every request checks one. A long one is
 * checked through its index.
 *
 * A snapshot of some versions of ZooKeeper can refer to a list that it does not contain
 * (ZOOKEEPER-3306, ZOOKEEPER-4846). Such a list is *missing*: it has an id like any other, grants
 * nothing, and disappears once the log gives the znode another. It must not be mistaken for an
 * empty list, which ZooKeeper takes as "open to the world".
 */
import { type Acl, openAcl, Perms, readAclList, Reader, writeAclList, Writer } from '@tskeeper/protocol';
import { LinearHash } from '../tables/linear-hash.ts';
import { PagedInts } from '../tables/paged-numbers.ts';
import { AclIndex, type AclSchemeKeys } from './acl-index.ts';
import { ByteArena } from './byte-arena.ts';
import { PathHash } from './path-hash.ts';

/**
 * Positive, or `openAclId`. An id is reused after its list is removed; it has no meaning outside
 * this table, and snapshots of other servers have their own numbers.
 */
export type AclId = number;

/**
 * The list of the znodes created at start: world:anyone with all permissions. It has no entry in
 * the table and no reference count; an equal list of a client has another id.
 */
export const openAclId: AclId = -1;

/** The content of a missing list. */
const grantsNothing: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, id: Object.freeze({ scheme: 'world', id: 'anyone' }) })]);

const colonByte = 0x3a;
/** Replaces a hash and the colon before it. */
const hiddenHash = Buffer.from(':x');

/** Maximum number of decoded lists: more than most trees have. */
const decodedMax = 4096;
/** See `#shortEntriesMax`. */
const shortBytesMax = 2048;

export class AclTable {
  readonly #arena: ByteArena;
  /**
   * A list with more entries or bytes than this is long: checks do not decode it, and use an index.
   */
  readonly #shortEntriesMax: number;
  readonly #hash: PathHash;
  /**
   * By id: offset, length and hash of its bytes, and its number of references, plus one while the
   * list exists.
   */
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
  /** Short lists that have been checked, in order of decoding. */
  readonly #decoded = new Map<AclId, readonly Acl[]>();
  readonly #indexes = new Map<AclId, AclIndex>();
  #indexesMade = 0;
  /** Total so far. The difference measures the cost of indexes. */
  entriesIndexed = 0;
  /**
   * The id of world:anyone with all permissions, which nearly every create requests; 0 while it is
   * unused.
   */
  #openId: AclId = 0;
  readonly #missing = new Set<AclId>();
  /**
   * Numbers of the snapshots being written, in order. Lists that one of them has recorded are kept
   * until it ends.
   */
  readonly #pins: number[] = [];
  #lastPin = 0;
  /**
   * Lists that lost their last reference during a snapshot, each with the number of the last
   * snapshot that had begun by then, in ascending order. They are removed when all snapshots up to
   * that one have ended; a later snapshot does not record them.
   */
  readonly #unusedWhilePinned = new Map<AclId, number>();
  /** Lists added since the last snapshot began: no snapshot needs them. */
  readonly #addedSinceLastPin = new Set<AclId>();

  /** @param arena where the bytes are stored. */
  constructor(arena = new ByteArena(), hashSeed = 0, shortEntriesMax = 16) {
    this.#shortEntriesMax = shortEntriesMax;
    this.#arena = arena;
    this.#hash = new PathHash(hashSeed);
  }

  /** Returns the id of this list, with one reference for the caller. Equal lists share an id. */
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

  /** Whether the bytes of a list equal those in the scratch writer. */
  #isWritten(id: AclId): boolean {
    const { bytes, offset } = this.#scratch;
    if (this.#length.get(id) !== offset) return false;
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    return this.#arena.bufferOf(location).compare(bytes, 0, offset, start, start + offset) === 0;
  }

  /**
   * Creates an id for a list that a snapshot refers to but does not contain, with one reference for
   * the caller.
   */
  addMissing(): AclId {
    this.#scratch.clear();
    writeAclList(this.#scratch, grantsNothing);
    const id = this.#add(0);
    this.#missing.add(id);
    return id;
  }

  /** Stores the content of the scratch writer, with one reference. */
  #add(hash: number): AclId {
    const { bytes, offset } = this.#scratch;
    const id = this.#freeIds.pop() ?? this.#end++;
    for (const ints of [this.#location, this.#length, this.#hashes, this.#references]) ints.ensure(id);
    const location = this.#arena.alloc(offset);
    bytes.copy(this.#arena.bufferOf(location), this.#arena.offsetOf(location), 0, offset);
    this.#location.set(id, location);
    this.#length.set(id, offset);
    this.#hashes.set(id, hash);
    this.#references.set(id, 2);
    if (this.#pins.length > 0) this.#addedSinceLastPin.add(id);
    return id;
  }

  retain(id: AclId): void {
    if (id !== openAclId) this.#references.set(id, this.#userCountOf(id) + 2);
  }

  release(id: AclId): void {
    if (id === openAclId) return;
    const users = this.#userCountOf(id);
    if (users === 0) throw new Error(`ACL ${id} was released more often than retained`);
    this.#references.set(id, users);
    if (users > 1) return;
    if (this.#pins.length === 0 || this.#addedSinceLastPin.has(id)) {
      this.#drop(id);
      return;
    }
    // Insert at the end, even if it was in the map before and was referenced again meanwhile.
    this.#unusedWhilePinned.delete(id);
    this.#unusedWhilePinned.set(id, this.#lastPin);
  }

  #drop(id: AclId): void {
    this.#references.set(id, 0);
    this.#arena.free(this.#location.get(id));
    this.#freeIds.push(id);
    this.#addedSinceLastPin.delete(id);
    this.#decoded.delete(id);
    this.#indexes.delete(id);
    if (id === this.#openId) this.#openId = 0;
    if (this.#missing.delete(id)) return;
    this.#byBytes.delete(id, this.#hashes.get(id));
    this.#size--;
  }

  #userCountOf(id: AclId): number {
    const users = this.#references.peek(id) - 1;
    if (users < 0) throw new Error(`there is no ACL ${id}`);
    return users;
  }

  /** Whether it grants all permissions to every client. */
  isOpen(id: AclId): boolean {
    return id === openAclId || id === this.#openId;
  }

  /** The decoded list, frozen. */
  get(id: AclId): readonly Acl[] {
    return id === openAclId ? openAcl : (this.shortAcl(id) ?? this.#decode(id));
  }

  /** The decoded list for a check; undefined if it is long, and `index` must be used. */
  shortAcl(id: AclId): readonly Acl[] | undefined {
    const decoded = this.#decoded.get(id);
    if (decoded !== undefined) return decoded;
    if (id === openAclId) return openAcl;
    this.#userCountOf(id);
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
    this.#userCountOf(id);
    const acl = readAclList(this.#readerOf(id));
    for (const entry of acl) Object.freeze(Object.freeze(entry).id);
    return Object.freeze(acl);
  }

  #readerOf(id: AclId): Reader {
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    return new Reader(this.#arena.bufferOf(location), start, start + this.#length.get(id));
  }

  /** The index of a long list, created when first used. `schemes` must be the same each time. */
  index(id: AclId, schemes: AclSchemeKeys): AclIndex {
    const known = this.#indexes.get(id);
    if (known !== undefined) return known;
    this.#userCountOf(id);
    const { bytes, offset, limit } = this.#readerOf(id);
    const index = new AclIndex(++this.#indexesMade, bytes, offset, limit, this.#hash, schemes);
    this.#indexes.set(id, index);
    this.entriesIndexed += index.entryCount;
    return index;
  }

  /**
   * True if the list was missing in the snapshot; the znode must not be served to ordinary clients.
   */
  isMissing(id: AclId): boolean {
    return this.#missing.size > 0 && this.#missing.has(id);
  }

  /** Number of missing lists still in use. */
  get missingCount(): number {
    return this.#missing.size;
  }

  /** Writes vector<ACL>. */
  write(id: AclId, writer: Writer): void {
    if (id === openAclId) {
      writeAclList(writer, openAcl);
      return;
    }
    this.#userCountOf(id);
    const location = this.#location.get(id);
    const start = this.#arena.offsetOf(location);
    writer.raw(this.#arena.bufferOf(location), start, start + this.#length.get(id));
  }

  /**
   * Writes vector<ACL> for clients that may not change it: a digest shows its user, not the hash of
   * the password.
   */
  writeWithoutHashes(id: AclId, writer: Writer): void {
    if (id === openAclId) {
      writeAclList(writer, openAcl);
      return;
    }
    this.#userCountOf(id);
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
      writer.int32(colon - reader.rangeStart + hiddenHash.length);
      writer.raw(bytes, reader.rangeStart, colon);
      writer.raw(hiddenHash);
    }
  }

  /** A snapshot begins: every list in use is kept until `unpin` with the returned number. */
  pin(): number {
    this.#pins.push(++this.#lastPin);
    this.#addedSinceLastPin.clear();
    return this.#lastPin;
  }

  unpin(pin: number): void {
    this.#pins.splice(this.#pins.indexOf(pin), 1);
    if (this.#pins.length === 0) this.#addedSinceLastPin.clear();
    const oldest = this.#pins[0] ?? Infinity;
    for (const [id, since] of this.#unusedWhilePinned) {
      if (since >= oldest) return;
      this.#unusedWhilePinned.delete(id);
      // It may be referenced again.
      if (this.#references.get(id) === 1) this.#drop(id);
    }
  }

  /** Number of lists in the table, without the open one and missing ones. */
  get size(): number {
    return this.#size;
  }

  /** The id of every list in use, ascending. */
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
