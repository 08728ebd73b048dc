/**
 * Reads a transaction log, entry by entry, a piece of the file at a time.
 *
 * The end of a log is half of its meaning. A clean end is padding or the end of the file; anything
 * else may be a torn tail or rot, which the reader cannot distinguish. So it reports exactly where
 * it stopped and why, and recovery decides.
 */
import { fileHeaderBytes, int64, LogEntryCursor, logMagic, OpCode, txnHeaderBytes, type Zxid } from '@tskeeper/protocol';
import type { ReadableFile } from '../disk.ts';

/** Large enough for the disk to be fast, small enough for the memory not to matter. */
const pieceBytes = 256 * 1024;
/** Offset of the zxid in a txn, after clientId and cxid, and of the type, after zxid and time. */
const zxidAt = 12;
const typeAt = 28;

export type LogEndReason =
  /** The file ends after an entry, or after the header. */
  | 'end of file'
  /** A length of 0: preallocated and unused. */
  | 'padding'
  /** The file ends within an entry. */
  | 'cut entry'
  /** The last byte of an entry is not the end mark. */
  | 'no end mark'
  | 'checksum'
  /** A length that no txn can have. */
  | 'bad length'
  /** The file holds nothing. */
  | 'empty'
  /** The file is shorter than a header, and its content could be the beginning of one. */
  | 'cut header'
  /** Zeros in place of the header. */
  | 'zero header'
  | 'bad magic'
  /** The requested part ends here. */
  | 'limit';

/** An entry whose zxid is not larger than that of the entry before it. */
export interface OutOfOrder {
  /** Where the entry begins. */
  readonly offset: number;
  readonly zxid: Zxid;
  /** The zxid of the entry before it. */
  readonly after: Zxid;
}

export interface LogEnd {
  readonly reason: LogEndReason;
  /** One past the last whole entry, or past the header. */
  readonly offset: number;
  readonly size: number;
  /** Number of entries read. */
  readonly count: number;
  /** The zxid of the last whole entry; undefined when there is none. */
  readonly lastZxid: Zxid | undefined;
  /** Checksum of the first entry as stored in the file, whether or not the entry could be read. */
  readonly firstChecksum: number | undefined;
  /**
   * The first entry that is out of order; undefined when there is none. An error txn may repeat the
   * zxid before it: ZooKeeper logs a request that it could not decode that way.
   */
  readonly outOfOrder: OutOfOrder | undefined;
}

/**
 * Receives the bytes [start, end) of a txn that do not match their checksum, from the entry at
 * `offset`.
 */
export type OnDamagedEntry = (bytes: Buffer, start: number, end: number, offset: number) => void;

/**
 * Receives each entry's txn: the bytes [start, end), valid only during the call. `offset` is where
 * the entry begins in the file.
 */
export type OnLogEntry = (zxid: Zxid, bytes: Buffer, start: number, end: number, offset: number, entryEndOffset: number) => void;

/** The part of a log to read. */
export interface LogRange {
  /**
   * The start of an entry at which reading begins; without it, reading begins at the header, which
   * is then checked too.
   */
  readonly start?: number;
  /** Reading ends before the first entry with a higher zxid. */
  readonly zxidMax?: Zxid;
  /** Reading ends after the entry with which this many bytes have been read. */
  readonly bytesMax?: number;
}

/**
 * Reads all entries of a log, or those of a part. `txnBytesMax` is the longest txn that could have
 * been written; it only matters for a length that reaches beyond the end of the file, which is then
 * either a cut entry or nonsense.
 *
 * With `visitDamaged`, an entry with a wrong checksum is passed to it and skipped, and does not end
 * the reading: for tools that show what follows the damage. Never build a state on such a reading.
 */
export async function readLog(
  file: ReadableFile,
  txnBytesMax: number,
  visit: OnLogEntry,
  visitDamaged?: OnDamagedEntry,
  { start: rangeStart = 0, zxidMax = Infinity, bytesMax = Infinity }: LogRange = {},
): Promise<LogEnd> {
  const size = await file.size();
  let piece = await file.read(rangeStart, pieceBytes);
  /** Offset of the piece in the file. */
  let pieceStart = rangeStart;
  let offset = rangeStart;
  let count = 0;
  let lastZxid: Zxid | undefined;
  let firstChecksum: number | undefined;
  let outOfOrder: OutOfOrder | undefined;
  const end = (reason: LogEndReason): LogEnd => ({ reason, offset, size, count, lastZxid, firstChecksum, outOfOrder });

  if (size === 0) return end('empty');
  if (rangeStart === 0) {
    const headerReason = checkHeader(piece);
    if (headerReason !== undefined) return end(headerReason);
    offset = fileHeaderBytes;
  }
  const first = offset;

  const cursor = new LogEntryCursor(lengthMax);
  for (;;) {
    let wanted = 0;
    while (wanted === 0) {
      const at = offset - pieceStart;
      const left = piece.length - at;
      const outcome = cursor.read(piece, at, piece.length);
      if (offset === fileHeaderBytes && left >= 8) firstChecksum = piece.readUInt32BE(at + 4);
      if (outcome === 'entry') {
        const start = cursor.txnStart;
        // A txn shorter than a header was not written by any server, whatever its checksum says.
        if (cursor.txnEnd - start < txnHeaderBytes) return end('bad length');
        const zxid = int64(piece.readInt32BE(start + zxidAt), piece.readInt32BE(start + zxidAt + 4));
        if (zxid > zxidMax) return end('limit');
        if (outOfOrder === undefined && lastZxid !== undefined && zxid <= lastZxid) {
          const isRepeatedByError = zxid === lastZxid && piece.readInt32BE(start + typeAt) === OpCode.error;
          if (!isRepeatedByError) outOfOrder = { offset, zxid, after: lastZxid };
        }
        const next = cursor.next + pieceStart;
        visit(zxid, piece, start, cursor.txnEnd, offset, next);
        offset = next;
        lastZxid = zxid;
        count++;
        if (offset - first >= bytesMax) return end('limit');
      } else if (outcome === 'checksum' && visitDamaged !== undefined) {
        visitDamaged(piece, cursor.txnStart, cursor.txnEnd, offset);
        offset = cursor.next + pieceStart;
      } else if ((outcome === 'end' || outcome === 'cut') && pieceStart + piece.length < size) {
        const entryBytes = cursor.next - at;
        if (offset + entryBytes > size) return end(entryBytes > txnBytesMax ? 'bad length' : 'cut entry');
        wanted = Math.max(1, entryBytes);
      } else if (outcome === 'cut') {
        if (left < 12 && isZero(piece, at, piece.length)) return end('padding');
        return end(cursor.next - at > txnBytesMax ? 'bad length' : 'cut entry');
      } else {
        return end(reasons[outcome]);
      }
    }
    pieceStart = offset;
    piece = await file.read(offset, Math.max(pieceBytes, wanted));
    // No other process writes the file; without this check, a file that shrinks during the reading
    // would loop forever.
    if (piece.length < Math.min(wanted, size - offset)) return end('cut entry');
  }
}

/**
 * Any length that fits the file is tried: a txn that can be read is better than a refusal, whatever
 * the limits are today.
 */
const lengthMax = 0x7fffffff - 13;

const reasons = {
  end: 'end of file',
  padding: 'padding',
  endByte: 'no end mark',
  checksum: 'checksum',
  length: 'bad length',
} as const;

function checkHeader(bytes: Buffer): LogEndReason | undefined {
  const header = bytes.subarray(0, fileHeaderBytes);
  if (header.length === fileHeaderBytes && header.readInt32BE(0) === logMagic) return undefined;
  if (isZero(header, 0, header.length)) return 'zero header';
  if (header.length < fileHeaderBytes) {
    const expected = Buffer.alloc(4);
    expected.writeInt32BE(logMagic);
    if (expected.subarray(0, header.length).equals(header.subarray(0, 4))) return 'cut header';
  }
  return 'bad magic';
}

function isZero(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] !== 0) return false;
  return true;
}

/** Whether a file contains only zeros. */
export async function isAllZero(file: ReadableFile): Promise<boolean> {
  const size = await file.size();
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = await file.read(at, pieceBytes);
    if (!isZero(piece, 0, piece.length)) return false;
  }
  return true;
}
