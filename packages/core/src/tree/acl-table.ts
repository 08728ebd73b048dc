/**
 * The access control lists of the tree, each kept once.
 *
 * Thousands of znodes share a handful of lists, so a znode holds a small number and this table holds the list, decoded for checking and
 * in wire form for replies and snapshots. References are counted; a list nobody uses goes.
 *
 * A snapshot written by some versions of ZooKeeper can name a list it does not contain (ZOOKEEPER-3306, ZOOKEEPER-4846). Such a list is
 * *missing*: it is held by an id like any other, grants nothing to anybody, and disappears as soon as the log gives the znode another.
 * It must not be mistaken for an empty list, which ZooKeeper reads as "open to the world".
 */
import { type Acl, openAcl, Perms, writeAclList, Writer } from '@tskeeper/protocol';

/**
 * Positive, or `openAclId`. An id is used again once its list has gone; it means nothing outside this table, and snapshots of other
 * servers number their lists their own way.
 */
export type AclId = number;

/** The list of the znodes made at start: world:anyone may do everything. It has no entry, is not counted, and a client's equal list is not it. */
export const openAclId: AclId = -1;

/** What a missing list reads as. */
const grantsNothing: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, id: Object.freeze({ scheme: 'world', id: 'anyone' }) })]);

interface Entry {
  readonly acl: readonly Acl[];
  readonly wire: Buffer;
  /** The wire bytes as text, under which equal lists find each other; undefined for a missing list. */
  readonly key: string | undefined;
  references: number;
}

export class AclTable {
  /** By id; index 0 is never used. */
  readonly #entries: (Entry | undefined)[] = [undefined];
  readonly #freeIds: AclId[] = [];
  readonly #idsByKey = new Map<string, AclId>();
  readonly #scratch = new Writer(256);
  /** The id of world:anyone with all permissions, which nearly every create names; 0 when nobody uses it. */
  #openId: AclId = 0;
  #missingCount = 0;
  /** While true no entry goes and no id is given out twice, so that what a snapshot has listed stays true. */
  #frozen = false;
  readonly #unusedWhileFrozen: AclId[] = [];

  /** Returns the id of this list, counting one reference for the caller. Equal lists share an id. */
  intern(acl: readonly Acl[]): AclId {
    const open = isOpen(acl);
    if (open && this.#openId !== 0) {
      this.#entries[this.#openId]!.references++;
      return this.#openId;
    }
    const scratch = this.#scratch;
    scratch.clear();
    writeAclList(scratch, acl);
    const key = scratch.bytes.toString('latin1', 0, scratch.offset);
    const known = this.#idsByKey.get(key);
    if (known !== undefined) {
      this.#entries[known]!.references++;
      return known;
    }
    const kept = Object.freeze(acl.map(({ perms, id }) => Object.freeze({ perms, id: Object.freeze({ scheme: id.scheme, id: id.id }) })));
    const id = this.#add({ acl: kept, wire: Buffer.from(scratch.written()), key, references: 1 });
    this.#idsByKey.set(key, id);
    if (open) this.#openId = id;
    return id;
  }

  /** An id for a list that a snapshot names but does not contain, counting one reference for the caller. */
  addMissing(): AclId {
    const scratch = this.#scratch;
    scratch.clear();
    writeAclList(scratch, grantsNothing);
    this.#missingCount++;
    return this.#add({ acl: grantsNothing, wire: Buffer.from(scratch.written()), key: undefined, references: 1 });
  }

  #add(entry: Entry): AclId {
    // An id given out twice while a snapshot is being written would put another list behind a number already written.
    const reused = this.#frozen ? undefined : this.#freeIds.pop();
    if (reused === undefined) return this.#entries.push(entry) - 1;
    this.#entries[reused] = entry;
    return reused;
  }

  retain(id: AclId): void {
    if (id !== openAclId) this.#entryOf(id).references++;
  }

  release(id: AclId): void {
    if (id === openAclId) return;
    const entry = this.#entryOf(id);
    if (entry.references === 0) throw new Error(`ACL ${id} was released more often than it was taken`);
    entry.references--;
    if (entry.references > 0) return;
    if (this.#frozen) this.#unusedWhileFrozen.push(id);
    else this.#drop(id, entry);
  }

  #drop(id: AclId, entry: Entry): void {
    this.#entries[id] = undefined;
    this.#freeIds.push(id);
    if (entry.key === undefined) this.#missingCount--;
    else this.#idsByKey.delete(entry.key);
    if (id === this.#openId) this.#openId = 0;
  }

  #entryOf(id: AclId): Entry {
    const entry = this.#entries[id];
    if (entry === undefined) throw new Error(`there is no ACL ${id}`);
    return entry;
  }

  /** The decoded list: the same frozen array each time. */
  get(id: AclId): readonly Acl[] {
    return id === openAclId ? openAcl : this.#entryOf(id).acl;
  }

  /** True when the list was lost before it reached us; the znode must not be served to ordinary clients. */
  isMissing(id: AclId): boolean {
    return this.#missingCount > 0 && id !== openAclId && this.#entryOf(id).key === undefined;
  }

  /** Missing lists still in use. */
  get missingCount(): number {
    return this.#missingCount;
  }

  /** Writes vector<ACL>. */
  write(id: AclId, writer: Writer): void {
    if (id === openAclId) writeAclList(writer, openAcl);
    else writer.raw(this.#entryOf(id).wire);
  }

  /** Keeps every entry, used or not, until `thaw`: a snapshot is being written. */
  freeze(): void {
    this.#frozen = true;
  }

  thaw(): void {
    this.#frozen = false;
    for (const id of this.#unusedWhileFrozen) {
      // It may have found users again, or be in the list twice.
      const entry = this.#entries[id];
      if (entry !== undefined && entry.references === 0) this.#drop(id, entry);
    }
    this.#unusedWhileFrozen.length = 0;
  }

  /** Lists in the table; the open one and missing ones are not in it. */
  get size(): number {
    return this.#idsByKey.size;
  }

  /** Every list in the table, by ascending id. */
  *entries(): Iterable<{ readonly id: AclId; readonly acl: readonly Acl[] }> {
    for (let id = 1; id < this.#entries.length; id++) {
      const entry = this.#entries[id];
      if (entry?.key !== undefined) yield { id, acl: entry.acl };
    }
  }
}

function isOpen(acl: readonly Acl[]): boolean {
  if (acl.length !== 1) return false;
  const { perms, id } = acl[0]!;
  return perms === Perms.all && id.id === 'anyone' && id.scheme === 'world';
}
