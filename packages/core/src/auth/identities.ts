/**
 * The identities of a connection at one moment.
 *
 * A request keeps the identities of its arrival, while the connection gets further ones. So a
 * version never changes; but since identities are only added, all versions of a connection share
 * one list, and each knows its own length. One more identity costs the same however many there are,
 * and a thousand waiting requests hold one list.
 */
import type { Identity } from './identity.ts';

/**
 * How many identities a connection may have, including its address, and their total size as
 * `vector<Id>` without its length.
 */
export interface IdentityLimits {
  readonly count: number;
  readonly bytes: number;
}

/** The lengths of scheme and id in a vector<Id>. */
const lengthBytes = 8;
/**
 * Up to this number a search is faster than a look-up, and no index is created: most connections
 * have one or two.
 */
const linearSearchMax = 8;

/** Shared by the versions of one connection. */
class IdentityList {
  readonly list: Identity[];
  /** The position of each identity in the list, by scheme and id. Created when first needed. */
  #indexes: Map<string, Map<string, number>> | undefined;

  constructor(list: Identity[]) {
    this.list = list;
  }

  /** The position of an identity; Infinity if it is not in the list. */
  indexOf(scheme: string, id: string): number {
    if (this.#indexes === undefined) {
      this.#indexes = new Map();
      for (let i = 0; i < this.list.length; i++) this.#addToIndex(this.#indexes, this.list[i]!, i);
    }
    return this.#indexes.get(scheme)?.get(id) ?? Infinity;
  }

  push(identity: Identity): void {
    if (this.#indexes !== undefined) this.#addToIndex(this.#indexes, identity, this.list.length);
    this.list.push(identity);
  }

  #addToIndex(places: Map<string, Map<string, number>>, { scheme, id }: Identity, place: number): void {
    let ofScheme = places.get(scheme);
    if (ofScheme === undefined) places.set(scheme, (ofScheme = new Map()));
    if (!ofScheme.has(id)) ofScheme.set(id, place);
  }
}

/** Caches a few ACL decisions for some identities, by question number. */
export class AclDecisionCache {
  readonly #decisions = new Map<number, boolean>();

  get(key: number): boolean | undefined {
    return this.#decisions.get(key);
  }

  set(key: number, isPermitted: boolean): boolean {
    if (this.#decisions.size === decisionsMax) this.#decisions.clear();
    this.#decisions.set(key, isPermitted);
    return isPermitted;
  }
}

const decisionsMax = 64;

export class Identities {
  static readonly none = new Identities(new IdentityList([]), 0, 0, false);

  readonly #identities: IdentityList;
  readonly count: number;
  /** As `vector<Id>`, without its length. */
  readonly bytes: number;
  /** One of them passes every ACL check. */
  readonly isSuper: boolean;

  /** See `Permissions`. Most connections need no cached decision. */
  #aclDecisions: AclDecisionCache | undefined;

  private constructor(collected: IdentityList, count: number, bytes: number, isSuper: boolean) {
    this.#identities = collected;
    this.count = count;
    this.bytes = bytes;
    this.isSuper = isSuper;
  }

  static of(list: readonly Identity[]): Identities {
    return new Identities(new IdentityList([...list]), list.length, bytesOf(list), list.some(isSuperIdentity));
  }

  get aclDecisions(): AclDecisionCache {
    return (this.#aclDecisions ??= new AclDecisionCache());
  }

  at(index: number): Identity {
    return this.#identities.list[index]!;
  }

  has(scheme: string, id: string): boolean {
    if (this.count > linearSearchMax) return this.#identities.indexOf(scheme, id) < this.count;
    for (let i = 0; i < this.count; i++) {
      const own = this.at(i);
      if (own.scheme === scheme && own.id === id) return true;
    }
    return false;
  }

  toList(): readonly Identity[] {
    const { list } = this.#identities;
    return list.length === this.count ? list : list.slice(0, this.count);
  }

  /** These identities and the new ones of `candidates`; undefined if they exceed the limits. */
  with(candidates: readonly Identity[], limits: IdentityLimits): Identities | undefined {
    const added = candidates.filter(({ scheme, id }, at) => !this.has(scheme, id) && isFirst(candidates, at));
    if (added.length === 0) return this;
    const count = this.count + added.length;
    const bytes = this.bytes + bytesOf(added);
    if (count > limits.count || bytes > limits.bytes) return undefined;
    // Only the latest version may append to the shared list.
    const collected = this.#identities.list.length === this.count ? this.#identities : new IdentityList([...this.toList()]);
    for (const identity of added) collected.push(identity);
    return new Identities(collected, count, bytes, this.isSuper || added.some(isSuperIdentity));
  }
}

function isSuperIdentity({ scheme }: Identity): boolean {
  return scheme === 'super';
}

/** A provider returns few at a time. */
function isFirst(list: readonly Identity[], at: number): boolean {
  const { scheme, id } = list[at]!;
  return list.findIndex((one) => one.scheme === scheme && one.id === id) === at;
}

function bytesOf(list: readonly Identity[]): number {
  let bytes = 0;
  for (const { scheme, id } of list) bytes += lengthBytes + Buffer.byteLength(scheme) + Buffer.byteLength(id);
  return bytes;
}
