/**
 * Numbers for the namespaces, so that what a request was about can be counted by it without looking at a path. A namespace is the first
 * name of a path: `app` of /app/config. Each znode keeps the number of its own, which it has from its parent.
 *
 * There are 254 numbers. One is given out when a znode comes into being below the root, and kept when that is deleted: whoever counts by it
 * goes on to show what was. Only when there is none left is the one that has been unused for longest given to another namespace. Those for
 * which there is none are numbered together, and called `/`, which no znode can be. So clients that create znodes below the root cannot
 * grow the table, nor whatever is kept by its numbers.
 */
export type NamespaceId = number;

/** Of the root, which is in no namespace. */
export const noNamespace: NamespaceId = 0;
/** Every number is below. */
export const namespaceIdEnd = 256;

const othersId: NamespaceId = namespaceIdEnd - 1;
const othersName = '/';
/** In UTF-16 units. Whoever keeps names shall not have to keep a megabyte of each. */
const nameLengthMax = 256;

export class NamespaceTable {
  /** By number; the first is nobody's. */
  readonly #names = [''];
  readonly #byName = new Map<string, NamespaceId>();
  /** Numbers whose znode has been deleted, first those that have been unused for longest. */
  readonly #unused = new Set<NamespaceId>();
  #othersMet = false;
  /** Told whenever a number gets its name. */
  named: (id: NamespaceId, name: string) => void = () => {};

  /** A znode of this name has come into being below the root. */
  enter(name: string): NamespaceId {
    const known = this.#byName.get(name);
    if (known !== undefined) {
      this.#unused.delete(known);
      return known;
    }
    if (name.length > nameLengthMax) return this.#others();
    const id = this.#names.length < othersId ? this.#names.length : this.#takeUnused();
    if (id === undefined) return this.#others();
    this.#names[id] = name;
    this.#byName.set(name, id);
    this.named(id, name);
    return id;
  }

  /** The znode below the root that had this number is gone, and with it all others of the namespace. */
  leave(id: NamespaceId): void {
    if (id !== othersId) this.#unused.add(id);
  }

  /** The number of a namespace that has one of its own, or the common one. */
  find(name: string): NamespaceId {
    return this.#byName.get(name) ?? this.#others();
  }

  *entries(): Generator<readonly [NamespaceId, string], void, undefined> {
    for (const [id, name] of this.#names.entries()) if (id !== noNamespace) yield [id, name];
    if (this.#othersMet) yield [othersId, othersName];
  }

  #takeUnused(): NamespaceId | undefined {
    const [id] = this.#unused;
    if (id === undefined) return undefined;
    this.#unused.delete(id);
    this.#byName.delete(this.#names[id]!);
    return id;
  }

  #others(): NamespaceId {
    if (!this.#othersMet) {
      this.#othersMet = true;
      this.named(othersId, othersName);
    }
    return othersId;
  }
}
