/**
 * Reads a transaction log, entry by entry, a piece of the file at a time.
 *
 * How a log ends is half of what it says. A clean end is padding or the end of the file; anything else may be a torn tail or rot, and
 * which of the two cannot be told from here. So the reader reports exactly where it stopped and why, and recovery judges.
 */
import { fileHeaderBytes, int64, LogEntryCursor, logMagic, OpCode, txnHeaderBytes, type Zxid } from '@tskeeper/protocol';
import type { ReadableFile } from '../disk.ts';

/** Enough for the disk to be fast, little enough for nobody to notice the memory. */
const pieceBytes = 256 * 1024;
/** Where the zxid stands in a txn, after clientId and cxid, and where its type does, after zxid and time. */
const zxidAt = 12;
const typeAt = 28;

export type LogEndReason =
  /** The file ends behind an entry, or behind the header. */
  | 'end of file'
  /** A length of 0: what was preallocated and not used. */
  | 'padding'
  /** The file ends within an entry. */
  | 'cut entry'
  /** The last byte of an entry is not the one that ends entries. */
  | 'no end mark'
  | 'checksum'
  /** A length that no txn can have. */
  | 'bad length'
  /** The file holds nothing. */
  | 'empty'
  /** The file is shorter than a header, and what is there could be the beginning of one. */
  | 'cut header'
  /** Where the header should be are zeros. */
  | 'zero header'
  | 'bad magic'
  /** The part that was asked for ends here. */
  | 'limit';

/** An entry whose zxid does not come after that of the entry before it. */
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
  /** Entries that were read. */
  readonly count: number;
  /** The zxid of the last whole entry; undefined when there is none. */
  readonly lastZxid: Zxid | undefined;
  /** Checksum of the first entry as it stands in the file, whether or not the entry could be read. */
  readonly firstChecksum: number | undefined;
  /**
   * The first entry that is out of order; undefined when there is none. An error txn may repeat the zxid before it: ZooKeeper logs a request
   * that it could not decode so.
   */
  readonly outOfOrder: OutOfOrder | undefined;
}

/** Gets the bytes [start, end) of a txn that are not what was written, from the entry at `offset`. */
export type OnDamagedTxn = (bytes: Buffer, start: number, end: number, offset: number) => void;

/** Gets each entry's txn: the bytes [start, end), valid during the call only. `offset` is where the entry begins in the file. */
export type OnLoggedTxn = (zxid: Zxid, bytes: Buffer, start: number, end: number, offset: number, entryEndOffset: number) => void;

/** Which part of a log is read. */
export interface LogRange {
  /** Where an entry begins, at which reading starts; without it, at the header, which is judged too. */
  readonly start?: number;
  /** Reading ends before the first entry with a higher zxid. */
  readonly zxidMax?: Zxid;
  /** Reading ends behind the entry with which this many bytes have been read. */
  readonly bytesMax?: number;
}

/**
 * Reads all entries of a log, or those of a part. `txnBytesMax` is the longest txn that could have been written; it only matters for a length that reaches
 * beyond the end of the file, which is then either a cut entry or nonsense.
 *
 * With `visitDamaged`, an entry whose checksum does not fit is handed there and passed over, instead of ending the reading: for tools
 * that show what is behind the damage. Nobody may build a state on what is read that way.
 */
export async function readLog(
  file: ReadableFile,
  txnBytesMax: number,
  visit: OnLoggedTxn,
  visitDamaged?: OnDamagedTxn,
  { start: rangeStart = 0, zxidMax = Infinity, bytesMax = Infinity }: LogRange = {},
): Promise<LogEnd> {
  const size = await file.size();
  let piece = await file.read(rangeStart, pieceBytes);
  /** Where in the file the piece begins. */
  let pieceStart = rangeStart;
  let offset = rangeStart;
  let count = 0;
  let lastZxid: Zxid | undefined;
  let firstChecksum: number | undefined;
  let outOfOrder: OutOfOrder | undefined;
  const end = (reason: LogEndReason): LogEnd => ({ reason, offset, size, count, lastZxid, firstChecksum, outOfOrder });

  if (size === 0) return end('empty');
  if (rangeStart === 0) {
    const headerReason = judgeHeader(piece);
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
        // What is too short for a header was not written by any server, whatever its checksum says.
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
    // The file is ours alone; one that shrinks while it is read would otherwise keep us here for ever.
    if (piece.length < Math.min(wanted, size - offset)) return end('cut entry');
  }
}

/** Any length that fits the file is tried: a txn that can be read is better than a refusal, whatever the limits are today. */
const lengthMax = 0x7fffffff - 13;

const reasons = {
  end: 'end of file',
  padding: 'padding',
  endByte: 'no end mark',
  checksum: 'checksum',
  length: 'bad length',
} as const;

function judgeHeader(bytes: Buffer): LogEndReason | undefined {
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

/** Whether a file holds nothing but zeros. */
export async function isAllZero(file: ReadableFile): Promise<boolean> {
  const size = await file.size();
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = await file.read(at, pieceBytes);
    if (!isZero(piece, 0, piece.length)) return false;
  }
  return true;
}
