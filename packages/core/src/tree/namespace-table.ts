/**
 * Numbers for namespaces, so that requests can be counted by namespace without parsing a path. A
 * namespace is the first name of a path: `app` of /app/config. Each znode stores the number of its
 * namespace, which it inherits from its parent.
 *
 * There are 254 numbers. One is assigned when a znode is created below the root, and kept when that
 * is deleted: counters by number continue to show earlier requests. Only when none is left is the
 * one unused for longest assigned to another namespace. Namespaces without a number of their own
 * share one, named `/`, which no znode can have. So clients that create znodes below the root
 * cannot grow the table, nor counters indexed by it.
 */
export type NamespaceId = number;

/** The number of the root, which is in no namespace. */
export const noNamespace: NamespaceId = 0;
/** Above every number. */
export const namespaceIdEnd = 256;

const othersId: NamespaceId = namespaceIdEnd - 1;
const othersName = '/';
/** In UTF-16 units. Users of the table must not have to store names of a megabyte. */
const nameLengthMax = 256;

export class NamespaceTable {
  /** By number; the first is unused. */
  readonly #names = [''];
  readonly #byName = new Map<string, NamespaceId>();
  /** Numbers whose znode has been deleted, in order of deletion. */
  readonly #unused = new Set<NamespaceId>();
  #othersUsed = false;
  /** Called when a number gets its name. */
  onAssigned: (id: NamespaceId, name: string) => void = () => {};

  /** A znode of this name has been created below the root. */
  acquire(name: string): NamespaceId {
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
    this.onAssigned(id, name);
    return id;
  }

  /**
   * The znode below the root with this number has been deleted, and so have all others of the
   * namespace.
   */
  release(id: NamespaceId): void {
    if (id !== othersId) this.#unused.add(id);
  }

  /** The number of a namespace, or the shared one. */
  find(name: string): NamespaceId {
    return this.#byName.get(name) ?? this.#others();
  }

  *entries(): Generator<readonly [NamespaceId, string], void, undefined> {
    for (const [id, name] of this.#names.entries()) if (id !== noNamespace) yield [id, name];
    if (this.#othersUsed) yield [othersId, othersName];
  }

  #takeUnused(): NamespaceId | undefined {
    const [id] = this.#unused;
    if (id === undefined) return undefined;
    this.#unused.delete(id);
    this.#byName.delete(this.#names[id]!);
    return id;
  }

  #others(): NamespaceId {
    if (!this.#othersUsed) {
      this.#othersUsed = true;
      this.onAssigned(othersId, othersName);
    }
    return othersId;
  }
}
