/** Reads transaction logs for the tools, with the server's own readers. */
import { ProtocolError, Reader, type TxnLogEntry, readTxn, type Zxid } from '@tskeeper/protocol';
import { type LogEnd, markName, type ReadableFile, readLog } from '@tskeeper/runtime';
import { decodeMark, describeLogEnd, isAllZero, markBytes, type OrphanMark, type SyncedMark } from '@tskeeper/runtime/internal';
import { openForReading } from '@tskeeper/server/internal';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesIn, type FoundFile } from './find-files.ts';

/** Default limit of an entry's length: jute.maxbuffer plus its extra, both by default. */
export const txnBytesMaxDefault: number = 2 * 0xfffff;

export interface LogVisitor {
  /** A complete entry. */
  txn(txn: TxnLogEntry, offset: number): void;
  /** A complete entry that cannot be decoded, although its checksum is right. */
  unreadable(zxid: Zxid, offset: number, reason: string): void;
  /**
   * An entry with a wrong checksum, decoded as far as possible. Without this method reading ends
   * there.
   */
  damaged?(txn: TxnLogEntry | undefined, offset: number): void;
}

export interface LogFile {
  readonly end: LogEnd;
  /** The file contains only zeros. */
  readonly allZero: boolean;
  readonly mark: SyncedMark | undefined;
  /** Whether an entry with the mark's zxid ends at the mark's offset. */
  readonly markMatches: boolean;
}

/** Reads a log. `pause` is awaited before each further piece of the file is read. */
export async function readLogFile(
  log: FoundFile,
  txnBytesMax: number,
  visitor: LogVisitor,
  pause: () => Promise<void> = () => Promise.resolve(),
): Promise<LogFile> {
  const mark = await readMarkOf(log);
  let markMatches = false;
  const file = await openForReading(log.path);
  const reader = new Reader();
  const pausingFile: ReadableFile = {
    path: file.path,
    size: () => file.size(),
    read: async (position, length) => {
      await pause();
      return await file.read(position, length);
    },
    close: () => file.close(),
  };
  try {
    const end = await readLog(
      pausingFile,
      txnBytesMax,
      (zxid, bytes, start, stop, offset, entryEnd) => {
        if (mark !== undefined && entryEnd === mark.offset) markMatches = zxid === mark.lastZxid;
        const txn = decode(reader.wrap(bytes, start, stop));
        if (txn instanceof ProtocolError) visitor.unreadable(zxid, offset, txn.message);
        else visitor.txn(txn, offset);
      },
      visitor.damaged === undefined
        ? undefined
        : (bytes, start, stop, offset) => {
            const txn = decode(reader.wrap(bytes, start, stop));
            visitor.damaged!(txn instanceof ProtocolError ? undefined : txn, offset);
          },
    );
    return { end, allZero: end.reason === 'zero header' && (await isAllZero(file)), mark, markMatches };
  } finally {
    await file.close();
  }
}

/** The end of a log in words, also if it is a regular one. */
export function endText(end: LogEnd): string {
  if (end.reason === 'padding') return 'preallocated space';
  return end.reason === 'end of file' ? 'the end of the file' : describeLogEnd(end);
}

function decode(reader: Reader): TxnLogEntry | ProtocolError {
  try {
    return readTxn(reader);
  } catch (error) {
    if (error instanceof ProtocolError) return error;
    throw error;
  }
}

/** The mark beside a log, if a tskeeper server has written one. */
async function readMarkOf(log: FoundFile): Promise<SyncedMark | undefined> {
  const path = join(dirname(log.path), markName(log.zxid));
  return log.zxid < 0 || !existsSync(path) ? undefined : await readMarkFile(path);
}

/** Marks in a folder whose logs are missing. */
export async function orphanMarks(folder: string): Promise<OrphanMark[]> {
  const logs = new Set((await filesIn(folder, 'log')).map(({ zxid }) => zxid));
  const orphans = (await filesIn(folder, 'synced')).filter(({ zxid }) => !logs.has(zxid));
  return await Promise.all(orphans.map(async ({ name, path, zxid }) => ({ name, logZxid: zxid, mark: await readMarkFile(path) })));
}

async function readMarkFile(path: string): Promise<SyncedMark | undefined> {
  const file = await openForReading(path);
  try {
    return decodeMark(await file.read(0, markBytes));
  } finally {
    await file.close();
  }
}
