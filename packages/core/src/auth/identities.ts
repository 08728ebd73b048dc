/**
 * The identities of a connection as they were at one moment.
 *
 * A request keeps those of the moment it came, while the connection collects further ones. So a version is never changed; but as identities are
 * only ever added, all versions of a connection share one list, and each knows how much of it was there. A further identity costs the same
 * however many there are, and a thousand requests that wait hold one list.
 */
import type { Identity } from './identity.ts';

/** How many identities a connection may have, its address included, and how long they may be as `vector<Id>` without its length. */
export interface IdentityLimits {
  readonly count: number;
  readonly bytes: number;
}

/** Of a vector<Id>: the lengths of scheme and id. */
const lengthBytes = 8;
/** Up to here a search is shorter than a look-up, and no index is made: most connections have one or two. */
const searchedMax = 8;

/** What the versions of one connection share. */
class Collected {
  readonly list: Identity[];
  /** By scheme and id, where in the list an identity is. Made when it is needed first. */
  #places: Map<string, Map<string, number>> | undefined;

  constructor(list: Identity[]) {
    this.list = list;
  }

  /** Where an identity is; beyond the list if it is not there. */
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

/** Questions that have been answered for some identities, by number, a few of them. */
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

  /** See `Permissions`. Most connections meet no list for which one is kept. */
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

  /** These and those of `shown` that are new; undefined if that is more than the limits allow. */
  with(shown: readonly Identity[], limits: IdentityLimits): Identities | undefined {
    const added = shown.filter(({ scheme, id }, at) => !this.has(scheme, id) && isFirst(shown, at));
    if (added.length === 0) return this;
    const count = this.count + added.length;
    const bytes = this.bytes + bytesOf(added);
    if (count > limits.count || bytes > limits.bytes) return undefined;
    // A version that is not the latest may not write into the list that it shares with those after it.
    const collected = this.#collected.list.length === this.count ? this.#collected : new Collected([...this.toList()]);
    for (const identity of added) collected.push(identity);
    return new Identities(collected, count, bytes, this.isSuper || added.some(passesAll));
  }
}

function passesAll({ scheme }: Identity): boolean {
  return scheme === 'super';
}

/** A provider gives few at a time. */
function isFirst(list: readonly Identity[], at: number): boolean {
  const { scheme, id } = list[at]!;
  return list.findIndex((one) => one.scheme === scheme && one.id === id) === at;
}

function bytesOf(list: readonly Identity[]): number {
  let bytes = 0;
  for (const { scheme, id } of list) bytes += lengthBytes + Buffer.byteLength(scheme) + Buffer.byteLength(id);
  return bytes;
}
