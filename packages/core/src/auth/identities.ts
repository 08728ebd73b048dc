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
const searchedMax = 8;

/** Shared by the versions of one connection. */
class Collected {
  readonly list: Identity[];
  /** The position of each identity in the list, by scheme and id. Created when first needed. */
  #places: Map<string, Map<string, number>> | undefined;

  constructor(list: Identity[]) {
    this.list = list;
  }

  /** The position of an identity; Infinity if it is not in the list. */
  placeOf(scheme: string, id: string): number {
    if (this.#places === undefined) {
      this.#places = new Map();
      for (let i = 0; i < this.list.length; i++) this.#note(this.#places, this.list[i]!, i);
    }
    return this.#places.get(scheme)?.get(id) ?? Infinity;
  }

  push(identity: Identity): void {
    if (this.#places !== undefined) this.#note(this.#places, identity, this.list.length);
    this.list.push(identity);
  }

  #note(places: Map<string, Map<string, number>>, { scheme, id }: Identity, place: number): void {
    let ofScheme = places.get(scheme);
    if (ofScheme === undefined) places.set(scheme, (ofScheme = new Map()));
    if (!ofScheme.has(id)) ofScheme.set(id, place);
  }
}

/** A few cached verdicts for some identities, by question number. */
export class Verdicts {
  readonly #verdicts = new Map<number, boolean>();

  get(question: number): boolean | undefined {
    return this.#verdicts.get(question);
  }

  keep(question: number, verdict: boolean): boolean {
    if (this.#verdicts.size === verdictsMax) this.#verdicts.clear();
    this.#verdicts.set(question, verdict);
    return verdict;
  }
}

const verdictsMax = 64;

export class Identities {
  static readonly none = new Identities(new Collected([]), 0, 0, false);

  readonly #collected: Collected;
  readonly count: number;
  /** As `vector<Id>`, without its length. */
  readonly bytes: number;
  /** One of them passes every ACL check. */
  readonly isSuper: boolean;

  /** See `Permissions`. Most connections need no cached verdict. */
  #verdicts: Verdicts | undefined;

  private constructor(collected: Collected, count: number, bytes: number, isSuper: boolean) {
    this.#collected = collected;
    this.count = count;
    this.bytes = bytes;
    this.isSuper = isSuper;
  }

  static of(list: readonly Identity[]): Identities {
    return new Identities(new Collected([...list]), list.length, bytesOf(list), list.some(passesAll));
  }

  get verdicts(): Verdicts {
    return (this.#verdicts ??= new Verdicts());
  }

  at(index: number): Identity {
    return this.#collected.list[index]!;
  }

  has(scheme: string, id: string): boolean {
    if (this.count > searchedMax) return this.#collected.placeOf(scheme, id) < this.count;
    for (let i = 0; i < this.count; i++) {
      const own = this.at(i);
      if (own.scheme === scheme && own.id === id) return true;
    }
    return false;
  }

  toList(): readonly Identity[] {
    const { list } = this.#collected;
    return list.length === this.count ? list : list.slice(0, this.count);
  }

  /** These identities and the new ones of `shown`; undefined if they exceed the limits. */
  with(shown: readonly Identity[], limits: IdentityLimits): Identities | undefined {
    const added = shown.filter(({ scheme, id }, at) => !this.has(scheme, id) && isFirst(shown, at));
    if (added.length === 0) return this;
    const count = this.count + added.length;
    const bytes = this.bytes + bytesOf(added);
    if (count > limits.count || bytes > limits.bytes) return undefined;
    // Only the latest version may append to the shared list.
    const collected = this.#collected.list.length === this.count ? this.#collected : new Collected([...this.toList()]);
    for (const identity of added) collected.push(identity);
    return new Identities(collected, count, bytes, this.isSuper || added.some(passesAll));
  }
}

function passesAll({ scheme }: Identity): boolean {
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
