/**
 * Finds the entries of a long ACL that an identity matches, without a walk.
 *
 * A list may have tens of thousands of entries, and whoever asks for anything under it would make the server look at all of them. So the
 * first who asks has them put into a hash table, which lives as long as the list, outside of the heap. Entries that say the same of the
 * same id are one row: all that counts is which permissions any of them grants.
 *
 * What an id means is for its scheme to say, by keys: an entry is found under its scheme and id, and under the key that its scheme gives
 * it; an identity looks under its own id, and under each key that would match it.
 */
import { Reader, Writer } from '@tskeeper/protocol';
import type { PathHash } from './path-hash.ts';

/** How the entries of a scheme are found. */
export interface AclKeys {
  /** Under what else an entry is found than under its id; undefined if nothing else. */
  aclKey(aclId: string): string | undefined;
  /** The keys of all entries that this identity matches, besides those that equal it. */
  identityKeys(identity: string): readonly string[];
}

/** An entry matches the identities that equal it, and no others. */
export const equality: AclKeys = { aclKey: () => undefined, identityKeys: () => [] };

/** What must be known of the schemes in order to index a list. */
export interface AclSchemeKeys {
  isKnown(scheme: string): boolean;
  /** undefined: its entries match by rules of their own. */
  keysOf(scheme: string): AclKeys | undefined;
}

export interface AclEntry {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

/** An int each: the hash, where in the list the entry is, and the permissions. Place 0, where the number of entries is, is an empty row. */
const rowInts = 3;
/** Added to the place of an entry that is found under its key. No list is that long. */
const keyed = 0x40000000;

export class AclIndex {
  /** No other index of its table has it. */
  readonly number: number;
  /** In the list. */
  readonly entries: number;
  /** What everybody may do. */
  readonly worldPerms: number;
  /** Entries of schemes without keys, which must be walked. */
  readonly walked: readonly AclEntry[];
  readonly #hash: PathHash;
  readonly #schemes: AclSchemeKeys;
  readonly #reader: Reader;
  readonly #scratch = new Writer(128);
  #rows: Int32Array;
  #mask: number;
  #used = 0;

  /** @param bytes the list in wire form, which must stay as it is. */
  constructor(number: number, bytes: Buffer, start: number, end: number, hash: PathHash, schemes: AclSchemeKeys) {
    this.number = number;
    this.#hash = hash;
    this.#schemes = schemes;
    this.#reader = new Reader(bytes, start, end);
    const count = this.#reader.int32();
    this.entries = count;
    this.#rows = new Int32Array(rowInts * sizeFor(count));
    this.#mask = this.#rows.length / rowInts - 1;
    const walked: AclEntry[] = [];
    let worldPerms = 0;
    for (let i = 0; i < count; i++) {
      const place = this.#reader.offset;
      const perms = this.#reader.int32();
      const scheme = this.#reader.ustring();
      // A null id is an empty one to those who match it.
      const given = this.#reader.ustring();
      const id = given ?? '';
      if (scheme === null) continue;
      if (scheme === 'world' && id === 'anyone') {
        worldPerms |= perms;
        continue;
      }
      // A scheme that nobody knows grants nothing.
      if (!schemes.isKnown(scheme)) continue;
      const keys = schemes.keysOf(scheme);
      if (keys === undefined) {
        walked.push({ perms, scheme, id });
        continue;
      }
      const next = this.#reader.offset;
      // What is hashed are scheme and id as they stand in the list, so that it need not be written for each entry.
      const idHash = given === null ? this.#hashOf(scheme, id) : hash.of(bytes, place + intBytes, next);
      this.#add(scheme, id, idHash, place, perms);
      const key = keys.aclKey(id);
      if (key !== undefined) this.#add(scheme, key, this.#hashOf(scheme, key), place + keyed, perms);
      this.#reader.offset = next;
    }
    this.worldPerms = worldPerms;
    this.walked = walked;
  }

  /** What entries with this id grant. */
  permsOf(scheme: string, id: string): number {
    return this.#permsAt(scheme, id, false);
  }

  /** What entries with this key grant. */
  permsOfKey(scheme: string, key: string): number {
    return this.#permsAt(scheme, key, true);
  }

  #permsAt(scheme: string, text: string, isKey: boolean): number {
    const row = this.#find(scheme, text, isKey, this.#hashOf(scheme, text));
    return row < 0 ? 0 : this.#rows[row + 2]!;
  }

  #add(scheme: string, text: string, hash: number, place: number, perms: number): void {
    const isKey = place >= keyed;
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

  /** The row of a text, or the complement of where it would be. */
  #find(scheme: string, text: string, isKey: boolean, hash: number): number {
    const rows = this.#rows;
    for (let at = hash & this.#mask; ; at = (at + 1) & this.#mask) {
      const row = at * rowInts;
      const place = rows[row + 1]!;
      if (place === 0) return ~row;
      if (rows[row] === hash && place >= keyed === isKey && this.#isAt(place, scheme, text)) return row;
    }
  }

  #isAt(place: number, scheme: string, text: string): boolean {
    const reader = this.#reader;
    const isKey = place >= keyed;
    reader.offset = (isKey ? place - keyed : place) + intBytes;
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
