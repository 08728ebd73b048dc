/**
 * Builds a tree from a snapshot that arrives in pieces of any size: from a file, or from the stream
 * of a leader after SNAP.
 *
 * Reads snapshots of ZooKeeper 3.6 to 3.9 and our own; the layout is in
 * protocol/disk/snapshot-format.ts. A wrong seal, a znode before its parent, or an impossible
 * length is a `ProtocolError` that names the expectation and the byte offset in the (uncompressed)
 * file. Nothing of a rejected snapshot can be used: the caller continues with an older one and a
 * new loader.
 *
 * Counts and lengths are trusted only as far as they can be true: a duplicate session, or an item
 * larger than any request could have made it, is rejected before memory is allocated for it. A few
 * megabytes of gzip can contain a gigabyte of zeros.
 *
 * A stream is followed by packets: it ends after its mark, which the loader finds itself
 * (snapshot-writer.ts defines the stream). It has no checksum; TCP's must do, as in ZooKeeper.
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
  readSnapshotSignature,
  sealBytes,
  sessionIdOf,
  type SnapshotDigest,
  snapshotMagic,
  snapshotSignatureBytes,
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
  /**
   * The digest of the tree at some zxid, usually later than that in the file's name; undefined if
   * the file has none.
   */
  readonly digest: SnapshotDigest | undefined;
  /** The last zxid in the file; at start-up the file's name counts, not this. */
  readonly lastZxid: Zxid | undefined;
  /**
   * How many znodes refer to an ACL that the file does not contain, and the path of one. The log
   * may assign them another; a znode that still has a missing one afterwards (`AclTable.isMissing`)
   * must not be served.
   */
  readonly missingAcls: { readonly count: number; readonly path: string } | undefined;
  /**
   * With extended types disabled: how many znodes have an owner that would be a TTL if they were
   * enabled. ZooKeeper takes such a znode for the ephemeral of an unknown session, and deletes it
   * at the next start.
   */
  readonly ttlLikeOwnerCount: number;
}

const sessionBytes = 12;
/** Perms and two lengths. */
const aclBytesMin = 12;
const persistedStatBytes = 60;
const ownerAt = 44;
/** More than digest and last zxid can take in any version. */
const tailBytesMax = 256;
const slash = 0x2f;
const incomplete = -1;
/**
 * Far above what clients can write with any usual jute.maxbuffer, and small enough to hold briefly.
 */
const fileItemBytesMax = 64 * 1024 * 1024;

export interface SnapshotLimits {
  /** Default: a stream. */
  readonly source?: 'file' | 'stream';
  /** Maximum size of a znode or a list of ACLs, in bytes. */
  readonly itemBytesMax: number;
}

/**
 * Limits for a file, given this server's limit for requests; an earlier limit is unknown, so they
 * are generous.
 */
export function fileLimits(requestBytesMax: number): SnapshotLimits {
  return { source: 'file', itemBytesMax: Math.max(fileItemBytesMax, 2 * requestBytesMax) };
}

export class SnapshotLoader {
  readonly #tree: DataTree;
  readonly #extendedTypesEnabled: boolean;
  readonly #reader = new Reader();
  readonly #isStream: boolean;
  /** Maximum size of one znode or ACL. */
  readonly #itemBytesMax: number;
  #stage: 'header' | 'sessions' | 'acls' | 'znodes' | 'seal' | 'tail' | 'mark' | 'end' = 'header';
  /** Sessions or ACLs still to come. */
  #left = 0;
  /** Bytes of an incomplete item. */
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  /** Minimum size of the next item. */
  #needed = 0;
  /** Offset of the current buffer in the file. */
  #base = 0;
  #checksum = adler32Seed;
  /** Offset in the current buffer of the first byte that the checksum does not cover yet. */
  #checksummedTo = 0;
  readonly #sessions: LoadedSession[] = [];
  /**
   * Low halves by high halves; high halves are few: they contain the server id and the minute of
   * its start.
   */
  readonly #sessionIds = new Map<number, Set<number>>();
  readonly #aclsByKey = new Map<number, AclId>();
  /** The missing lists by key; they hold no reference of their own. */
  readonly #missingByKey = new Map<number, AclId>();
  #missingCount = 0;
  #quotasCounted = false;
  #missingPath = '';
  #ttlLikeOwnerCount = 0;

  /** Default limits: a file of a server with unknown options. */
  constructor(options: DataTreeOptions, limits: SnapshotLimits = fileLimits(0)) {
    this.#tree = new DataTree({ ...options, empty: true });
    this.#extendedTypesEnabled = options.extendedTypesEnabled;
    this.#isStream = limits.source !== 'file';
    this.#itemBytesMax = limits.itemBytesMax;
  }

  /**
   * Whether the end of a stream has been reached: bytes that `feed` did not take belong to packets.
   * A file ends when its caller calls `finish`.
   */
  get isComplete(): boolean {
    return this.#stage === 'end';
  }

  /**
   * Takes the next bytes, and returns how many of them belong to the snapshot: all, except after
   * the end of a stream. Bytes that are kept are copied. Throws a `ProtocolError` if they are not a
   * snapshot.
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
    this.#checksummedTo = 0;
    let at = 0;
    for (let end = this.#takeItem(bytes, 0); end !== incomplete; end = this.#takeItem(bytes, at)) at = end;
    this.#addToChecksum(bytes, at);
    this.#base += at;
    // The mark ended within this chunk, since it was incomplete before.
    if (this.isComplete) return at - keptBytes;
    this.#keep(bytes.subarray(at));
    return chunk.length;
  }

  /**
   * After all bytes: counts the quotas, at most `max` znodes of about 100 ns each. Returns true at
   * the end, when nothing of this is left for `finish`.
   */
  finishStep(max: number): boolean {
    this.#quotasCounted ||= this.#tree.quotas.finishLoading(max);
    return this.#quotasCounted;
  }

  /**
   * After all bytes: returns the result. Throws a `ProtocolError` if the snapshot is incomplete.
   */
  finish(): LoadedSnapshot {
    const tail = Buffer.concat(this.#pieces);
    const last = this.#isStream ? 'end' : 'tail';
    if (this.#stage !== last) throw new ProtocolError(`more of the snapshot's ${this.#stage}`, this.#base + tail.length);
    const { digest, lastZxid } = this.#readTail(tail);
    for (const id of this.#aclsByKey.values()) this.#tree.acls.release(id);
    this.finishStep(Infinity);
    return {
      tree: this.#tree,
      sessions: this.#sessions,
      digest,
      lastZxid,
      missingAcls: this.#missingCount === 0 ? undefined : { count: this.#missingCount, path: this.#missingPath },
      ttlLikeOwnerCount: this.#ttlLikeOwnerCount,
    };
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(Buffer.from(bytes));
    this.#piecesBytes += bytes.length;
  }

  #addToChecksum(bytes: Buffer, end: number): void {
    if (this.#isStream) return;
    this.#checksum = adler32(bytes, this.#checksummedTo, end, this.#checksum);
    this.#checksummedTo = end;
  }

  #fail(expected: string, at: number): never {
    throw new ProtocolError(expected, this.#base + at);
  }

  /** Notes the minimum size of the item at `at`, and returns whether that much is available. */
  #has(bytes: Buffer, at: number, count: number): boolean {
    if (count > this.#itemBytesMax) this.#fail(`a znode or ACL of at most ${this.#itemBytesMax} bytes, not one of at least ${count}`, at);
    this.#needed = count;
    return bytes.length - at >= count;
  }

  /** Takes the item that begins at `at` and returns its end, or `incomplete`. */
  #takeItem(bytes: Buffer, at: number): number {
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
        return this.#takeSignature(bytes, at);
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
    // Like Java, which counts down while the number is above 0, a negative count means none.
    const length = this.#left > 0 ? sessionBytes : 4;
    if (!this.#has(bytes, at, length)) return incomplete;
    if (this.#left > 0) {
      this.#left--;
      const [high, low] = [int32At(bytes, at), int32At(bytes, at + 4)];
      if (!this.#isNewSession(high, low)) this.#fail(`a new session, not 0x${sessionIdOf(high, low).toString(16)} again`, at);
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
    if (this.#aclsByKey.has(key)) this.#fail(`an ACL with a new key, not ${key} again`, at);
    this.#reader.wrap(bytes, at + 8, end);
    this.#aclsByKey.set(key, this.#tree.acls.intern(readAclList(this.#reader)));
    this.#left--;
    return end;
  }

  /**
   * The end of an entry of the ACL table: key, count, and each with permissions and two strings.
   */
  #endOfAcl(bytes: Buffer, start: number): number {
    if (!this.#has(bytes, start, 12)) return incomplete;
    const count = int32At(bytes, start + 8);
    if (count < -1) this.#fail(`a number of ACL entries, not ${count}`, start + 8);
    // Wait for all of it before the first entry is read: otherwise the bytes so far would be copied
    // again for each entry.
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

  /** The length of a string or buffer, 0 for null. */
  #length(bytes: Buffer, at: number, what: string): number {
    const length = int32At(bytes, at);
    if (length < -1) this.#fail(`${what} of a possible length, not ${length}`, at);
    return Math.max(0, length);
  }

  #takeZnode(bytes: Buffer, at: number): number {
    // The terminator has this length, and the shortest znode, the root, is longer.
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
    const expected = this.#tree.loadNode(bytes, pathStart, pathEnd, dataStart, int32At(bytes, pathEnd), acl, statAt);
    if (expected !== undefined) this.#fail(`${expected}, but found "${bytes.toString('utf8', pathStart, pathEnd)}"`, at);
    const ownerHigh = int32At(bytes, statAt + ownerAt);
    if (!this.#extendedTypesEnabled && ownerHigh >>> 8 === 0xff0000) this.#ttlLikeOwnerCount++;
    return end;
  }

  /** The id of an ACL; adds a reference for the znode. */
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
    this.#readSeal(this.#reader.wrap(bytes, at, at + sealBytes));
    this.#stage = 'tail';
    return at + sealBytes;
  }

  #takeSignature(bytes: Buffer, at: number): number {
    const end = at + snapshotSignatureBytes.length;
    if (!this.#has(bytes, at, end - at)) return incomplete;
    this.#withFileOffset(() => readSnapshotSignature(this.#reader.wrap(bytes, at, end)));
    this.#stage = 'end';
    return end;
  }

  /** Compares the seal at the reader's position with the checksum of everything before it. */
  #readSeal(reader: Reader): void {
    const at = reader.offset;
    this.#addToChecksum(reader.bytes, at);
    const sealed = this.#withFileOffset(() => readSeal(reader));
    if (sealed === this.#checksum) return;
    this.#fail(`the seal 0x${this.#checksum.toString(16)}, the checksum of all bytes before it, not 0x${sealed.toString(16)}`, at);
  }

  /** The parts after the first seal have no tags: the number of bytes left identifies them. */
  #readTail(tail: Buffer): Pick<LoadedSnapshot, 'digest' | 'lastZxid'> {
    const reader = this.#reader.wrap(tail, 0, tail.length);
    let digest: SnapshotDigest | undefined;
    let lastZxid: Zxid | undefined;
    this.#checksummedTo = 0;
    if (snapshotPartAfterSeal(reader.remaining) === 'digest') {
      digest = this.#withFileOffset(() => readSnapshotDigest(reader));
      this.#readSeal(reader);
    }
    if (snapshotPartAfterSeal(reader.remaining) === 'lastZxid') {
      lastZxid = reader.int64();
      this.#readSeal(reader);
    }
    if (reader.remaining > 0) this.#fail('the end of the snapshot', reader.offset);
    // Zxid 0 means that no digest was known.
    return { digest: digest?.zxid === 0 ? undefined : digest, lastZxid };
  }

  /** Converts an offset in a reader's bytes into an offset in the file. */
  #withFileOffset<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof ProtocolError) this.#fail(error.expected, error.offset);
      throw error;
    }
  }
}
