/**
 * Finds the entries of a long ACL that match an identity, without a scan.
 *
 * A list may have tens of thousands of entries, and each request for a znode under it would scan
 * all of them. So the first check builds a hash table, which lives as long as the list, outside of
 * the heap. Entries with the same id share a row: only the union of their permissions counts.
 *
 * Each scheme defines the meaning of its ids by keys: an entry is found under its scheme and id,
 * and under the key that its scheme derives from it; an identity is looked up under its own id, and
 * under each key that would match it.
 */
import { Reader, Writer } from '@tskeeper/protocol';
import type { PathHash } from './path-hash.ts';

/** How the entries of a scheme are found. */
export interface AclKeys {
  /** An additional key of an entry besides its id; undefined for none. */
  aclKey(aclId: string): string | undefined;
  /** The keys of all entries that match this identity, besides those equal to it. */
  identityKeys(identity: string): readonly string[];
}

/** An entry matches only identities equal to it. */
export const equalityKeys: AclKeys = { aclKey: () => undefined, identityKeys: () => [] };

/** What an index must know of the schemes. */
export interface AclSchemeKeys {
  isKnown(scheme: string): boolean;
  /** undefined if its entries match by their own rules. */
  keysOf(scheme: string): AclKeys | undefined;
}

export interface AclEntry {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

/**
 * One int each: the hash, the offset of the entry in the list, and the permissions. Offset 0, where
 * the number of entries is, marks an empty row.
 */
const rowInts = 3;
/** Added to the offset of an entry that is found under its key. No list is that long. */
const keyFlag = 0x40000000;

export class AclIndex {
  /** Unique within its table. */
  readonly indexId: number;
  /** Number of entries in the list. */
  readonly entryCount: number;
  /** The permissions of every client. */
  readonly worldPerms: number;
  /** Entries of schemes without keys, which must be scanned. */
  readonly unindexed: readonly AclEntry[];
  readonly #hash: PathHash;
  readonly #schemes: AclSchemeKeys;
  readonly #reader: Reader;
  readonly #scratch = new Writer(128);
  #rows: Int32Array;
  #mask: number;
  #used = 0;

  /** @param bytes the list in wire form, which must not change. */
  constructor(number: number, bytes: Buffer, start: number, end: number, hash: PathHash, schemes: AclSchemeKeys) {
    this.indexId = number;
    this.#hash = hash;
    this.#schemes = schemes;
    this.#reader = new Reader(bytes, start, end);
    const count = this.#reader.int32();
    this.entryCount = count;
    this.#rows = new Int32Array(rowInts * sizeFor(count));
    this.#mask = this.#rows.length / rowInts - 1;
    const walked: AclEntry[] = [];
    let worldPerms = 0;
    for (let i = 0; i < count; i++) {
      const place = this.#reader.offset;
      const perms = this.#reader.int32();
      const scheme = this.#reader.ustring();
      // A null id matches like an empty one.
      const given = this.#reader.ustring();
      const id = given ?? '';
      if (scheme === null) continue;
      if (scheme === 'world' && id === 'anyone') {
        worldPerms |= perms;
        continue;
      }
      // An unknown scheme grants nothing.
      if (!schemes.isKnown(scheme)) continue;
      const keys = schemes.keysOf(scheme);
      if (keys === undefined) {
        walked.push({ perms, scheme, id });
        continue;
      }
      const next = this.#reader.offset;
      // The hash covers scheme and id as encoded in the list, so that they need not be written for
      // each entry.
      const idHash = given === null ? this.#hashOf(scheme, id) : hash.of(bytes, place + intBytes, next);
      this.#add(scheme, id, idHash, place, perms);
      const key = keys.aclKey(id);
      if (key !== undefined) this.#add(scheme, key, this.#hashOf(scheme, key), place + keyFlag, perms);
      this.#reader.offset = next;
    }
    this.worldPerms = worldPerms;
    this.unindexed = walked;
  }

  /** The permissions of entries with this id. */
  permsOf(scheme: string, id: string): number {
    return this.#permsAt(scheme, id, false);
  }

  /** The permissions of entries with this key. */
  permsOfKey(scheme: string, key: string): number {
    return this.#permsAt(scheme, key, true);
  }

  #permsAt(scheme: string, text: string, isKey: boolean): number {
    const row = this.#find(scheme, text, isKey, this.#hashOf(scheme, text));
    return row < 0 ? 0 : this.#rows[row + 2]!;
  }

  #add(scheme: string, text: string, hash: number, place: number, perms: number): void {
    const isKey = place >= keyFlag;
    let row = this.#find(scheme, text, isKey, hash);
    if (row >= 0) {
      this.#rows[row + 2]! |= perms;
      return;
    }
    row = ~row;
    if (this.#used * 4 > (this.#mask + 1) * 3) {
      this.#grow();
      row = this.#emptyRow(hash);
    }
    this.#used++;
    this.#rows[row] = hash;
    this.#rows[row + 1] = place;
    this.#rows[row + 2] = perms;
  }

  /** The row of a text, or the complement of the row where it would be. */
  #find(scheme: string, text: string, isKey: boolean, hash: number): number {
    const rows = this.#rows;
    for (let at = hash & this.#mask; ; at = (at + 1) & this.#mask) {
      const row = at * rowInts;
      const place = rows[row + 1]!;
      if (place === 0) return ~row;
      if (rows[row] === hash && place >= keyFlag === isKey && this.#isAt(place, scheme, text)) return row;
    }
  }

  #isAt(place: number, scheme: string, text: string): boolean {
    const reader = this.#reader;
    const isKey = place >= keyFlag;
    reader.offset = (isKey ? place - keyFlag : place) + intBytes;
    if (reader.ustring() !== scheme) return false;
    const id = reader.ustring() ?? '';
    return (isKey ? this.#schemes.keysOf(scheme)!.aclKey(id) : id) === text;
  }

  #emptyRow(hash: number): number {
    let at = hash & this.#mask;
    while (this.#rows[at * rowInts + 1] !== 0) at = (at + 1) & this.#mask;
    return at * rowInts;
  }

  #grow(): void {
    const old = this.#rows;
    this.#rows = new Int32Array(old.length * 2);
    this.#mask = this.#rows.length / rowInts - 1;
    for (let from = 0; from < old.length; from += rowInts) {
      if (old[from + 1] === 0) continue;
      const row = this.#emptyRow(old[from]!);
      for (let i = 0; i < rowInts; i++) this.#rows[row + i] = old[from + i]!;
    }
  }

  #hashOf(scheme: string, text: string): number {
    const scratch = this.#scratch;
    scratch.clear();
    scratch.ustring(scheme);
    scratch.ustring(text);
    return this.#hash.of(scratch.bytes, 0, scratch.offset);
  }
}

const intBytes = 4;

function sizeFor(entries: number): number {
  let size = 16;
  while (size * 3 < entries * 4) size *= 2;
  return size;
}
