/**
 * Growing arrays of numbers, in pages.
 *
 * A table with a million rows must never copy itself in one step: that is a stall every connection feels. So a table grows by one page at
 * a time and no number ever moves. Pages are not given back; a table keeps the size of its fullest hour.
 *
 * Two classes, alike but for their arrays: code that sees one kind of array only is compiled to a plain load or store.
 */

const pageBits = 12;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;

export class PagedInts {
  readonly #pages: Int32Array[] = [];

  /** What it holds on to, in bytes. */
  get bytes(): number {
    return this.#pages.length * pageSize * Int32Array.BYTES_PER_ELEMENT;
  }

  /** Makes `index` usable. New numbers are 0. */
  reach(index: number): void {
    while (this.#pages.length <= index >>> pageBits) this.#pages.push(new Int32Array(pageSize));
  }

  /** Beyond what was reached there is nothing: 0. */
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

  reach(index: number): void {
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
