/**
 * Encodes jute, ZooKeeper's record encoding, into a buffer that grows.
 *
 * One writer serves a whole turn of a connection or of the log: values are appended one after the
 * other, and the owner takes the bytes [0, offset) to send them. A frame's length is patched in at
 * its end.
 */
import { highHalf } from './numbers.ts';

const frameLengthBytes = 4;
const shortTextMax = 48;

export class Writer {
  bytes: Buffer;
  /** Offset of the next value; also the number of bytes written. */
  offset = 0;

  constructor(capacity = 256) {
    // Every byte below `offset` has been written, and callers get no others, so the memory need not
    // be cleared.
    this.bytes = Buffer.allocUnsafeSlow(capacity);
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    const needed = this.offset + count;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.offset);
    this.bytes = grown;
  }

  /** The bytes written so far: a view, valid until the next write. */
  written(): Buffer {
    return this.bytes.subarray(0, this.offset);
  }

  clear(): void {
    this.offset = 0;
  }

  int8(value: number): void {
    this.reserve(1);
    this.bytes[this.offset++] = value;
  }

  boolean(value: boolean): void {
    this.int8(value ? 1 : 0);
  }

  int32(value: number): void {
    this.reserve(4);
    this.patchInt32(this.offset, value);
    this.offset += 4;
  }

  /** Overwrites an int written earlier. */
  patchInt32(at: number, value: number): void {
    const b = this.bytes;
    b[at] = value >>> 24;
    b[at + 1] = value >>> 16;
    b[at + 2] = value >>> 8;
    b[at + 3] = value;
  }

  /** A long given as a number within the exact range of numbers.ts. */
  int64(value: number): void {
    this.int64Halves(highHalf(value), value | 0);
  }

  /** A long given as two int32. */
  int64Halves(high: number, low: number): void {
    this.reserve(8);
    this.patchInt32(this.offset, high);
    this.patchInt32(this.offset + 4, low);
    this.offset += 8;
  }

  bigint64(value: bigint): void {
    this.int64Halves(Number(BigInt.asIntN(32, value >> 32n)), Number(BigInt.asIntN(32, value)));
  }

  /** Bytes without a length prefix. */
  raw(source: Uint8Array, start = 0, end: number = source.length): void {
    const count = end - start;
    this.reserve(count);
    if (count <= 48) {
      // A call into the runtime costs more than a short loop.
      const b = this.bytes;
      let at = this.offset;
      for (let i = start; i < end; i++) b[at++] = source[i]!;
    } else {
      this.bytes.set(start === 0 && end === source.length ? source : source.subarray(start, end), this.offset);
    }
    this.offset += count;
  }

  buffer(value: Uint8Array | null): void {
    if (value === null) {
      this.int32(-1);
      return;
    }
    this.int32(value.length);
    this.raw(value);
  }

  ustring(value: string | null): void {
    if (value === null) {
      this.int32(-1);
      return;
    }
    // UTF-8 takes at most three bytes for a UTF-16 code unit, so the text is written first and its
    // length patched in afterwards.
    this.reserve(4 + value.length * 3);
    if (value.length <= shortTextMax && this.#ascii(value)) return;
    const length = this.bytes.write(value, this.offset + 4, 'utf8');
    this.patchInt32(this.offset, length);
    this.offset += 4 + length;
  }

  /**
   * For ASCII text, as nearly all paths are: a call into the runtime costs more than a short loop.
   * Returns false for other text.
   */
  #ascii(value: string): boolean {
    const b = this.bytes;
    let at = this.offset + 4;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) return false;
      b[at++] = code;
    }
    this.patchInt32(this.offset, value.length);
    this.offset = at;
    return true;
  }

  vector<T>(elements: readonly T[] | null, element: (writer: this, value: T) => void): void {
    if (elements === null) {
      this.int32(-1);
      return;
    }
    this.int32(elements.length);
    for (const value of elements) element(this, value);
  }

  /** Begins a frame: leaves room for its length and returns the offset for `endFrame`. */
  beginFrame(): number {
    this.reserve(frameLengthBytes);
    const start = this.offset;
    this.offset += frameLengthBytes;
    return start;
  }

  endFrame(start: number): void {
    this.patchInt32(start, this.offset - start - frameLengthBytes);
  }
}
