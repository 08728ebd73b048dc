/**
 * The mark of a log: how far the log is known to be durable, and the last txn before it.
 *
 * The log's own format cannot distinguish a torn tail (bytes that a power loss took before they
 * were acknowledged) from rot (acknowledged bytes that have gone bad): both show as a wrong
 * checksum. A mark can. Damage after it was never acknowledged and may be cut; damage before it
 * was, and the server refuses to start without it.
 *
 * A mark may lag behind the log and is never ahead of it: it is written some time after the log's
 * sync, off the path of requests. It only helps. Without one, or with one that does not fit its log
 * because another server has used the folder, ZooKeeper's own rules apply. Deleting it is always
 * safe.
 *
 * Within an epoch the zxids show where a log is missing. Between two they do not: the next epoch
 * begins at 1 wherever the last one ended, and what lay between may have been in a log or a
 * snapshot that is gone. The mark shows it.
 *
 * The file has two sectors that are written in turn, each followed by a sync, so a torn write
 * leaves the other one intact.
 */
// The whole module: an old Node lacks crc32, and would refuse the import before the server can
// report that it is too old.
import * as zlib from 'node:zlib';
import { highHalf, int64, lowHalf, type Millis, type Zxid } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import type { Disk, DiskFile } from '../disk.ts';
import type { Logger } from '../logger.ts';
import { syncFile, withFile } from './disk-helpers.ts';

/** "TKSM" */
const magic = 0x544b534d;
const version = 2;
const slotBytes = 512;
/** The size of the file. */
export const markBytes: number = 2 * slotBytes;
const fieldBytes = 52;

/**
 * How long a mark may lag while txns arrive. It limits the damage that can pass for a torn tail to
 * what was written within this time before a power loss, for at most five small syncs a second.
 */
export const markDelayMs: Millis = 200;

export interface SyncedMark {
  /**
   * 1 when the log was begun, and incremented each time the mark moves: from 2 on the name of the
   * log is known to be durable.
   */
  readonly sequence: number;
  /** The zxid in the log's name. */
  readonly logZxid: Zxid;
  /** The last txn before the log: there is none between that and the log's first one. */
  readonly precedingZxid: Zxid;
  /**
   * Checksum of the log's first entry: a log with the same name and another beginning is another
   * log.
   */
  readonly firstChecksum: number;
  /** Everything in the log before this offset is durable; an entry ends here. */
  readonly offset: number;
  /** The zxid of that entry. */
  readonly lastZxid: Zxid;
}

function encodeSlot(mark: SyncedMark): Buffer {
  const slot = Buffer.alloc(slotBytes);
  slot.writeInt32BE(magic, 0);
  slot.writeInt32BE(version, 4);
  putLong(slot, 8, mark.sequence);
  putLong(slot, 16, mark.logZxid);
  slot.writeUInt32BE(mark.firstChecksum, 24);
  putLong(slot, 28, mark.offset);
  putLong(slot, 36, mark.lastZxid);
  putLong(slot, 44, mark.precedingZxid);
  slot.writeUInt32BE(zlib.crc32(slot.subarray(0, fieldBytes)), fieldBytes);
  return slot;
}

function putLong(bytes: Buffer, at: number, value: number): void {
  bytes.writeInt32BE(highHalf(value), at);
  bytes.writeInt32BE(lowHalf(value), at + 4);
}

function getLong(bytes: Buffer, at: number): number {
  return int64(bytes.readInt32BE(at), bytes.readInt32BE(at + 4));
}

function decodeSlot(bytes: Buffer, start: number): SyncedMark | undefined {
  if (bytes.length < start + fieldBytes + 4) return undefined;
  const slot = bytes.subarray(start, start + fieldBytes + 4);
  if (slot.readInt32BE(0) !== magic || slot.readInt32BE(4) !== version) return undefined;
  if (slot.readUInt32BE(fieldBytes) !== zlib.crc32(slot.subarray(0, fieldBytes))) return undefined;
  return {
    sequence: getLong(slot, 8),
    logZxid: getLong(slot, 16),
    firstChecksum: slot.readUInt32BE(24),
    offset: getLong(slot, 28),
    lastZxid: getLong(slot, 36),
    precedingZxid: getLong(slot, 44),
  };
}

/**
 * The later of the two slots that can be read; undefined when neither can, which is the same as no
 * mark.
 */
export function decodeMark(bytes: Buffer): SyncedMark | undefined {
  const first = decodeSlot(bytes, 0);
  const second = decodeSlot(bytes, slotBytes);
  if (first === undefined || second === undefined) return first ?? second;
  return first.sequence > second.sequence ? first : second;
}

export async function readMark(disk: Disk, path: string): Promise<SyncedMark | undefined> {
  if (!(await disk.exists(path))) return undefined;
  return decodeMark(await withFile(disk, path, (file) => file.read(0, markBytes)));
}

function positionOf(mark: SyncedMark): number {
  return (mark.sequence % 2) * slotBytes;
}

/** Makes a new mark durable; its name becomes durable with the folder. */
export async function createMark(disk: Disk, path: string, mark: SyncedMark): Promise<DiskFile> {
  const file = await disk.open(path, 'replace');
  file.write(0, Buffer.alloc(markBytes));
  file.write(positionOf(mark), encodeSlot(mark));
  await syncFile(file);
  return file;
}

/** Moves an existing mark and makes that durable. */
export async function moveMark(disk: Disk, path: string, mark: SyncedMark): Promise<void> {
  await withFile(disk, path, async (file) => {
    file.write(positionOf(mark), encodeSlot(mark));
    await syncFile(file);
  });
}

/**
 * Keeps the mark of the log that is being written. An error costs the mark, never the log: the mark
 * stays where it is and lags.
 */
export class MarkWriter {
  readonly #file: DiskFile;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The mark on the disk, or being written. */
  #written: SyncedMark;
  #offset: number;
  #lastZxid: Zxid;
  #timer: TimerHandle | undefined;
  /** At most one slot is written at a time; otherwise a crash could tear both. */
  #writing: Promise<void> | undefined;
  #isFinishing = false;
  #broken = false;

  constructor(file: DiskFile, mark: SyncedMark, clock: Clock, logger: Logger) {
    this.#file = file;
    this.#clock = clock;
    this.#logger = logger;
    this.#written = mark;
    this.#offset = mark.offset;
    this.#lastZxid = mark.lastZxid;
  }

  /** The log is durable up to here. Cheap: the disk gets it later. */
  advance(offset: number, lastZxid: Zxid): void {
    this.#offset = offset;
    this.#lastZxid = lastZxid;
    this.#planWrite();
  }

  /** Writes where the log ended, and closes the file. Never rejects. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
    this.#timer = undefined;
    await this.#write();
    // A write that was in progress when `finish` was called may have used an older offset.
    await this.#write();
    this.#broken = true;
    try {
      await this.#file.close();
    } catch {
      // Everything that matters was synced before.
    }
  }

  /**
   * One slot at a time, and one per delay. Called again when a slot has been written: the log may
   * have grown meanwhile, and if nothing follows, no later call would write that.
   */
  #planWrite(): void {
    if (this.#timer !== undefined || this.#writing !== undefined || this.#isFinishing || this.#broken || !this.#lags) return;
    this.#timer = this.#clock.after(markDelayMs, () => {
      this.#timer = undefined;
      void this.#write();
    });
  }

  /**
   * A mark that has never moved does not say that its log has a name, so it moves once even if no
   * further txn arrives.
   */
  get #lags(): boolean {
    return this.#offset !== this.#written.offset || this.#written.sequence === 1;
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeSlot().finally(() => {
      this.#writing = undefined;
      this.#planWrite();
    });
    return this.#writing;
  }

  async #writeSlot(): Promise<void> {
    if (this.#broken || !this.#lags) return;
    const mark = { ...this.#written, sequence: this.#written.sequence + 1, offset: this.#offset, lastZxid: this.#lastZxid };
    try {
      this.#file.write(positionOf(mark), encodeSlot(mark));
      await syncFile(this.#file);
      this.#written = mark;
    } catch (error) {
      this.#broken = true;
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.warn(`cannot write ${this.#file.path} (${reason}); damage at the end of its log may not be recognised`, {
        event: 'txnlog.mark-failed',
        path: this.#file.path,
        reason,
      });
    }
  }
}
