/**
 * A server's data folder: what the runtime needs of it, and nothing of how it is done.
 *
 *     open        claims the folders, recovers what they hold
 *     append      hands a txn to the log; `flush` at the end of the turn; `appended` comes when it is durable
 *     takeSnapshot  writes the tree's state in slices, when `snapshotDue` has asked for it, or after loading
 *     close       makes everything durable and gives the folders back
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import { type Disk, DiskError, type FolderLock } from '../disk.ts';
import type { Logger } from '../logger.ts';
import type { StorageOptions } from '../options.ts';
import type { Random } from '../random.ts';
import type { SnappyCodec } from '../world.ts';
import { folderBytes } from './disk-helpers.ts';
import { logPrefix, snapshotPrefix } from './file-names.ts';
import { purge, type PurgeResult } from './purge.ts';
import { type Recovered, Recovery, type RecoveryTarget } from './recovery.ts';
import { type SnapshotSource, writeSnapshot } from './snapshot-files.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import { StorageRefused } from './storage-refused.ts';
import { type FlushedBatch, TxnLog } from './txn-log.ts';

export interface StorageWorld {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
}

/** What of the core's limits storage has to know. */
export interface StorageLimits {
  /** The longest txn that may have been written: it tells a cut entry from a length that has gone bad. */
  readonly txnBytesMax: number;
}

export interface StorageHooks {
  readonly logger: Logger;
  readonly snappy: SnappyCodec | undefined;
}

/** What storage tells the runtime. All calls come from the loop, never from inside a call on `Storage`. */
export interface StorageSink {
  /** Every txn up to this one is durable. */
  appended(zxid: Zxid): void;
  /** The disk has failed. Called once; nothing is appended any more, and the process should end. */
  failed(error: unknown): void;
  /** It is time for a snapshot: the log has been rolled. Answered by `takeSnapshot`, at a moment that suits the tree. */
  snapshotDue(): void;
  /** A sync of the log has ended well. */
  synced(durationMs: Millis, txnCount: number, bytes: number): void;
  /** A batch of txns has been flushed. */
  flushed(batch: FlushedBatch): void;
}

export interface StorageSizes {
  readonly dataDirBytes: number;
  readonly logDirBytes: number;
}

/** The part of a data folder that holds files; the 2 is the version of their formats. */
const versionFolder = 'version-2';
/** The first purge waits until a start is over and done with. */
const firstPurgeDelayMs = 60_000;

export class Storage {
  /** `<dataDir>/version-2` */
  readonly snapshotFolder: string;
  /** `<dataLogDir>/version-2` */
  readonly logFolder: string;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #options: StorageOptions & StorageLimits;
  readonly #hooks: StorageHooks;
  readonly #sink: StorageSink;
  readonly #trigger: SnapshotTrigger;
  readonly #locks: FolderLock[] = [];
  #log: TxnLog | undefined;
  /** A file `initialize` is there, and is used up once the first snapshot is durable. */
  #initializeMarked = false;
  /** Whether a start would find a snapshot. Invariant: true before anything is appended, since a log alone is not trusted. */
  #hasSnapshot = false;
  #snapshotUnderWay: Promise<boolean> | undefined;
  #snapshotErrors = 0;
  #purgeTimer: TimerHandle | undefined;
  #purgeUnderWay: Promise<unknown> | undefined;
  #lastAside: Promise<unknown> = Promise.resolve();
  #closing = false;
  /** For how long the disk has been at the same batch of the log, in time in which we were awake. */
  #batchMs: Millis = 0;
  #batch: number | undefined;

  constructor(world: StorageWorld, options: StorageOptions & StorageLimits, hooks: StorageHooks, sink: StorageSink) {
    this.#disk = world.disk;
    this.#clock = world.clock;
    this.#options = options;
    this.#hooks = hooks;
    this.#sink = sink;
    this.snapshotFolder = `${options.dataDir}/${versionFolder}`;
    this.logFolder = `${options.dataLogDir}/${versionFolder}`;
    this.#trigger = new SnapshotTrigger(options.snapCount, options.snapSizeLimitBytes, world.random);
  }

  /** Syncs that took longer than fsync.warningthresholdms. */
  get slowSyncs(): number {
    return this.#log?.slowSyncs ?? 0;
  }

  /** Snapshots that could not be written. */
  get snapshotErrors(): number {
    return this.#snapshotErrors;
  }

  get takesSnapshot(): boolean {
    return this.#snapshotUnderWay !== undefined;
  }

  /**
   * Claims the folders and recovers their state into `target`. Rejects with `FolderInUse`, `StorageRefused` or `DiskError`; the folders
   * are free again then. Whoever opens a standalone storage takes a snapshot next, whatever was found; when no snapshot was loaded, nothing
   * may be appended before that one is durable.
   */
  async open(target: RecoveryTarget): Promise<Recovered> {
    const { dataDir, dataLogDir } = this.#options;
    try {
      await this.#claim();
      await this.#checkForMisplacedFiles();
      this.#initializeMarked = await this.#disk.exists(`${dataDir}/initialize`);
      if (!this.#disk.syncsFolders) {
        this.#hooks.logger.warn(
          `this system cannot sync folders, so a power loss may undo the making and removing of files in ${dataDir} and ${dataLogDir}`,
        );
      }
      const recovery = new Recovery(this.#disk, this.#clock, this.#hooks.logger, {
        snapshotFolder: this.snapshotFolder,
        logFolder: this.logFolder,
        snapshotTrustEmpty: this.#options.snapshotTrustEmpty,
        dbAutocreate: this.#options.dbAutocreate,
        initializeMarked: this.#initializeMarked,
        snappy: this.#hooks.snappy,
        txnBytesMax: this.#options.txnBytesMax,
      });
      const recovered = await recovery.run(target);
      this.#hasSnapshot = recovered.snapshotZxid !== undefined || this.#options.snapshotTrustEmpty;
      this.#log = new TxnLog(
        this.#disk,
        this.#clock,
        this.#hooks.logger,
        { ...this.#options, folder: this.logFolder },
        recovered.lastZxid,
        this.#sink,
      );
      this.#setPurgeTimer(Math.min(firstPurgeDelayMs, this.#options.purgeIntervalMs));
      return recovered;
    } catch (error) {
      await this.#release();
      throw error;
    }
  }

  /** Hands a txn to the log; the bytes [start, end) are copied. It is durable when `appended` says so. */
  append(zxid: Zxid, bytes: Uint8Array, start: number, end: number): void {
    const log = this.#log!;
    if (!this.#hasSnapshot) throw new Error('a txn came before the first snapshot was durable');
    if (!this.#trigger.note(log.append(zxid, bytes, start, end))) return;
    log.roll();
    if (this.#snapshotUnderWay === undefined) this.#clock.soon(() => this.#askForSnapshot());
  }

  /** Called at the end of each turn in which something may have been appended. */
  flush(): void {
    this.#log?.flush();
  }

  /**
   * Writes a snapshot named `zxid`, the last txn applied when `source` was begun. Resolves to whether there is one now: false when one was
   * being written already, when storage is closing, or when the disk would not take it. The last is logged and counted, and the server
   * goes on: the next one is tried when it is due, and until then restarts take longer.
   */
  async takeSnapshot(zxid: Zxid, source: SnapshotSource): Promise<boolean> {
    if (this.#snapshotUnderWay !== undefined || this.#closing) return false;
    this.#snapshotUnderWay = this.#writeSnapshot(zxid, source);
    try {
      return await this.#snapshotUnderWay;
    } finally {
      this.#snapshotUnderWay = undefined;
    }
  }

  /**
   * Gives up a disk that does not come back. Called again and again, `passedMs` after the call before: what a process that stood still has
   * slept through does not count, since the answer may be waiting.
   */
  giveUpAfter(limitMs: Millis, passedMs: Millis): void {
    const batch = this.#log?.batchUnderWay;
    this.#batchMs = batch !== undefined && batch === this.#batch ? this.#batchMs + passedMs : 0;
    this.#batch = batch;
    if (this.#batchMs >= limitMs) this.#log!.giveUp(new DiskError('ETIMEDOUT', 'append to the log in', this.logFolder));
  }

  /** Deletes what no start will need; also done by itself every autopurge.purgeInterval. */
  purge(): Promise<PurgeResult> {
    const folders = { snapshots: this.snapshotFolder, logs: this.logFolder };
    return this.#aside(() => purge(this.#disk, folders, this.#options.snapRetainCount, this.#hooks.snappy));
  }

  /** What `dirs` shows. */
  sizes(): Promise<StorageSizes> {
    return this.#aside(() => this.#sizes());
  }

  async #sizes(): Promise<StorageSizes> {
    const dataDirBytes = await folderBytes(this.#disk, this.snapshotFolder);
    const logDirBytes = this.logFolder === this.snapshotFolder ? dataDirBytes : await folderBytes(this.#disk, this.logFolder);
    return { dataDirBytes, logDirBytes };
  }

  /**
   * One thing after the other, of those that nobody waits for. A disk works with few threads (four, as node has them). Should the one of the
   * snapshots hang, it gets one for a snapshot and one for all of this; a name server that hangs gets another (see NameResolver of the
   * server); and the log has always one left.
   */
  #aside<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#lastAside.then(work);
    this.#lastAside = done.catch(() => undefined);
    return done;
  }

  /** Ends what is under way, makes everything handed over durable, and gives the folders back. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#purgeTimer !== undefined) this.#clock.cancel(this.#purgeTimer);
    this.#purgeTimer = undefined;
    await this.#snapshotUnderWay;
    await this.#purgeUnderWay;
    await this.#log?.close();
    await this.#release();
  }

  #askForSnapshot(): void {
    if (this.#snapshotUnderWay === undefined && !this.#closing) this.#sink.snapshotDue();
  }

  async #claim(): Promise<void> {
    const folders = this.logFolder === this.snapshotFolder ? [this.snapshotFolder] : [this.snapshotFolder, this.logFolder];
    for (const folder of folders) {
      if (this.#options.dataDirAutocreate) await this.#disk.ensureFolder(folder);
      else if (!(await this.#disk.exists(folder))) {
        throw new StorageRefused(
          `${folder} does not exist and datadir.autocreate is false; make it, or correct dataDir and dataLogDir in the configuration`,
        );
      }
      this.#locks.push(await this.#disk.lock(folder));
    }
  }

  /** With two folders, a file in the wrong one means that one of the settings has changed, and that half of the data would be overlooked. */
  async #checkForMisplacedFiles(): Promise<void> {
    if (this.logFolder === this.snapshotFolder) return;
    const log = (await this.#disk.list(this.snapshotFolder)).find((name) => name.startsWith(`${logPrefix}.`));
    if (log !== undefined) {
      throw new StorageRefused(
        `${this.snapshotFolder} holds ${log}, but logs belong into dataLogDir (${this.#options.dataLogDir}); move the log files to ${this.logFolder}, or correct dataLogDir`,
      );
    }
    const snapshot = (await this.#disk.list(this.logFolder)).find((name) => name.startsWith(`${snapshotPrefix}.`));
    if (snapshot !== undefined) {
      throw new StorageRefused(
        `${this.logFolder} holds ${snapshot}, but snapshots belong into dataDir (${this.#options.dataDir}); move the snapshot files to ${this.snapshotFolder}, or correct dataDir`,
      );
    }
  }

  async #writeSnapshot(zxid: Zxid, source: SnapshotSource): Promise<boolean> {
    const startMs = this.#clock.now().elapsedMs;
    try {
      const bytes = await writeSnapshot(this.#disk, this.#clock, {
        folder: this.snapshotFolder,
        zxid,
        source,
        compression: this.#options.snapshotCompression,
        snappy: this.#hooks.snappy,
        abandoned: () => this.#closing,
      });
      if (bytes === undefined) return false;
      this.#hasSnapshot = true;
      this.#hooks.logger.info(
        `snapshot ${zxid.toString(16)} written: ${bytes} bytes in ${Math.round(this.#clock.now().elapsedMs - startMs)} ms`,
      );
      if (this.#initializeMarked) {
        // Only now: before the first snapshot was durable, a crash would have left an empty folder that nobody may trust.
        this.#initializeMarked = false;
        await this.#disk.remove(`${this.#options.dataDir}/initialize`);
        await this.#disk.syncFolder(this.#options.dataDir);
      }
      return true;
    } catch (error) {
      this.#snapshotErrors++;
      this.#hooks.logger.error(
        `cannot write a snapshot into ${this.snapshotFolder} (${error instanceof Error ? error.message : String(error)}); the server goes on and tries again later, but check the disk now`,
      );
      return false;
    }
  }

  #setPurgeTimer(delayMs: Millis): void {
    if (this.#options.purgeIntervalMs <= 0 || this.#closing) return;
    this.#purgeTimer = this.#clock.after(delayMs, () => {
      this.#purgeTimer = undefined;
      this.#purgeUnderWay = this.#purgeAndLog().then(() => this.#setPurgeTimer(this.#options.purgeIntervalMs));
    });
  }

  async #purgeAndLog(): Promise<void> {
    try {
      const { removed, damaged } = await this.purge();
      for (const path of damaged) this.#hooks.logger.warn(`${path} is damaged or incomplete, and does not count as a snapshot to keep`);
      if (removed.length > 0) this.#hooks.logger.info(`purged ${removed.length} files: ${removed.join(', ')}`);
    } catch (error) {
      this.#hooks.logger.warn(`purging failed (${error instanceof Error ? error.message : String(error)}); it is tried again later`);
    }
  }

  async #release(): Promise<void> {
    for (const lock of this.#locks.splice(0)) await lock.release();
  }
}
