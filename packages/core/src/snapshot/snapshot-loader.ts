/**
 * Builds a tree from a snapshot that arrives in pieces, cut anywhere: from a file, or from the stream of a leader that has sent SNAP.
 *
 * Reads what ZooKeeper 3.6 to 3.9 and we ourselves write; the layout is in protocol/snapshot-format.ts. A seal that does not fit, a znode
 * before its parent, or a length that cannot be is a `ProtocolError` that says what was expected at which byte of the (uncompressed) file.
 * Nothing of a refused snapshot can be used: the caller goes on to an older one with a new loader.
 *
 * Counts and lengths are believed as far as they can be true: a session that comes twice, or an item larger than any request could have made it,
 * is refused before anything is kept for it. A few megabytes of gzip can hold a gigabyte of zeros.
 *
 * A stream has no end of its own, since packets follow: it is over behind its mark, which the loader finds by itself (snapshot-source.ts says
 * what a stream is). Nor has it a checksum; TCP's has to do, as in ZooKeeper.
 */
import {
  adler32,
  adler32Seed,
  fileHeaderBytes,
  int64,
  type Millis,
  openAclKey,
  ProtocolError,
  readAclList,
  Reader,
  readSeal,
  readSnapshotDigest,
  readSnapshotMark,
  sealBytes,
  sessionIdOf,
  type SnapshotDigest,
  snapshotMagic,
  snapshotMarkBytes,
  snapshotPartAfterSeal,
  type Zxid,
} from '@tskeeper/protocol';
import { type AclId, openAclId } from '../tree/acl-table.ts';
import { int32At } from '../tree/bytes.ts';
import { DataTree, type DataTreeOptions } from '../tree/data-tree.ts';

export interface LoadedSession {
  readonly high: number;
  readonly low: number;
  readonly timeoutMs: Millis;
}

export interface LoadedSnapshot {
  readonly tree: DataTree;
  readonly sessions: readonly LoadedSession[];
  /** The digest the file says the tree has at some zxid, usually later than the file's name; undefined when it says nothing. */
  readonly digest: SnapshotDigest | undefined;
  /** The last zxid as the file has it; at start-up the file's name counts, not this. */
  readonly lastZxid: Zxid | undefined;
  /**
   * How many znodes name an ACL that the file does not contain, and one of them. The log may give them another; whichever is left then
   * (`AclTable.isMissing`) must not be served.
   */
  readonly missingAcls: { readonly count: number; readonly path: string } | undefined;
  /**
   * While extended types are off: how many znodes have an owner that reads as a TTL where they are on. ZooKeeper takes such a znode for
   * the ephemeral of a session nobody knows, and deletes it at the next start.
   */
  readonly ownersLikeTtl: number;
}

const sessionBytes = 12;
/** Perms and two lengths. */
const aclBytesMin = 12;
const persistedStatBytes = 60;
const ownerAt = 44;
/** More than digest and last zxid can take, in any version. */
const tailBytesMax = 256;
const slash = 0x2f;
const incomplete = -1;
/** Far above what clients can write with any usual jute.maxbuffer, and little enough to be kept for a moment. */
const fileItemBytesMax = 64 * 1024 * 1024;

export interface SnapshotLimits {
  /** A stream, unless it says otherwise. */
  readonly source?: 'file' | 'stream';
  /** How large a znode or a list of ACLs may be, in bytes. */
  readonly itemBytesMax: number;
}

/** Of a file that a server with this limit for requests has to load; what it may once have been is not known, so it is generous. */
export function fileLimits(requestBytesMax: number): SnapshotLimits {
  return { source: 'file', itemBytesMax: Math.max(fileItemBytesMax, 2 * requestBytesMax) };
}

export class SnapshotLoader {
  readonly #tree: DataTree;
  readonly #extendedTypesEnabled: boolean;
  readonly #reader = new Reader();
  readonly #isStream: boolean;
  /** How many bytes one znode or ACL may take. */
  readonly #itemBytesMax: number;
  #stage: 'header' | 'sessions' | 'acls' | 'znodes' | 'seal' | 'tail' | 'mark' | 'end' = 'header';
  /** Sessions or ACLs still to come. */
  #left = 0;
  /** Bytes of an item that is not all here yet. */
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  /** How many bytes the next item takes at least. */
  #needed = 0;
  /** Where the buffer at hand begins in the file. */
  #base = 0;
  #checksum = adler32Seed;
  /** Where in the buffer at hand the bytes begin that the checksum does not cover yet. */
  #unsummed = 0;
  readonly #sessions: LoadedSession[] = [];
  /** Low halves by high halves, of which there are few: they hold the server and the minute in which it began. */
  readonly #sessionIds = new Map<number, Set<number>>();
  readonly #aclsByKey = new Map<number, AclId>();
  /** For each list that is missing, by its key; they hold no reference of their own. */
  readonly #missingByKey = new Map<number, AclId>();
  #missingCount = 0;
  #isDerived = false;
  #missingPath = '';
  #ownersLikeTtl = 0;

  /** Without `limits` it is a file, of a server of which nothing is known. */
  constructor(options: DataTreeOptions, limits: SnapshotLimits = fileLimits(0)) {
    this.#tree = new DataTree({ ...options, empty: true });
    this.#extendedTypesEnabled = options.extendedTypesEnabled;
    this.#isStream = limits.source !== 'file';
    this.#itemBytesMax = limits.itemBytesMax;
  }

  /** Whether the end of a stream has come: what `feed` did not take belongs to others. A file is over when its caller says so. */
  get isComplete(): boolean {
    return this.#stage === 'end';
  }

  /**
   * Takes the next bytes, and returns how many of them are the snapshot's: all, but for the piece in which a stream ends, and those behind it.
   * They are copied where they are kept. Throws a `ProtocolError` for what is no snapshot.
   */
  feed(chunk: Buffer): number {
    if (this.#stage === 'end') return 0;
    if (this.#piecesBytes + chunk.length < this.#needed) {
      this.#keep(chunk);
      return chunk.length;
    }
    const keptBytes = this.#piecesBytes;
    const bytes = this.#piecesBytes === 0 ? chunk : Buffer.concat([...this.#pieces, chunk]);
    this.#pieces = [];
    this.#piecesBytes = 0;
    this.#unsummed = 0;
    let at = 0;
    for (let end = this.#item(bytes, 0); end !== incomplete; end = this.#item(bytes, at)) at = end;
    this.#sum(bytes, at);
    this.#base += at;
    // The mark ended within this piece, for it was not all there before.
    if (this.isComplete) return at - keptBytes;
    this.#keep(bytes.subarray(at));
    return chunk.length;
  }

  /**
   * All bytes have been fed: counts the quotas, by at most `max` znodes of about 100 ns each. Returns true at the end, when `finish` has nothing
   * of it left to do.
   */
  finishSome(max: number): boolean {
    this.#isDerived ||= this.#tree.finishLoading(max);
    return this.#isDerived;
  }

  /** All bytes have been fed. Throws a `ProtocolError` if there should have been more. */
  finish(): LoadedSnapshot {
    const tail = Buffer.concat(this.#pieces);
    const last = this.#isStream ? 'end' : 'tail';
    if (this.#stage !== last) throw new ProtocolError(`more of the snapshot's ${this.#stage}`, this.#base + tail.length);
    const { digest, lastZxid } = this.#readTail(tail);
    for (const id of this.#aclsByKey.values()) this.#tree.acls.release(id);
    this.finishSome(Infinity);
    return {
      tree: this.#tree,
      sessions: this.#sessions,
      digest,
      lastZxid,
      missingAcls: this.#missingCount === 0 ? undefined : { count: this.#missingCount, path: this.#missingPath },
      ownersLikeTtl: this.#ownersLikeTtl,
    };
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(Buffer.from(bytes));
    this.#piecesBytes += bytes.length;
  }

  #sum(bytes: Buffer, end: number): void {
    if (this.#isStream) return;
    this.#checksum = adler32(bytes, this.#unsummed, end, this.#checksum);
    this.#unsummed = end;
  }

  #fail(expected: string, at: number): never {
    throw new ProtocolError(expected, this.#base + at);
  }

  /** Says how many bytes the item at `at` takes at least, and whether they are here. */
  #has(bytes: Buffer, at: number, count: number): boolean {
    if (count > this.#itemBytesMax) this.#fail(`a znode or ACL of at most ${this.#itemBytesMax} bytes, not one of at least ${count}`, at);
    this.#needed = count;
    return bytes.length - at >= count;
  }

  /** Takes one item that begins at `at` and returns its end, or `incomplete`. */
  #item(bytes: Buffer, at: number): number {
    switch (this.#stage) {
      case 'header':
        return this.#takeHeader(bytes, at);
      case 'sessions':
        return this.#takeSession(bytes, at);
      case 'acls':
        return this.#takeAcl(bytes, at);
      case 'znodes':
        return this.#takeZnode(bytes, at);
      case 'seal':
        return this.#takeSeal(bytes, at);
      case 'tail':
        if (bytes.length - at > tailBytesMax) this.#fail('the end of the snapshot', at + tailBytesMax);
        this.#needed = 0;
        return incomplete;
      case 'mark':
        return this.#takeMark(bytes, at);
      case 'end':
        return incomplete;
      default:
        return this.#stage satisfies never;
    }
  }

  #takeHeader(bytes: Buffer, at: number): number {
    const countAt = at + (this.#isStream ? 0 : fileHeaderBytes);
    const end = countAt + 4;
    if (!this.#has(bytes, at, end - at)) return incomplete;
    if (!this.#isStream && int32At(bytes, at) !== snapshotMagic) this.#fail('a snapshot, which begins with "ZKSN"', at);
    this.#left = int32At(bytes, countAt);
    this.#stage = 'sessions';
    return end;
  }

  #takeSession(bytes: Buffer, at: number): number {
    // Like Java, which counts down while the number is above 0, we take a negative count for none.
    const length = this.#left > 0 ? sessionBytes : 4;
    if (!this.#has(bytes, at, length)) return incomplete;
    if (this.#left > 0) {
      this.#left--;
      const [high, low] = [int32At(bytes, at), int32At(bytes, at + 4)];
      if (!this.#isNewSession(high, low)) this.#fail(`a session of its own, not 0x${sessionIdOf(high, low).toString(16)} again`, at);
      this.#sessions.push({ high, low, timeoutMs: int32At(bytes, at + 8) });
    } else {
      this.#sessionIds.clear();
      this.#left = int32At(bytes, at);
      this.#stage = 'acls';
    }
    return at + length;
  }

  #isNewSession(high: number, low: number): boolean {
    const known = this.#sessionIds.get(high);
    if (known === undefined) this.#sessionIds.set(high, new Set([low]));
    else if (known.has(low)) return false;
    else known.add(low);
    return true;
  }

  #takeAcl(bytes: Buffer, at: number): number {
    if (this.#left <= 0) {
      this.#stage = 'znodes';
      return at;
    }
    const end = this.#endOfAcl(bytes, at);
    if (end === incomplete) return incomplete;
    const key = int64(int32At(bytes, at), int32At(bytes, at + 4));
    if (this.#aclsByKey.has(key)) this.#fail(`an ACL with a key of its own, not ${key} again`, at);
    this.#reader.place(bytes, at + 8, end);
    this.#aclsByKey.set(key, this.#tree.acls.intern(readAclList(this.#reader)));
    this.#left--;
    return end;
  }

  /** Where an entry of the ACL table ends: key, count, and each with permissions and two texts. */
  #endOfAcl(bytes: Buffer, start: number): number {
    if (!this.#has(bytes, start, 12)) return incomplete;
    const count = int32At(bytes, start + 8);
    if (count < -1) this.#fail(`a number of ACL entries, not ${count}`, start + 8);
    // All at once, before any is looked at: to gather them one by one would copy what is there each time.
    if (!this.#has(bytes, start, 12 + Math.max(0, count) * aclBytesMin)) return incomplete;
    let at = start + 12;
    for (let i = 0; i < count; i++) {
      if (!this.#has(bytes, start, at - start + aclBytesMin)) return incomplete;
      const schemeLength = this.#length(bytes, at + 4, 'a scheme');
      const idAt = at + 8 + schemeLength;
      if (!this.#has(bytes, start, idAt - start + 4)) return incomplete;
      at = idAt + 4 + this.#length(bytes, idAt, 'an id');
      if (!this.#has(bytes, start, at - start)) return incomplete;
    }
    return at;
  }

  /** The length of a text or buffer, 0 for null. */
  #length(bytes: Buffer, at: number, what: string): number {
    const length = int32At(bytes, at);
    if (length < -1) this.#fail(`${what} of a possible length, not ${length}`, at);
    return Math.max(0, length);
  }

  #takeZnode(bytes: Buffer, at: number): number {
    // The terminator is that long, and the shortest znode, the root, is longer.
    if (!this.#has(bytes, at, 5)) return incomplete;
    const pathLength = int32At(bytes, at);
    if (pathLength < 0) this.#fail(`a path, not one of length ${pathLength}`, at);
    if (pathLength === 1 && bytes[at + 4] === slash) {
      this.#stage = this.#isStream ? 'mark' : 'seal';
      return at + 5;
    }
    const pathStart = at + 4;
    const pathEnd = pathStart + pathLength;
    if (!this.#has(bytes, at, 4 + pathLength + 4)) return incomplete;
    const dataStart = pathEnd + 4;
    const aclAt = dataStart + this.#length(bytes, pathEnd, 'data');
    const statAt = aclAt + 8;
    const end = statAt + persistedStatBytes;
    if (!this.#has(bytes, at, end - at)) return incomplete;

    const acl = this.#aclOfKey(int64(int32At(bytes, aclAt), int32At(bytes, aclAt + 4)), bytes, pathStart, pathEnd);
    const expected = this.#tree.load(bytes, pathStart, pathEnd, dataStart, int32At(bytes, pathEnd), acl, statAt);
    if (expected !== undefined) this.#fail(`${expected}, but found "${bytes.toString('utf8', pathStart, pathEnd)}"`, at);
    const ownerHigh = int32At(bytes, statAt + ownerAt);
    if (!this.#extendedTypesEnabled && ownerHigh >>> 8 === 0xff0000) this.#ownersLikeTtl++;
    return end;
  }

  /** The id of an ACL, counting a reference for the znode. */
  #aclOfKey(key: number, bytes: Buffer, pathStart: number, pathEnd: number): AclId {
    if (key === openAclKey) return openAclId;
    const { acls } = this.#tree;
    const known = this.#aclsByKey.get(key);
    if (known !== undefined) {
      acls.retain(known);
      return known;
    }
    if (this.#missingCount++ === 0) this.#missingPath = bytes.toString('utf8', pathStart, pathEnd);
    const missing = this.#missingByKey.get(key);
    if (missing !== undefined) {
      acls.retain(missing);
      return missing;
    }
    const added = acls.addMissing();
    this.#missingByKey.set(key, added);
    return added;
  }

  #takeSeal(bytes: Buffer, at: number): number {
    if (!this.#has(bytes, at, sealBytes)) return incomplete;
    this.#readSeal(this.#reader.place(bytes, at, at + sealBytes));
    this.#stage = 'tail';
    return at + sealBytes;
  }

  #takeMark(bytes: Buffer, at: number): number {
    const end = at + snapshotMarkBytes.length;
    if (!this.#has(bytes, at, end - at)) return incomplete;
    this.#located(() => readSnapshotMark(this.#reader.place(bytes, at, end)));
    this.#stage = 'end';
    return end;
  }

  /** Compares the seal at the reader's place with the checksum of everything before it. */
  #readSeal(reader: Reader): void {
    const at = reader.offset;
    this.#sum(reader.bytes, at);
    const sealed = this.#located(() => readSeal(reader));
    if (sealed === this.#checksum) return;
    this.#fail(`a seal of 0x${this.#checksum.toString(16)}, the checksum of all before it, not 0x${sealed.toString(16)}`, at);
  }

  /** What follows the first seal has no tags: how much there is tells what it is. */
  #readTail(tail: Buffer): Pick<LoadedSnapshot, 'digest' | 'lastZxid'> {
    const reader = this.#reader.place(tail, 0, tail.length);
    let digest: SnapshotDigest | undefined;
    let lastZxid: Zxid | undefined;
    this.#unsummed = 0;
    if (snapshotPartAfterSeal(reader.remaining) === 'digest') {
      digest = this.#located(() => readSnapshotDigest(reader));
      this.#readSeal(reader);
    }
    if (snapshotPartAfterSeal(reader.remaining) === 'lastZxid') {
      lastZxid = reader.int64();
      this.#readSeal(reader);
    }
    if (reader.remaining > 0) this.#fail('the end of the snapshot', reader.offset);
    // Zxid 0 says that no digest was known.
    return { digest: digest?.zxid === 0 ? undefined : digest, lastZxid };
  }

  /** A reader knows where it is in its own bytes; whoever reads the message wants to know where in the file. */
  #located<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof ProtocolError) this.#fail(error.expected, error.offset);
      throw error;
    }
  }
}
