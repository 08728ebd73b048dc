/**
 * The fixed part of every znode: one row of 16 int32, in pages of 4096 rows.
 *
 * Links, lengths and counters are numbers in typed arrays, so a million znodes are a few hundred
 * objects for the garbage collector. Parts of variable length (name, data) and the Stat in wire
 * form are in the arena, at `recordField`.
 */

/** A handle > 0, or 0 for no znode. Valid while the znode exists; reused afterwards. */
export type NodeId = number;

export const parentField = 0;
/** The children in order of creation: a list whose first member has the last as its "previous". */
export const firstChildField = 1;
export const nextSiblingField = 2;
export const previousSiblingField = 3;
export const childCountField = 4;
/** Hash of the full path. */
export const hashField = 5;
/** Location in the arena: name, then the wire form of GetDataResponse (data, Stat). */
export const recordField = 6;
export const nameLengthField = 7;
/** -1 for null data. */
export const dataLengthField = 8;
export const aclField = 9;
/**
 * For a container or TTL znode: the raw owner. For an ephemeral: the neighbours in its owner's
 * list, since its Stat holds the raw owner.
 */
export const ownerHighField = 10;
export const ownerLowField = 11;
export const nextOfOwnerField = 10;
export const previousOfOwnerField = 11;
/** The internal counter of creates. */
export const cversionField = 12;
/** The share of the znode in the tree digest, a uint32 stored as int32; 0 if it is not counted. */
export const digestField = 13;
/** Bits 0-1 the kind, bit 2 "below /zookeeper/", bit 3 "children not in order", bits 4-11 the namespace. */
export const flagsField = 14;
/** For a container or TTL znode: its index in the list of znodes to sweep. */
export const sweepField = 15;

const rowInts = 16;
const rowBits = 4;
const pageRows = 4096;
const pageBits = 12;
const pageMask = pageRows - 1;

export class NodeStore {
  readonly #pages: Int32Array[] = [];
  /** First free row that has been used before, linked through `parentField`. */
  #free: NodeId = 0;
  #freeRows = 0;
  /** The first row never used. Row 0 means no znode. */
  #nextUnused: NodeId = 1;

  get memoryBytes(): number {
    return this.#pages.length * pageRows * rowInts * 4;
  }

  /** Size of the free rows, in bytes. */
  get idleBytes(): number {
    return this.#freeRows * rowInts * 4;
  }

  /** The first row never used. */
  get end(): NodeId {
    return this.#nextUnused;
  }

  get(node: NodeId, field: number): number {
    return this.#pages[node >>> pageBits]![((node & pageMask) << rowBits) | field]!;
  }

  set(node: NodeId, field: number, value: number): void {
    this.#pages[node >>> pageBits]![((node & pageMask) << rowBits) | field] = value;
  }

  /** A row with all fields 0. */
  alloc(): NodeId {
    const reused = this.#free;
    if (reused !== 0) {
      this.#free = this.get(reused, parentField);
      this.#freeRows--;
      const page = this.#pages[reused >>> pageBits]!;
      const at = (reused & pageMask) << rowBits;
      page.fill(0, at, at + rowInts);
      return reused;
    }
    const node = this.#nextUnused++;
    if (node >>> pageBits >= this.#pages.length) this.#pages.push(new Int32Array(pageRows * rowInts));
    return node;
  }

  free(node: NodeId): void {
    this.set(node, parentField, this.#free);
    this.#free = node;
    this.#freeRows++;
  }
}
