/**
 * Reads txns back from the log, for a follower that has missed more than is kept in memory (DIFF
 * from the disk).
 *
 * A reading goes from one txn to the last that was durable when it began, piece by piece, as its
 * caller asks for them. The log may grow meanwhile; later txns are not part of it. It never returns
 * a history that might be incomplete: at a hole, at damage, or when the folder is changed
 * meanwhile, it ends with `gone`, and the follower must get a snapshot (ZOOKEEPER-2418).
 */
import type { LogEntry } from '@tskeeper/core/internal';
import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { type Disk, DiskError, type DiskFile } from '../disk.ts';
import type { NumberedFile } from './file-names.ts';
import { type LogEndReason, readLog } from './log-reader.ts';
import { isContiguous } from './log-order.ts';

export type TxnLogChunk =
  /** At least one. */
  | { readonly kind: 'txns'; readonly txns: readonly LogEntry[] }
  /** There were no more when the reading began. */
  | { readonly kind: 'end' }
  /** The log does not have the rest. Txns returned before are right. */
  | { readonly kind: 'gone'; readonly reason: string };

export interface TxnLogIteratorOptions {
  readonly folder: string;
  /** Beginning with the log that contains the first txn, oldest first. */
  readonly logs: readonly NumberedFile[];
  /** Offset in the first of them to begin at. */
  readonly offset: number;
  /** The last txn to return. */
  readonly lastZxid: Zxid;
  /** The zxids of all snapshots, and those of the last txns before these logs. */
  readonly known: readonly Zxid[];
  readonly txnBytesMax: number;
  /** Bytes in these logs from the first txn on, without preallocated ones where that is known. */
  readonly logBytes: number;
  /** Size of the newest snapshot. */
  readonly snapshotBytes: number | undefined;
}

/** Size of a piece by default. */
const pieceBytes = 256 * 1024;

export class TxnLogIterator {
  /**
   * Bytes to read; the comparison with `snapshotBytes` shows which costs less
   * (zookeeper.snapshotSizeFactor).
   */
  readonly logBytes: number;
  /** undefined when there is no snapshot. */
  readonly snapshotBytes: number | undefined;
  readonly #disk: Disk;
  readonly #options: TxnLogIteratorOptions;
  readonly #onFinished: (reading: TxnLogIterator) => void;
  #index = 0;
  #offset: number;
  #file: DiskFile | undefined;
  #last: Zxid | undefined;
  /** Why reading has ended. */
  #finalChunk: TxnLogChunk | undefined;
  #pendingRead: Promise<TxnLogChunk> | undefined;

  /** `ended` is called when the logs are no longer needed, perhaps more than once. */
  constructor(disk: Disk, start: TxnLogIteratorOptions, ended: (reading: TxnLogIterator) => void) {
    this.#disk = disk;
    this.#options = start;
    this.#onFinished = ended;
    this.#offset = start.offset;
    this.logBytes = start.logBytes;
    this.snapshotBytes = start.snapshotBytes;
  }

  /** The zxid in the name of the current log: this one and all later ones are needed. */
  get oldestLogZxid(): Zxid {
    return this.#options.logs[this.#index]?.zxid ?? Infinity;
  }

  /**
   * The next txns, about `bytes` of them. Call it again only after the previous call has resolved.
   * Never rejects.
   */
  async next(bytes: number = pieceBytes): Promise<TxnLogChunk> {
    if (this.#pendingRead !== undefined) throw new Error('the previous piece has not been read yet');
    this.#pendingRead = this.#next(bytes);
    try {
      return await this.#pendingRead;
    } finally {
      this.#pendingRead = undefined;
    }
  }

  /** Releases the logs. A reading that has ended, or is gone, has released them already. */
  async close(): Promise<void> {
    await this.stop({ kind: 'end' });
  }

  /** From now on every call returns this. Resolves when all files are closed. */
  async stop(finalChunk: TxnLogChunk): Promise<void> {
    this.#finalChunk ??= finalChunk;
    await this.#pendingRead;
    await this.#finish(finalChunk);
  }

  async #next(bytes: number): Promise<TxnLogChunk> {
    const txns: LogEntry[] = [];
    const { logs, folder, lastZxid } = this.#options;
    try {
      while (txns.length === 0 && this.#finalChunk === undefined) {
        if (this.#last !== undefined && this.#last >= lastZxid) return await this.#finish({ kind: 'end' });
        const log = logs[this.#index];
        if (log === undefined) {
          return await this.#finish({ kind: 'gone', reason: `the logs in ${folder} end before ${formatZxid(lastZxid)}` });
        }
        const path = `${folder}/${log.name}`;
        this.#file ??= await this.#disk.open(path, 'existing');
        const hole = await this.#read(path, this.#file, bytes, txns);
        // The txns before a hole are returned first.
        if (hole !== undefined && txns.length === 0) return await this.#finish(hole);
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      return await this.#finish({ kind: 'gone', reason: error.message });
    }
    return this.#finalChunk ?? { kind: 'txns', txns };
  }

  /** Adds the txns of one piece, and returns the reason if there are no more. */
  async #read(path: string, file: DiskFile, bytes: number, txns: LogEntry[]): Promise<TxnLogChunk | undefined> {
    const { lastZxid, known, txnBytesMax } = this.#options;
    let hole = undefined as TxnLogChunk | undefined;
    const end = await readLog(
      file,
      txnBytesMax,
      (zxid, piece, start, stop, offset) => {
        if (hole !== undefined) return;
        if (this.#last !== undefined && !isContiguous(this.#last, zxid, known)) {
          hole = { kind: 'gone', reason: `${path} continues with ${formatZxid(zxid)} after ${formatZxid(this.#last)}` };
          this.#offset = offset;
          return;
        }
        txns.push({ zxid, bytes: Buffer.from(piece.subarray(start, stop)) });
        this.#last = zxid;
      },
      undefined,
      { start: this.#offset, zxidMax: lastZxid, bytesMax: bytes },
    );
    if (hole !== undefined) return hole;
    this.#offset = end.offset;
    if (end.reason === 'limit') return undefined;
    if (!endsInOrder(end.reason)) return { kind: 'gone', reason: `${path} cannot be read after offset ${end.offset} (${end.reason})` };
    this.#file = undefined;
    await file.close();
    this.#index++;
    this.#offset = 0;
    return undefined;
  }

  async #finish(piece: TxnLogChunk): Promise<TxnLogChunk> {
    this.#finalChunk ??= piece;
    const file = this.#file;
    this.#file = undefined;
    this.#onFinished(this);
    // A failing close does not affect what has been read.
    await file?.close().catch(() => undefined);
    return this.#finalChunk;
  }
}

/**
 * Ends after which the next log may follow: an entry that was cut off counts as never written, and
 * if it was more, there is a hole.
 */
function endsInOrder(reason: LogEndReason): boolean {
  return reason === 'end of file' || reason === 'padding' || reason === 'cut entry' || reason === 'no end mark';
}
