/**
 * Memory for many byte strings of all lengths, outside the JavaScript heap.
 *
 * A million small Buffers would cost a hundred bytes each and a long pause of the garbage
 * collector. Here bytes are in pages of 256 KiB, each divided into slots of one size; a slot is
 * identified by a plain number. A page with only free slots is reused for another size, so memory
 * follows the content. Strings longer than 32 KiB have their own buffer.
 *
 * Slot sizes are multiples of 16 bytes up to 512, and above that eight per doubling, so at most an
 * eighth of a slot is unused.
 */
import { int32At, putInt32 } from './bytes.ts';

/**
 * The position of bytes: page << 14 | offset / 16, or the complement of an index into the long
 * ones.
 */
export type Location = number;

const pageBytes = 256 * 1024;
const unitBytes = 16;
const unitBits = 14;
const unitMask = (1 << unitBits) - 1;
const fineBytesMax = 512;
const fineClasses = fineBytesMax / unitBytes;
const slotBytesMax = 32 * 1024;
/** Ends a page's list of free slots. */
const noUnit = -1;
const noPage = -1;
/** Empty pages kept for reuse before memory is released. */
const emptyPagesKept = 16;
/** 32 GiB; a higher page number would not fit into a location. */
const pagesMax = 1 << (31 - unitBits);

const classBytes: number[] = [];
for (let bytes = unitBytes; bytes <= fineBytesMax; bytes += unitBytes) classBytes.push(bytes);
for (let base = fineBytesMax; base < slotBytesMax; base *= 2) {
  for (let eighth = 1; eighth <= 8; eighth++) classBytes.push(base + (base / 8) * eighth);
}

function classFor(bytes: number): number {
  if (bytes <= fineBytesMax) return bytes === 0 ? 0 : (bytes - 1) >>> 4;
  const above = bytes - 1;
  const doubling = 31 - Math.clz32(above);
  // 512 is 2^9, and each doubling above it has eight classes.
  return fineClasses + (doubling - 9) * 8 + ((above >>> (doubling - 3)) & 7);
}

interface Page {
  bytes: Buffer;
  slotClass: number;
  used: number;
  /** First free slot that has been used before, in units. */
  free: number;
  /** Offset of the part that was never used, in bytes. */
  unusedStart: number;
  /** Neighbours among the pages of this class that have a free slot. */
  next: number;
  previous: number;
}

export class ByteArena {
  readonly #pages: (Page | undefined)[] = [];
  /** The bytes of each page again, for the fastest access. */
  readonly #buffers: Buffer[] = [];
  readonly #unusedPageNumbers: number[] = [];
  readonly #emptyPages: number[] = [];
  /** By class: the first page with a free slot. */
  readonly #withRoom: number[] = classBytes.map(() => noPage);
  readonly #long: Buffer[] = [];
  readonly #unusedLong: number[] = [];
  #memoryBytes = 0;
  #idleBytes = 0;
  /** The maximum of `#memoryBytes` so far. */
  #peakBytes = 0;

  /** Unused part of the memory, in bytes. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** The difference between the peak and the present memory, in bytes. */
  get releasedBytes(): number {
    return this.#peakBytes - this.#memoryBytes;
  }

  /** Total memory, in bytes. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  alloc(bytes: number): Location {
    if (bytes > slotBytesMax) return this.#allocLong(bytes);
    const slotClass = classFor(bytes);
    let number = this.#withRoom[slotClass]!;
    if (number === noPage) number = this.#addPage(slotClass);
    const page = this.#pages[number]!;
    let unit = page.free;
    if (unit === noUnit) {
      unit = page.unusedStart / unitBytes;
      page.unusedStart += classBytes[slotClass]!;
    } else {
      page.free = int32At(page.bytes, unit * unitBytes);
    }
    page.used++;
    this.#idleBytes -= classBytes[slotClass]!;
    if (page.free === noUnit && page.unusedStart + classBytes[slotClass]! > pageBytes) this.#unlink(page);
    return (number << unitBits) | unit;
  }

  free(location: Location): void {
    if (location < 0) {
      this.#freeLong(~location);
      return;
    }
    const number = location >>> unitBits;
    const page = this.#pages[number]!;
    const wasFull = page.free === noUnit && page.unusedStart + classBytes[page.slotClass]! > pageBytes;
    const unit = location & unitMask;
    putInt32(page.bytes, unit * unitBytes, page.free);
    page.free = unit;
    page.used--;
    this.#idleBytes += classBytes[page.slotClass]!;
    if (wasFull) this.#link(number, page);
    if (page.used === 0) this.#pageEmptied(number, page);
  }

  /** True if `bytes` fit into the slot at `location`, and no smaller slot would do. */
  fits(location: Location, bytes: number): boolean {
    if (location < 0) return this.#long[~location]!.length === bytes;
    return bytes <= slotBytesMax && this.#pages[location >>> unitBits]!.slotClass === classFor(bytes);
  }

  /** The buffer that contains the bytes, from `offsetOf` on. */
  bufferOf(location: Location): Buffer {
    return location >= 0 ? this.#buffers[location >>> unitBits]! : this.#long[~location]!;
  }

  offsetOf(location: Location): number {
    return location >= 0 ? (location & unitMask) * unitBytes : 0;
  }

  #addPage(slotClass: number): number {
    const kept = this.#emptyPages.pop();
    const number = kept ?? this.#unusedPageNumbers.pop() ?? this.#pages.length;
    if (number >= pagesMax) throw new Error(`the tree holds more than ${pagesMax} pages of ${pageBytes} bytes`);
    // Callers write a whole slot before it is read, so the memory need not be cleared.
    const bytes = kept === undefined ? Buffer.allocUnsafeSlow(pageBytes) : this.#buffers[kept]!;
    if (kept === undefined) {
      this.#countTaken(pageBytes);
      this.#idleBytes += pageBytes;
    }
    const page: Page = { bytes, slotClass, used: 0, free: noUnit, unusedStart: 0, next: noPage, previous: noPage };
    this.#pages[number] = page;
    this.#buffers[number] = bytes;
    this.#link(number, page);
    return number;
  }

  #link(number: number, page: Page): void {
    const first = this.#withRoom[page.slotClass]!;
    page.next = first;
    page.previous = noPage;
    if (first !== noPage) this.#pages[first]!.previous = number;
    this.#withRoom[page.slotClass] = number;
  }

  #unlink(page: Page): void {
    if (page.previous === noPage) this.#withRoom[page.slotClass] = page.next;
    else this.#pages[page.previous]!.next = page.next;
    if (page.next !== noPage) this.#pages[page.next]!.previous = page.previous;
  }

  #pageEmptied(number: number, page: Page): void {
    this.#unlink(page);
    this.#pages[number] = undefined;
    if (this.#emptyPages.length < emptyPagesKept) {
      this.#emptyPages.push(number);
      return;
    }
    this.#buffers[number] = noBuffer;
    this.#unusedPageNumbers.push(number);
    this.#memoryBytes -= pageBytes;
    this.#idleBytes -= pageBytes;
  }

  #countTaken(bytes: number): void {
    this.#memoryBytes += bytes;
    if (this.#memoryBytes > this.#peakBytes) this.#peakBytes = this.#memoryBytes;
  }

  #allocLong(bytes: number): Location {
    const index = this.#unusedLong.pop() ?? this.#long.length;
    this.#long[index] = Buffer.allocUnsafeSlow(bytes);
    this.#countTaken(bytes);
    return ~index;
  }

  #freeLong(index: number): void {
    this.#memoryBytes -= this.#long[index]!.length;
    this.#long[index] = noBuffer;
    this.#unusedLong.push(index);
  }
}

const noBuffer = Buffer.alloc(0);
