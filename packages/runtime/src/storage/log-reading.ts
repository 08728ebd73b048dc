/**
 * Reading back what is in the log, for a follower that has missed more than is kept in memory (DIFF from the disk).
 *
 * A reading goes from one txn to the last that was durable when it began, piece by piece, as the one who asks can take them. The log may
 * grow meanwhile; what is added is not part of it. It hands out nothing that might not be the whole truth: at a hole, at damage, or when the
 * folder is changed under it, it ends with `gone`, and the follower is to be sent a snapshot (ZOOKEEPER-2418).
 */
import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { type Disk, DiskError, type DiskFile } from '../disk.ts';
import type { NumberedFile } from './file-names.ts';
import { type LogEndReason, readLog } from './log-reader.ts';
import { isNext } from './log-order.ts';
import type { LoggedTxn } from './recent-txns.ts';

export type LogPiece =
  /** At least one. */
  | { readonly kind: 'txns'; readonly txns: readonly LoggedTxn[] }
  /** There were no more when the reading began. */
  | { readonly kind: 'end' }
  /** The rest cannot be had from the log. What was handed out before is right. */
  | { readonly kind: 'gone'; readonly reason: string };

export interface LogReadingStart {
  readonly folder: string;
  /** From the log that holds the first txn on, oldest first. */
  readonly logs: readonly NumberedFile[];
  /** Where in the first of them to begin. */
  readonly offset: number;
  /** The last txn to hand out. */
  readonly lastZxid: Zxid;
  /** The zxids of all snapshots there are, and those behind which these logs were begun. */
  readonly known: readonly Zxid[];
  readonly txnBytesMax: number;
  /** Bytes in these logs from the first txn on, without what is preallocated, where that is known. */
  readonly logBytes: number;
  /** Size of the newest snapshot. */
  readonly snapshotBytes: number | undefined;
}

/** What is read in one go when nobody says otherwise. */
const pieceBytes = 256 * 1024;

export class LogReading {
  /** What would have to be read; compared with `snapshotBytes` this tells what costs less (zookeeper.snapshotSizeFactor). */
  readonly logBytes: number;
  /** undefined when there is no snapshot. */
  readonly snapshotBytes: number | undefined;
  readonly #disk: Disk;
  readonly #start: LogReadingStart;
  readonly #ended: (reading: LogReading) => void;
  #index = 0;
  #offset: number;
  #file: DiskFile | undefined;
  #last: Zxid | undefined;
  /** Why nothing more is read. */
  #over: LogPiece | undefined;
  #underWay: Promise<LogPiece> | undefined;

  /** `ended` is called when the logs are not needed any more, perhaps more than once. */
  constructor(disk: Disk, start: LogReadingStart, ended: (reading: LogReading) => void) {
    this.#disk = disk;
    this.#start = start;
    this.#ended = ended;
    this.#offset = start.offset;
    this.logBytes = start.logBytes;
    this.snapshotBytes = start.snapshotBytes;
  }

  /** The zxid in the name of the log at hand: this one and all later ones are needed. */
  get neededFrom(): Zxid {
    return this.#start.logs[this.#index]?.zxid ?? Infinity;
  }

  /** The next txns, about `bytes` of them. Called again only when the call before has been answered. Never rejects. */
  async next(bytes: number = pieceBytes): Promise<LogPiece> {
    if (this.#underWay !== undefined) throw new Error('the piece before has not been read yet');
    this.#underWay = this.#next(bytes);
    try {
      return await this.#underWay;
    } finally {
      this.#underWay = undefined;
    }
  }

  /** Lets go of the logs. A reading that has come to its end, or is gone, has done so already. */
  async close(): Promise<void> {
    await this.stop({ kind: 'end' });
  }

  /** From now on every call is answered with this. Resolves when no file is held any more. */
  async stop(over: LogPiece): Promise<void> {
    this.#over ??= over;
    await this.#underWay;
    await this.#finish(over);
  }

  async #next(bytes: number): Promise<LogPiece> {
    const txns: LoggedTxn[] = [];
    const { logs, folder, lastZxid } = this.#start;
    try {
      while (txns.length === 0 && this.#over === undefined) {
        if (this.#last !== undefined && this.#last >= lastZxid) return await this.#finish({ kind: 'end' });
        const log = logs[this.#index];
        if (log === undefined) {
          return await this.#finish({ kind: 'gone', reason: `the logs in ${folder} end before ${formatZxid(lastZxid)}` });
        }
        const path = `${folder}/${log.name}`;
        this.#file ??= await this.#disk.open(path, 'existing');
        const hole = await this.#read(path, this.#file, bytes, txns);
        // What came before a hole is handed out first.
        if (hole !== undefined && txns.length === 0) return await this.#finish(hole);
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      return await this.#finish({ kind: 'gone', reason: error.message });
    }
    return this.#over ?? { kind: 'txns', txns };
  }

  /** Adds what one go brings, and returns why there is no more if that is so. */
  async #read(path: string, file: DiskFile, bytes: number, txns: LoggedTxn[]): Promise<LogPiece | undefined> {
    const { lastZxid, known, txnBytesMax } = this.#start;
    let hole = undefined as LogPiece | undefined;
    const end = await readLog(
      file,
      txnBytesMax,
      (zxid, piece, start, stop, offset) => {
        if (hole !== undefined) return;
        if (this.#last !== undefined && !isNext(this.#last, zxid, known)) {
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

  async #finish(piece: LogPiece): Promise<LogPiece> {
    this.#over ??= piece;
    const file = this.#file;
    this.#file = undefined;
    this.#ended(this);
    // A failing close says nothing about what has been read.
    await file?.close().catch(() => undefined);
    return this.#over;
  }
}

/** Ends behind which the next log may follow: an entry that was cut off counts as never written, and if it was more, there is a hole. */
function endsInOrder(reason: LogEndReason): boolean {
  return reason === 'end of file' || reason === 'padding' || reason === 'cut entry' || reason === 'no end mark';
}
