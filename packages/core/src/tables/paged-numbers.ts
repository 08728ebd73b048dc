/**
 * Growing arrays of numbers, in pages.
 *
 * A table with a million rows must never be copied in one step, which would stall every connection.
 * So a table grows one page at a time and no number ever moves. Pages are not released; a table
 * keeps its peak size.
 *
 * Two classes that differ only in their arrays: code that sees one kind of array is compiled to a
 * plain load or store.
 */

const pageBits = 12;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;

export class PagedInts {
  readonly #pages: Int32Array[] = [];

  /** Memory in bytes. */
  get bytes(): number {
    return this.#pages.length * pageSize * Int32Array.BYTES_PER_ELEMENT;
  }

  /** Makes `index` usable. New numbers are 0. */
  ensure(index: number): void {
    while (this.#pages.length <= index >>> pageBits) this.#pages.push(new Int32Array(pageSize));
  }

  /** 0 beyond the last index reached. */
  peek(index: number): number {
    const page = this.#pages[index >>> pageBits];
    return page === undefined ? 0 : page[index & pageMask]!;
  }

  get(index: number): number {
    return this.#pages[index >>> pageBits]![index & pageMask]!;
  }

  set(index: number, value: number): void {
    this.#pages[index >>> pageBits]![index & pageMask] = value;
  }
}

export class PagedDoubles {
  readonly #pages: Float64Array[] = [];

  get bytes(): number {
    return this.#pages.length * pageSize * Float64Array.BYTES_PER_ELEMENT;
  }

  ensure(index: number): void {
    while (this.#pages.length <= index >>> pageBits) this.#pages.push(new Float64Array(pageSize));
  }

  peek(index: number): number {
    const page = this.#pages[index >>> pageBits];
    return page === undefined ? 0 : page[index & pageMask]!;
  }

  get(index: number): number {
    return this.#pages[index >>> pageBits]![index & pageMask]!;
  }

  set(index: number, value: number): void {
    this.#pages[index >>> pageBits]![index & pageMask] = value;
  }
}
