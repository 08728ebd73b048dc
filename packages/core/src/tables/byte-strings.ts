/**
 * Stores many short byte strings outside the JavaScript heap: a million watched paths are then a
 * few hundred objects for the garbage collector, not a million. Strings are in cells of 8, 16, 24
 * ... 512 bytes; a chunk of 64 KiB has cells of one size and is released when its last cell is
 * freed, so memory follows usage. Longer strings have one buffer each.
 */

/** Identifies a string from `put` to `free`. */
export type StringAddress = number;

const unitBytes = 8;
const chunkBytes = 65536;
/** Bits of an address for the unit within the chunk: 8192 units. */
const unitBits = 13;
const unitMask = (1 << unitBits) - 1;
/** Before each string in a cell. */
const lengthBytes = 2;
const cellBytesMax = 512;
const none = -1;

interface Chunk {
  readonly bytes: Buffer;
  /** Units per cell. */
  readonly cell: number;
  used: number;
  /** Freed cells, linked through their first four bytes. */
  free: number;
  /** The first unit never used so far. */
  nextUnused: number;
  /** Whether it is in the list of chunks with room, and its neighbours there. */
  isListed: boolean;
  next: number;
  previous: number;
}

export class ByteStrings {
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #unusedChunks: number[] = [];
  /** By units per cell: the first chunk with room. */
  readonly #chunksWithRoom = new Int32Array(cellBytesMax / unitBytes + 1).fill(none);
  readonly #large: (Buffer | undefined)[] = [];
  readonly #unusedLarge: number[] = [];
  #bytes = 0;

  /** Memory in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  put(source: Buffer, start: number, end: number): StringAddress {
    const length = end - start;
    if (length + lengthBytes > cellBytesMax) return this.#putLarge(source, start, end);
    const cell = Math.ceil((length + lengthBytes) / unitBytes);
    let at = this.#chunksWithRoom[cell]!;
    if (at === none) at = this.#addChunk(cell);
    const chunk = this.#chunks[at]!;
    let unit = chunk.free;
    if (unit === none) {
      unit = chunk.nextUnused;
      chunk.nextUnused += cell;
    } else {
      chunk.free = chunk.bytes.readInt32LE(unit * unitBytes);
    }
    chunk.used++;
    if (chunk.free === none && chunk.nextUnused + cell > unitMask + 1) this.#unlist(chunk);
    const offset = unit * unitBytes;
    chunk.bytes[offset] = length & 0xff;
    chunk.bytes[offset + 1] = length >>> 8;
    source.copy(chunk.bytes, offset + lengthBytes, start, end);
    return (at << unitBits) | unit;
  }

  free(address: StringAddress): void {
    if (address < 0) {
      this.#freeLarge(-1 - address);
      return;
    }
    const at = address >>> unitBits;
    const chunk = this.#chunks[at]!;
    chunk.bytes.writeInt32LE(chunk.free, (address & unitMask) * unitBytes);
    chunk.free = address & unitMask;
    chunk.used--;
    if (!chunk.isListed) this.#list(at, chunk);
    // The last chunk with room is kept, so that adding and removing one string does not allocate
    // each time.
    if (chunk.used === 0 && (chunk.next !== none || chunk.previous !== none)) {
      this.#unlist(chunk);
      this.#chunks[at] = undefined;
      this.#unusedChunks.push(at);
      this.#bytes -= chunkBytes;
    }
  }

  equals(address: StringAddress, other: Buffer, start: number, end: number): boolean {
    const length = end - start;
    let bytes: Buffer;
    let offset = 0;
    if (address < 0) {
      bytes = this.#large[-1 - address]!;
      if (bytes.length !== length) return false;
    } else {
      bytes = this.#chunks[address >>> unitBits]!.bytes;
      offset = (address & unitMask) * unitBytes;
      if ((bytes[offset]! | (bytes[offset + 1]! << 8)) !== length) return false;
      offset += lengthBytes;
    }
    for (let i = 0; i < length; i++) {
      if (bytes[offset + i] !== other[start + i]) return false;
    }
    return true;
  }

  text(address: StringAddress): string {
    if (address < 0) return this.#large[-1 - address]!.toString('utf8');
    const bytes = this.#chunks[address >>> unitBits]!.bytes;
    const offset = (address & unitMask) * unitBytes;
    const start = offset + lengthBytes;
    return bytes.toString('utf8', start, start + (bytes[offset]! | (bytes[offset + 1]! << 8)));
  }

  #putLarge(source: Buffer, start: number, end: number): StringAddress {
    const at = this.#unusedLarge.pop() ?? this.#large.length;
    const bytes = Buffer.allocUnsafeSlow(end - start);
    source.copy(bytes, 0, start, end);
    this.#large[at] = bytes;
    this.#bytes += bytes.length;
    return -1 - at;
  }

  #freeLarge(at: number): void {
    this.#bytes -= this.#large[at]!.length;
    this.#large[at] = undefined;
    this.#unusedLarge.push(at);
  }

  #addChunk(cell: number): number {
    const at = this.#unusedChunks.pop() ?? this.#chunks.length;
    const bytes = Buffer.allocUnsafeSlow(chunkBytes);
    const chunk: Chunk = { bytes, cell, used: 0, free: none, nextUnused: 0, isListed: false, next: none, previous: none };
    this.#chunks[at] = chunk;
    this.#bytes += chunkBytes;
    this.#list(at, chunk);
    return at;
  }

  #list(at: number, chunk: Chunk): void {
    const first = this.#chunksWithRoom[chunk.cell]!;
    chunk.isListed = true;
    chunk.previous = none;
    chunk.next = first;
    if (first !== none) this.#chunks[first]!.previous = at;
    this.#chunksWithRoom[chunk.cell] = at;
  }

  #unlist(chunk: Chunk): void {
    if (chunk.previous === none) this.#chunksWithRoom[chunk.cell] = chunk.next;
    else this.#chunks[chunk.previous]!.next = chunk.next;
    if (chunk.next !== none) this.#chunks[chunk.next]!.previous = chunk.previous;
    chunk.isListed = false;
    chunk.next = none;
    chunk.previous = none;
  }
}
