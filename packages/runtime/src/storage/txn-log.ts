/**
 * The transaction log, being written.
 *
 * Txns are gathered into a batch; a flush hands the batch to the disk as one write and one sync,
 * and the next batch gathers while that sync runs. So the slower the disk, the larger the batches,
 * and one sync serves many txns. A txn counts as appended once its batch's sync has succeeded, and
 * two batches are never in progress at a time: if anything of a batch is on the disk, all earlier
 * ones are complete.
 *
 * A log never appears under its name before its header and first batch are durable, so a power loss
 * leaves no file that is empty or without a header (ZooKeeper's own does, and then will not start:
 * ZOOKEEPER-2332, ZOOKEEPER-4744).
 *
 * Any error of a write or a sync is final. It is reported once, nothing is acknowledged after it,
 * and the sync is never retried: after a failed sync the system may regard the pages as clean
 * although the disk does not have them.
 */
import {
  fileHeaderBytes,
  formatZxid,
  logFileHeader,
  type Millis,
  writeFileHeader,
  writeLogEntry,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import type { Disk, DiskFile } from '../disk.ts';
import type { Logger } from '../logger.ts';
import { syncFile } from './disk-helpers.ts';
import { logName, markName, unfinishedPrefix } from './file-names.ts';
import { createMark, MarkWriter } from './synced-mark.ts';

/** ZooKeeper grows a log when its end is this near. */
const paddingMarginBytes = 4096;
/** A batch that grew beyond this releases its memory. */
const batchBytesKept = 4 * 1024 * 1024;

export interface TxnLogOptions {
  readonly folder: string;
  readonly preAllocSizeBytes: number;
  readonly forceSync: boolean;
  readonly maxBatchSize: number;
  readonly flushDelayMs: Millis;
  readonly maxWriteQueuePollMs: Millis;
  readonly txnLogSizeLimitBytes: number;
  readonly fsyncWarningThresholdMs: Millis;
}

/**
 * The calls of the log to its owner. All come from the loop, never from inside a call on the log.
 */
export interface TxnLogSink {
  /** Every txn up to this one is durable. */
  appended(zxid: Zxid): void;
  /** The disk has failed. Called once; nothing else is called after it. */
  failed(error: unknown): void;
  /** A sync has succeeded: its duration, and how much it covered. */
  synced(durationMs: Millis, txnCount: number, bytes: number): void;
  /** A batch is complete: its txns are durable or, with forceSync=no, written. */
  flushed(batch: FlushedBatch): void;
}

export interface FlushedBatch {
  readonly txns: number;
  /** Txns that waited when the disk took the batch, its own included. */
  readonly queued: number;
  /** Time since the disk took it. */
  readonly flushMs: Millis;
  /** Its txns by the turn in which they arrived, in order. */
  readonly arrivals: readonly Arrival[];
}

export interface Arrival {
  readonly txns: number;
  /** Time until the disk took them. */
  readonly waitedMs: Millis;
}

interface Batch {
  readonly writer: Writer;
  first: Zxid;
  last: Zxid;
  count: number;
  /** Offset of its last entry in the batch; decides how far the file must have grown before. */
  lastEntryAt: number;
  firstChecksum: number;
  /** This batch opens a new log. */
  opensLog: boolean;
  /** When its txns arrived, turn by turn, and how many of them have been counted so. */
  readonly arrivals: { readonly atMs: Millis; readonly txns: number }[];
  arrivalsCounted: number;
  /** When the disk took it, and how many txns waited then. */
  flushStartMs: Millis;
  queued: number;
}

/**
 * The size to extend a log to before an entry is written at `position`; as ZooKeeper's FilePadding.
 */
export function paddedSize(position: number, size: number, stepBytes: number): number {
  if (stepBytes <= 0 || position + paddingMarginBytes < size) return size;
  if (position <= size) return size + stepBytes;
  const beyond = position + stepBytes;
  return beyond - (beyond % stepBytes);
}

export class TxnLog {
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #options: TxnLogOptions;
  readonly #sink: TxnLogSink;
  #file: DiskFile | undefined;
  #mark: MarkWriter | undefined;
  /** Offset of the next batch in the file. */
  #position = 0;
  /** Size of the file, padding included. */
  #size = 0;
  /** The batch that takes new txns. */
  #openBatch: Batch;
  /** Batches that were cut off by a roll and wait for the disk, oldest first. */
  readonly #queuedBatches: Batch[] = [];
  /** The batch the disk is working on. Invariant: at most one. */
  #writing: Batch | undefined;
  /** Batches given to the disk so far. */
  #batchCount = 0;
  #spare: Batch | undefined;
  /** `flush` was called while the disk was busy, or the batch is full. */
  #flushWanted = false;
  #flushTimer: TimerHandle | undefined;
  #lastFlushMs = 0;
  /** Highest zxid handed over. Invariant: durable <= handed over. */
  #lastZxid: Zxid;
  /** Highest zxid reported as appended. */
  #durableZxid: Zxid;
  #slowSyncs = 0;
  #state: 'open' | 'closing' | 'closed' | 'failed' = 'open';
  #failure: unknown;
  #onIdle: (() => void) | undefined;
  /** Callers that wait until everything handed over before is durable, in zxid order. */
  readonly #durableWaiters: { readonly zxid: Zxid; readonly resolve: (isDurable: boolean) => void }[] = [];

  /** `lastZxid` is the last txn that recovery found; the first append opens a new log. */
  constructor(disk: Disk, clock: Clock, logger: Logger, options: TxnLogOptions, lastZxid: Zxid, sink: TxnLogSink) {
    this.#disk = disk;
    this.#clock = clock;
    this.#logger = logger;
    this.#options = options;
    this.#sink = sink;
    this.#lastZxid = this.#durableZxid = lastZxid;
    this.#openBatch = newBatch();
    this.#openBatch.opensLog = true;
  }

  get lastZxid(): Zxid {
    return this.#lastZxid;
  }

  /** Highest zxid that is durable. */
  get durableZxid(): Zxid {
    return this.#durableZxid;
  }

  /** The error that made the log fail; undefined before that. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Syncs that took longer than the threshold. */
  get slowSyncs(): number {
    return this.#slowSyncs;
  }

  /** Which batch the disk is working on, counted from 1; undefined when it is idle. */
  get batchUnderWay(): number | undefined {
    return this.#writing === undefined ? undefined : this.#batchCount;
  }

  /** Fails the log, as after an error of the disk. */
  fail(error: unknown): void {
    this.#fail(error);
  }

  /** Adds a txn to the batch; returns the bytes it takes in the file. The bytes are copied. */
  append(zxid: Zxid, bytes: Uint8Array, start: number, end: number): number {
    if (this.#state !== 'open') return 0;
    if (zxid <= this.#lastZxid) throw new Error(`cannot append ${formatZxid(zxid)} after ${formatZxid(this.#lastZxid)}`);
    const batch = this.#openBatch;
    const { writer } = batch;
    const entryStart = writer.offset;
    batch.lastEntryAt = entryStart;
    writeLogEntry(writer, bytes, start, end);
    if (batch.count === 0) {
      batch.first = zxid;
      // The low half of the checksum, which opens the entry as a long.
      batch.firstChecksum = writer.bytes.readUInt32BE(entryStart + 4);
    }
    batch.last = this.#lastZxid = zxid;
    batch.count++;
    const { maxBatchSize } = this.#options;
    if (maxBatchSize > 0 && batch.count >= maxBatchSize) {
      this.#flushWanted = true;
      this.#writeNextBatch();
    }
    return writer.offset - entryStart;
  }

  /**
   * Called at the end of each turn: hands the gathered txns to the disk, now or as soon as it is
   * free.
   */
  flush(): void {
    if (this.#state !== 'open' || this.#openBatch.count === 0) return;
    if (this.#openBatch.arrivalsCounted < this.#openBatch.count) recordArrivals(this.#openBatch, this.#clock.now().elapsedMs);
    if (this.#options.flushDelayMs > 0 && !this.#flushWanted && this.#shouldDelayFlush()) return;
    this.#flushWanted = true;
    this.#writeNextBatch();
  }

  /** The next txn opens a new log. Txns already handed over stay in this one. */
  roll(): void {
    if (this.#state !== 'open') return;
    if (this.#openBatch.count > 0) {
      recordArrivals(this.#openBatch, this.#clock.now().elapsedMs);
      this.#queuedBatches.push(this.#openBatch);
      this.#openBatch = this.#takeBatch();
      this.#writeNextBatch();
    }
    this.#openBatch.opensLog = true;
  }

  /**
   * Resolves to true when everything handed over by now is durable; to false when it never will be,
   * because the log has failed.
   */
  whenDurable(): Promise<boolean> {
    if (this.#durableZxid >= this.#lastZxid || this.#isFailed()) return Promise.resolve(!this.#isFailed());
    return new Promise((resolve) => void this.#durableWaiters.push({ zxid: this.#lastZxid, resolve }));
  }

  /** Makes what was handed over durable, reports it, and closes the file. */
  async close(): Promise<void> {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#cancelFlushTimer();
    if (this.#openBatch.count > 0) this.#flushWanted = true;
    this.#writeNextBatch();
    if (this.#writing !== undefined) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    if (this.#isFailed()) return;
    try {
      await this.#closeFile();
      this.#state = 'closed';
    } catch (error) {
      this.#fail(error);
    }
  }

  #isFailed(): boolean {
    return this.#state === 'failed';
  }

  /**
   * With a flush delay, a batch waits for more txns until the delay or the pause between two txns
   * is over.
   */
  #shouldDelayFlush(): boolean {
    const { flushDelayMs, maxWriteQueuePollMs } = this.#options;
    const sinceFlush = this.#clock.now().elapsedMs - this.#lastFlushMs;
    if (sinceFlush >= flushDelayMs) return false;
    // Each turn that brought a txn restarts the pause.
    this.#cancelFlushTimer();
    const pollMs = maxWriteQueuePollMs > 0 ? maxWriteQueuePollMs : flushDelayMs;
    this.#flushTimer = this.#clock.after(Math.min(pollMs, flushDelayMs - sinceFlush), () => {
      this.#flushTimer = undefined;
      this.#flushWanted = true;
      this.#writeNextBatch();
    });
    return true;
  }

  #cancelFlushTimer(): void {
    if (this.#flushTimer !== undefined) this.#clock.cancel(this.#flushTimer);
    this.#flushTimer = undefined;
  }

  #takeBatch(): Batch {
    const batch = this.#spare ?? newBatch();
    this.#spare = undefined;
    return batch;
  }

  #recycleBatch(batch: Batch): void {
    // Without syncs nothing reports that the disk no longer uses the bytes.
    if (batch.writer.bytes.length > batchBytesKept || !this.#options.forceSync) return;
    batch.writer.clear();
    batch.count = batch.arrivalsCounted = 0;
    batch.arrivals.length = 0;
    batch.opensLog = false;
    this.#spare = batch;
  }

  /** Gives the disk its next batch, if it is free and there is one. */
  #writeNextBatch(): void {
    if (this.#writing !== undefined || this.#state === 'failed' || this.#state === 'closed') return;
    let queued = this.#openBatch.count;
    for (const { count } of this.#queuedBatches) queued += count;
    let batch = this.#queuedBatches.shift();
    if (batch === undefined) {
      if (!this.#flushWanted || this.#openBatch.count === 0) return;
      batch = this.#openBatch;
      this.#openBatch = this.#takeBatch();
      this.#flushWanted = false;
      this.#cancelFlushTimer();
    }
    this.#writing = batch;
    this.#batchCount++;
    batch.queued = queued;
    batch.flushStartMs = this.#lastFlushMs = this.#clock.now().elapsedMs;
    recordArrivals(batch, batch.flushStartMs);
    if (batch.opensLog) {
      this.#openLog(batch).then(
        () => this.#completed(batch),
        (error: unknown) => this.#fail(error),
      );
    } else {
      this.#writeAndSync(batch);
    }
  }

  #writeAndSync(batch: Batch): void {
    const file = this.#file!;
    const startMs = this.#lastFlushMs;
    try {
      this.#writeBatch(file, batch);
      if (this.#options.forceSync) {
        file.sync((error) => {
          if (error !== undefined) {
            this.#fail(error);
            return;
          }
          this.#reportSync(startMs, batch);
          this.#completed(batch);
        });
      } else {
        this.#clock.setImmediate(() => this.#completed(batch));
      }
    } catch (error) {
      // Reported from the loop, as everything is: the caller may be in the middle of something.
      this.#clock.setImmediate(() => this.#fail(error));
    }
  }

  /**
   * Writes a batch to the file, which is extended first, so that the sync that follows has no size
   * to write.
   */
  #writeBatch(file: DiskFile, batch: Batch): void {
    const step = this.#options.preAllocSizeBytes;
    const lastEntry = this.#position + batch.lastEntryAt;
    let size = paddedSize(this.#position, this.#size, step);
    for (let grown = paddedSize(lastEntry, size, step); grown !== size; grown = paddedSize(lastEntry, size, step)) size = grown;
    if (size > this.#size) file.extend(size);
    file.write(this.#position, batch.writer.written());
    this.#position += batch.writer.offset;
    this.#size = Math.max(size, this.#position);
  }

  /**
   * The order matters here. The old log is complete before anything of the new one becomes visible.
   * The new one gets header and first batch under a name that no start looks at, then its mark, and
   * only then its name; the name is durable before anything is acknowledged. So a crash leaves no
   * new log, or one with its first batch and its mark.
   */
  async #openLog(batch: Batch): Promise<void> {
    await this.#closeFile();
    const { folder } = this.#options;
    const name = logName(batch.first);
    const temporary = `${folder}/${unfinishedPrefix}${name}`;
    const unfinished = await this.#disk.open(temporary, 'replace');
    const header = new Writer(fileHeaderBytes);
    writeFileHeader(header, logFileHeader);
    unfinished.write(0, header.written());
    this.#position = this.#size = fileHeaderBytes;
    this.#writeBatch(unfinished, batch);
    const startMs = this.#clock.now().elapsedMs;
    // Also with forceSync=no: a log costs one sync in its life, and a start can rely on each log
    // having a beginning.
    await syncFile(unfinished);
    this.#reportSync(startMs, batch);
    await unfinished.close();
    const mark = {
      sequence: 1,
      logZxid: batch.first,
      precedingZxid: this.#durableZxid,
      firstChecksum: batch.firstChecksum,
      offset: this.#position,
      lastZxid: batch.last,
    };
    const markFile = await createMark(this.#disk, `${folder}/${markName(batch.first)}`, mark);
    await this.#disk.rename(temporary, `${folder}/${name}`);
    await this.#disk.syncFolder(folder);
    this.#file = await this.#disk.open(`${folder}/${name}`, 'existing');
    this.#mark = new MarkWriter(markFile, mark, this.#clock, this.#logger);
  }

  /** Closes the log that is open, if there is one. No write to it is in progress. */
  async #closeFile(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    if (!this.#options.forceSync) {
      await syncFile(file);
      this.#mark?.advance(this.#position, this.#durableZxid);
    }
    await this.#mark?.finish();
    this.#mark = undefined;
    await file.close();
  }

  #completed(batch: Batch): void {
    if (this.#isFailed()) return;
    this.#writing = undefined;
    this.#durableZxid = batch.last;
    if (this.#options.forceSync) this.#mark?.advance(this.#position, batch.last);
    const { txnLogSizeLimitBytes } = this.#options;
    if (txnLogSizeLimitBytes > 0 && this.#position > txnLogSizeLimitBytes) this.roll();
    const { last } = batch;
    this.#reportFlush(batch);
    this.#recycleBatch(batch);
    // The disk gets its next batch before this one is acknowledged, so that it works while the
    // replies are written.
    this.#writeNextBatch();
    this.#sink.appended(last);
    while (this.#durableWaiters[0] !== undefined && this.#durableWaiters[0].zxid <= last) this.#durableWaiters.shift()!.resolve(true);
    if (this.#writing === undefined) this.#onIdle?.();
  }

  #reportFlush({ count, queued, flushStartMs, arrivals: arrived }: Batch): void {
    const flushMs = this.#clock.now().elapsedMs - flushStartMs;
    const arrivals = arrived.map(({ atMs, txns }) => ({ txns, waitedMs: flushStartMs - atMs }));
    this.#sink.flushed({ txns: count, queued, flushMs, arrivals });
  }

  #reportSync(startMs: Millis, batch: Batch): void {
    const durationMs = this.#clock.now().elapsedMs - startMs;
    const { fsyncWarningThresholdMs, folder } = this.#options;
    if (durationMs > fsyncWarningThresholdMs) {
      this.#slowSyncs++;
      this.#logger.warn(
        `syncing the transaction log in ${folder} took ${Math.round(durationMs)} ms, and every write waits for that; a disk of its own for dataLogDir helps`,
        { event: 'txnlog.slow-sync', path: folder, durationMs: Math.round(durationMs) },
      );
    }
    this.#sink.synced(durationMs, batch.count, batch.writer.offset);
  }

  #fail(error: unknown): void {
    if (this.#isFailed()) return;
    this.#state = 'failed';
    this.#failure = error;
    this.#cancelFlushTimer();
    this.#sink.failed(error);
    for (const { resolve } of this.#durableWaiters.splice(0)) resolve(false);
    this.#onIdle?.();
  }
}

function newBatch(capacity = 4096): Batch {
  return {
    writer: new Writer(capacity),
    first: 0,
    last: 0,
    count: 0,
    lastEntryAt: 0,
    firstChecksum: 0,
    opensLog: false,
    arrivals: [],
    arrivalsCounted: 0,
    flushStartMs: 0,
    queued: 0,
  };
}

/**
 * The txns of a batch that have not been counted yet have arrived now, to the resolution of a turn.
 */
function recordArrivals(batch: Batch, atMs: Millis): void {
  const txns = batch.count - batch.arrivalsCounted;
  if (txns === 0) return;
  batch.arrivals.push({ atMs, txns });
  batch.arrivalsCounted = batch.count;
}
