/**
 * The frame of an entry in a transaction log:
 *
 *     long checksum    Adler-32 of the txn
 *     int  length
 *     byte txn[length]
 *     byte 0x42
 *
 * A log is a file header, entries, and then zeros, since the file is extended in large steps. So a
 * length of 0 is the end of a log. The reader of the file decides the meaning of other ends, such
 * as a tail torn by a crash or corruption.
 */
import { adler32 } from './adler32.ts';
import type { FileHeader } from './file-header.ts';
import type { Writer } from '../jute/writer.ts';

/** "ZKLG" */
export const logMagic = 0x5a4b4c47;
export const logFileHeader: FileHeader = Object.freeze({ magic: logMagic, version: 2, dbid: 0 });

/** Bytes before the txn: checksum and length. */
export const logEntryHeadBytes = 12;
/** Bytes of an entry besides its txn. */
export const logEntryFrameBytes = 13;
/** "B" */
export const logEntryEndByte = 0x42;

/** Appends the entry for the txn in [start, end). */
export function writeLogEntry(writer: Writer, txn: Uint8Array, start = 0, end: number = txn.length): void {
  writer.reserve(logEntryFrameBytes + end - start);
  writer.int64Halves(0, adler32(txn, start, end));
  writer.int32(end - start);
  writer.raw(txn, start, end);
  writer.int8(logEntryEndByte);
}

export type LogEntryOutcome =
  /** A complete entry with the right checksum. */
  | 'entry'
  /** A complete entry with a wrong checksum. */
  | 'checksum'
  /** No bytes at all. */
  | 'end'
  /** A length of 0. */
  | 'padding'
  /** The bytes end inside the entry. */
  | 'cut'
  /** The byte after the txn is not the end byte of an entry. */
  | 'endByte'
  /** An invalid length. */
  | 'length';

/** Finds one entry after the other, without copying. */
export class LogEntryCursor {
  /** The entry found last: its txn is [txnStart, txnEnd), and the next entry begins at `next`. */
  txnStart = 0;
  txnEnd = 0;
  next = 0;
  readonly #lengthMax: number;

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /**
   * Examines the entry that begins at `at`, and no byte at `limit` or after it. The fields are set
   * as soon as its length is known, even if the result is not `entry`.
   */
  read(bytes: Buffer, at: number, limit: number): LogEntryOutcome {
    this.txnStart = this.txnEnd = this.next = at;
    if (at >= limit) return 'end';
    if (limit - at < logEntryHeadBytes) return 'cut';
    const length = bytes.readInt32BE(at + 8);
    if (length === 0) return 'padding';
    if (length < 0 || length > this.#lengthMax) return 'length';
    this.txnStart = at + logEntryHeadBytes;
    this.txnEnd = this.txnStart + length;
    this.next = this.txnEnd + 1;
    if (this.next > limit) return 'cut';
    if (bytes[this.txnEnd] !== logEntryEndByte) return 'endByte';
    const checksum = adler32(bytes, this.txnStart, this.txnEnd);
    return bytes.readInt32BE(at) === 0 && bytes.readUInt32BE(at + 4) === checksum ? 'entry' : 'checksum';
  }
}
