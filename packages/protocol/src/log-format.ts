/**
 * The frame of an entry in a transaction log:
 *
 *     long checksum    Adler-32 of the txn
 *     int  length
 *     byte txn[length]
 *     byte 0x42
 *
 * A log is a file header, entries, and then zeros, since the file grows by large steps ahead of its content. So a length of 0 is where
 * a log ends. What the other ways of ending mean, a tail torn by a crash or rot, is for the one who reads the file to judge.
 */
import { adler32 } from './adler32.ts';
import type { FileHeader } from './file-header.ts';
import type { Writer } from './writer.ts';

/** "ZKLG" */
export const logMagic = 0x5a4b4c47;
export const logFileHeader: FileHeader = Object.freeze({ magic: logMagic, version: 2, dbid: 0 });

/** Before the txn: checksum and length. */
export const logEntryHeadBytes = 12;
/** What an entry takes besides its txn. */
export const logEntryFrameBytes = 13;
/** "B" */
export const logEntryEndByte = 0x42;

/** Adds the entry for the txn in [start, end). */
export function writeLogEntry(writer: Writer, txn: Uint8Array, start = 0, end: number = txn.length): void {
  writer.reserve(logEntryFrameBytes + end - start);
  writer.halves(0, adler32(txn, start, end));
  writer.int32(end - start);
  writer.raw(txn, start, end);
  writer.int8(logEntryEndByte);
}

export type LogEntryOutcome =
  /** A whole entry with the right checksum. */
  | 'entry'
  /** A whole entry whose checksum is not that of its txn. */
  | 'checksum'
  /** No bytes at all. */
  | 'end'
  /** A length of 0. */
  | 'padding'
  /** The bytes end inside the entry. */
  | 'cut'
  /** The byte behind the txn is not the one that ends an entry. */
  | 'endByte'
  /** A length that no entry may have. */
  | 'length';

/** Finds one entry after the other, without copying. */
export class LogEntryCursor {
  /** Of the entry found last: its txn is [txnStart, txnEnd), and the next entry begins at `next`. */
  txnStart = 0;
  txnEnd = 0;
  next = 0;
  readonly #lengthMax: number;

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /**
   * Looks at the entry that begins at `at`, where nothing at or behind `limit` may be looked at. The fields tell where it lies as soon
   * as its length is known, also when the outcome is not `entry`.
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
