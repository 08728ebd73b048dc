/**
 * Decodes jute, ZooKeeper's record encoding: big-endian numbers, length-prefixed text and buffers,
 * no tags.
 *
 * A reader is placed over bytes it does not own and returns views into them, so a caller copies
 * what it keeps. Nothing is allocated by an announced length: a length is first compared with the
 * bytes available. A reader throws only `ProtocolError`.
 */
import { int64, sessionIdOf } from './numbers.ts';
import { ProtocolError } from './protocol-error.ts';

const none = Buffer.alloc(0);

export class Reader {
  bytes: Buffer = none;
  /** Offset of the next value. */
  offset = 0;
  /** The end of the record. Invariant: offset <= limit <= bytes.length. */
  limit = 0;
  /** Start of the bytes found by `range`. */
  rangeStart = 0;
  /** End of the bytes found by `range`. */
  rangeEnd = 0;
  /**
   * Longest buffer or text accepted, in bytes: jute.maxbuffer plus its extra. The margin lets a
   * server read from its log everything it accepted from the wire.
   */
  lengthMax = 0x7fffffff;

  constructor(bytes?: Buffer, offset = 0, limit: number = bytes?.length ?? 0) {
    if (bytes !== undefined) this.wrap(bytes, offset, limit);
  }

  /** Places this reader over other bytes. */
  wrap(bytes: Buffer, offset: number, limit: number): this {
    this.bytes = bytes;
    this.offset = offset;
    this.limit = limit;
    return this;
  }

  get remaining(): number {
    return this.limit - this.offset;
  }

  #need(count: number, expected: string): number {
    const start = this.offset;
    if (this.limit - start < count) throw new ProtocolError(expected, start);
    this.offset = start + count;
    return start;
  }

  int8(): number {
    const at = this.#need(1, 'a byte');
    return (this.bytes[at]! << 24) >> 24;
  }

  /** Any byte except 0 is true, as in Java. */
  boolean(): boolean {
    return this.bytes[this.#need(1, 'a boolean')] !== 0;
  }

  int32(): number {
    const at = this.#need(4, 'an int');
    const b = this.bytes;
    return (b[at]! << 24) | (b[at + 1]! << 16) | (b[at + 2]! << 8) | b[at + 3]!;
  }

  /** A long as a number; see numbers.ts for values above 2^53. */
  int64(): number {
    const at = this.#need(8, 'a long');
    const b = this.bytes;
    const high = (b[at]! << 24) | (b[at + 1]! << 16) | (b[at + 2]! << 8) | b[at + 3]!;
    const low = (b[at + 4]! << 24) | (b[at + 5]! << 16) | (b[at + 6]! << 8) | b[at + 7]!;
    return int64(high, low);
  }

  /**
   * A long that is stored or sent on, and must not be rounded: throws a ProtocolError beyond the
   * exact range.
   */
  exactInt64(expected = 'a long'): number {
    const at = this.offset;
    const value = this.int64();
    if (!Number.isSafeInteger(value)) throw new ProtocolError(`${expected} below 2^53`, at);
    return value;
  }

  /** A long with all its 64 bits. */
  bigint64(): bigint {
    const high = this.int32();
    return sessionIdOf(high, this.int32());
  }

  /**
   * Finds the next buffer or text without decoding it: its bytes are [rangeStart, rangeEnd).
   * Returns false for null (length -1).
   */
  range(expected = 'a buffer'): boolean {
    const at = this.offset;
    const length = this.int32();
    if (length === -1) {
      this.rangeStart = this.rangeEnd = this.offset;
      return false;
    }
    if (length < 0 || length > this.lengthMax) {
      throw new ProtocolError(`${expected} of a reasonable length, not ${length}`, at);
    }
    this.rangeStart = this.#need(length, `${length} bytes of ${expected}`);
    this.rangeEnd = this.offset;
    return true;
  }

  /** A view of the bytes, valid as long as the reader's own bytes are. */
  buffer(): Buffer | null {
    return this.range() ? this.bytes.subarray(this.rangeStart, this.rangeEnd) : null;
  }

  /** The rest of the bytes: a view, as from `buffer`. */
  remainingBytes(): Buffer {
    const at = this.offset;
    this.offset = this.limit;
    return this.bytes.subarray(at, this.limit);
  }

  /** UTF-8 text. Malformed bytes become U+FFFD without an error, as in Java. */
  ustring(): string | null {
    return this.range('text') ? this.bytes.toString('utf8', this.rangeStart, this.rangeEnd) : null;
  }

  /** Text that must not be null, such as the path of a request. */
  text(expected: string): string {
    const at = this.offset;
    const value = this.ustring();
    if (value === null) throw new ProtocolError(`${expected}, not null`, at);
    return value;
  }

  /**
   * The count at the start of a vector: -1 for null, which differs from 0; any other negative count
   * means empty, as in Java. `elementBytesMin` is the minimum size of an element; a count that
   * cannot fit is refused before a caller loops over it.
   */
  count(elementBytesMin: number): number {
    const at = this.offset;
    const count = this.int32();
    if (count < 0) return count === -1 ? -1 : 0;
    if (count * elementBytesMin > this.remaining) {
      throw new ProtocolError(`${count} elements of at least ${elementBytesMin} bytes`, at);
    }
    return count;
  }

  /** The elements one after the other, or null. See `count` for `elementBytesMin`. */
  vector<T>(elementBytesMin: number, element: (reader: this) => T): T[] | null {
    const count = this.count(elementBytesMin);
    if (count === -1) return null;
    const elements: T[] = [];
    for (let i = 0; i < count; i++) elements.push(element(this));
    return elements;
  }
}
