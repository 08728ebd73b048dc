/**
 * A server's data folder: its operations for the runtime, without their implementation.
 *
 *     open        locks the folders, recovers their state
 *     append      hands a txn to the log; `flush` ends the turn; `appended` says it is durable
 *     takeSnapshot  writes the tree's state in slices, after `snapshotDue` or after loading
 *     close       makes everything durable and releases the folders
 *
 * A server of an ensemble also needs:
 *
 *     openForEnsemble  as open, with its epochs and the last txns
 *     saveEpoch   makes an epoch durable
 *     truncate    goes back to an earlier txn (TRUNC)
 *     installSnapshot  replaces everything by the leader's snapshot (SNAP)
 *     iterateLog    reads the log for others (DIFF)
 */
import type { EpochName } from '@tskeeper/core';
import { formatZxid, type Millis, type Zxid } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import { type Disk, DiskError, type FolderLock } from '../disk.ts';
import type { Logger } from '../logger.ts';
import type { Random } from '../random.ts';
import type { SnappyCodec } from '../world.ts';
import { folderBytes, withFile } from './disk-helpers.ts';
import { EpochFiles } from './epoch-files.ts';
import { logPrefix, markName, numberedFiles, snapshotPrefix } from './file-names.ts';
import { readLog } from './log-reader.ts';
import { finishInstall, type NotedFolders, removeOlderHistory, writeInstallNote } from './install-note.ts';
import { TxnLogIterator } from './txn-log-iterator.ts';
import { purge, type PurgeResult } from './purge.ts';
import { type RecoveryResult, Recovery, type RecoveryTarget } from './recovery.ts';
import type { RecentTxnsLimits } from './recent-txns.ts';
import {
  type AsyncSnapshotSource,
  listSnapshots,
  nameOrRemoveSnapshot,
  nameSnapshot,
  removeIfThere,
  type SnapshotJob,
  SnapshotReadBackFailed,
  type SnapshotSource,
  type UnnamedSnapshot,
  verifySnapshot,
  writeUnnamedSnapshot,
} from './snapshot-files.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import type { StorageOptions } from './storage-options.ts';
import { StorageRefused } from './storage-refused.ts';
import { readMark } from './synced-mark.ts';
import { truncateLogs, TruncationImpossible } from './truncation.ts';
import { type FlushedBatch, TxnLog } from './txn-log.ts';
import { asRefusal } from './unusable-folder.ts';

export interface StorageWorld {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
}

/** The limits of the core that storage needs. */
export interface StorageLimits {
  /**
   * The longest txn that may have been written: it distinguishes a cut entry from a corrupt length.
   */
  readonly txnBytesMax: number;
  /** What the tree writes into a snapshot in one slice. */
  readonly snapshotSliceBytes?: number;
}

export interface StorageHooks {
  readonly logger: Logger;
  readonly snappy: SnappyCodec | undefined;
}

/**
 * The calls of storage to the runtime. All come from the loop, never from inside a call on
 * `Storage`.
 */
export interface StorageSink {
  /** Every txn up to this one is durable. */
  appended(zxid: Zxid): void;
  /** The disk has failed. Called once; no further txn is appended, and the process should end. */
  failed(error: unknown): void;
  /**
   * A snapshot is due: the log has been rolled. The runtime answers with `takeSnapshot` when the
   * tree allows it.
   */
  snapshotDue(): void;
  /** A sync of the log has succeeded. */
  synced(durationMs: Millis, txnCount: number, bytes: number): void;
  /** A batch of txns has been flushed. */
  flushed(batch: FlushedBatch): void;
}

export interface StorageSizes {
  readonly dataDirBytes: number;
  readonly logDirBytes: number;
}

export interface EnsembleOpenOptions {
  /** Limits the txns that `openForEnsemble` and `truncate` return with their results. */
  readonly recent: RecentTxnsLimits;
  /**
   * Whether another server of the ensemble votes, so that there is a leader from which everything
   * can be fetched anew.
   */
  readonly canRefetch: boolean;
}

export interface EnsembleRecoveryResult extends RecoveryResult {
  /**
   * Whether there was a snapshot or a txn. If not, this server may be new, or have lost everything
   * it ever acknowledged.
   */
  readonly hasData: boolean;
  /**
   * Whether a snapshot must be taken before anything is appended, and before currentEpoch is saved.
   */
  readonly needsSnapshot: boolean;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

/** The subfolder of a data folder that holds the files; 2 is the version of their formats. */
const versionFolder = 'version-2';
/** The first purge waits until the start is complete. */
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
  /** A file `initialize` exists; it is removed when the first snapshot is durable. */
  #initializeMarked = false;
  /**
   * Whether a start would find a snapshot. Invariant: true before anything is appended, because a
   * log alone is not trusted.
   */
  #hasSnapshot = false;
  #snapshotUnderWay: Promise<boolean> | undefined;
  #snapshotErrors = 0;
  #snapshotFailure: string | undefined;
  /** Undefined for a standalone server, which has no epochs. */
  #epochs: EpochFiles | undefined;
  /** Whether this server can fetch damaged data from its leader. */
  #canRefetch = false;
  /** How much of the end of the log a recovery returns. */
  #recent: RecentTxnsLimits = { count: 0, bytes: 0 };
  /**
   * A truncation, or the installation of a leader's snapshot: nothing else is written meanwhile.
   */
  #rewriting: Promise<unknown> | undefined;
  readonly #logIterators = new Set<TxnLogIterator>();
  #purgeTimer: TimerHandle | undefined;
  #purgeUnderWay: Promise<unknown> | undefined;
  #lastBackground: Promise<unknown> = Promise.resolve();
  #closing = false;
  /**
   * How long the disk has worked on the current batch of the log, without time in which the process
   * was suspended.
   */
  #watchedBatchMs: Millis = 0;
  #watchedBatch: number | undefined;

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

  get #folders(): NotedFolders {
    return { snapshots: this.snapshotFolder, logs: this.logFolder, canRefetch: this.#canRefetch };
  }

  /** Syncs that took longer than fsync.warningthresholdms. */
  get slowSyncs(): number {
    return this.#log?.slowSyncs ?? 0;
  }

  /** Snapshots that could not be written. */
  get snapshotErrors(): number {
    return this.#snapshotErrors;
  }

  /** Why the last snapshot could not be written; undefined when none has failed so far. */
  get snapshotFailure(): string | undefined {
    return this.#snapshotFailure;
  }

  get isTakingSnapshot(): boolean {
    return this.#snapshotUnderWay !== undefined;
  }

  /**
   * Locks the folders and recovers their state into `target`. Rejects with `FolderInUse`,
   * `StorageRefused` or `DiskError`; then the folders are released. The caller, a standalone
   * server, takes a snapshot next in any case; when no snapshot was loaded, nothing may be appended
   * before that one is durable.
   */
  async open(target: RecoveryTarget): Promise<RecoveryResult> {
    const { dataDir, dataLogDir } = this.#options;
    try {
      await this.#lockFolders().catch((error: unknown) => {
        throw asRefusal(error, 'claiming', this.#options);
      });
      await this.#checkForMisplacedFiles();
      this.#initializeMarked = await this.#disk.exists(`${dataDir}/initialize`);
      if (!this.#disk.canSyncFolders) {
        this.#hooks.logger.warn(
          `this system cannot sync folders, so a loss of power may undo the creation and removal of files in ${dataDir} and ${dataLogDir}`,
          { event: 'disk.no-folder-sync', dataDir, dataLogDir },
        );
      }
      await finishInstall(this.#disk, this.#folders, this.#hooks.snappy, this.#hooks.logger);
      const recovered = await this.#recovery().run(target);
      this.#hasSnapshot = recovered.snapshotZxid !== undefined || this.#options.snapshotTrustEmpty;
      this.#log = this.#newLog(recovered.lastZxid);
      this.#setPurgeTimer(Math.min(firstPurgeDelayMs, this.#options.purgeIntervalMs));
      return recovered;
    } catch (error) {
      await this.#unlockFolders();
      throw asRefusal(error, 'reading', this.#options);
    }
  }

  /** The same for a server of an ensemble. A snapshot is only needed if `needsSnapshot` is set. */
  async openForEnsemble(target: RecoveryTarget, { recent, canRefetch }: EnsembleOpenOptions): Promise<EnsembleRecoveryResult> {
    this.#recent = recent;
    this.#canRefetch = canRefetch;
    const recovered = await this.open(target);
    const hasData = recovered.snapshotZxid !== undefined || recovered.txnCount > 0;
    try {
      this.#epochs = await EpochFiles.open(this.#disk, this.snapshotFolder, this.#hooks.logger, {
        lastZxid: recovered.lastZxid,
        hasData: hasData || this.#options.snapshotTrustEmpty,
        canRefetch,
      });
    } catch (error) {
      await this.close();
      throw asRefusal(error, 'reading', this.#options);
    }
    const { accepted, current } = this.#epochs.epochs;
    return { ...recovered, hasData, needsSnapshot: !this.#hasSnapshot, acceptedEpoch: accepted, currentEpoch: current };
  }

  /**
   * Hands a txn to the log; the bytes [start, end) are copied. It is durable when `appended` says
   * so.
   */
  append(zxid: Zxid, bytes: Uint8Array, start: number, end: number): void {
    const log = this.#log!;
    if (this.#rewriting !== undefined) throw new Error('append while the folder is being rewritten');
    if (!this.#hasSnapshot) throw new Error('append before the first snapshot is durable');
    if (!this.#trigger.txnAppended(log.append(zxid, bytes, start, end))) return;
    log.roll();
    if (this.#snapshotUnderWay === undefined) this.#clock.setImmediate(() => this.requestSnapshot());
  }

  /** Asks for a snapshot, unless one is being written. */
  requestSnapshot(): void {
    if (this.#snapshotUnderWay === undefined && !this.#closing) this.#sink.snapshotDue();
  }

  /** Called at the end of each turn that may have appended. */
  flush(): void {
    this.#log?.flush();
  }

  /**
   * Writes a snapshot named `zxid`, the last txn applied when `source` was begun. Resolves to
   * whether it was written: false when another one is being written, when storage is closing or the
   * folder is being rewritten, or when the disk failed. The last is logged and counted, and the
   * server continues: the next snapshot is tried when it is due, and until then restarts take
   * longer.
   */
  async takeSnapshot(zxid: Zxid, source: SnapshotSource): Promise<boolean> {
    if (this.#snapshotUnderWay !== undefined || this.#rewriting !== undefined || this.#closing) return false;
    this.#snapshotUnderWay = this.#writeSnapshot(zxid, source);
    try {
      return await this.#snapshotUnderWay;
    } finally {
      this.#snapshotUnderWay = undefined;
    }
  }

  /**
   * Makes an epoch durable; resolves when it is. Epochs are written one at a time, in the order of
   * the calls, and only grow. Save currentEpoch only when the snapshot or the txns with which that
   * epoch begins are durable (ZOOKEEPER-4643). Rejects with `DiskError`; then the content of the
   * disk is unknown, so every later call rejects too.
   */
  async saveEpoch(name: EpochName, epoch: number): Promise<void> {
    if (this.#epochs === undefined) throw new Error('a standalone server has no epochs');
    // A start that finds an epoch and no data would assume that the data is lost.
    if (name === 'currentEpoch' && !this.#hasSnapshot) throw new Error('currentEpoch saved before the first snapshot is durable');
    await this.#epochs.save(name, epoch);
  }

  /**
   * Goes back to `zxid`: builds the state after that txn in `target`, then durably removes every
   * later txn and snapshot. Txns handed over before are first made durable and reported; a snapshot
   * in progress is abandoned, and readings end. A power loss meanwhile leaves the old history or
   * its beginning, at least up to `zxid`.
   *
   * Rejects with `TruncationImpossible` or `StorageRefused`: nothing has changed, and the state in
   * `target` is useless. Rejects with `DiskError` after `failed` has been called: part of it may
   * have been done, and no further txn is appended (ZOOKEEPER-3701).
   */
  async truncate(zxid: Zxid, target: RecoveryTarget): Promise<RecoveryResult> {
    return await this.#rewrite(() =>
      this.#inBackground(async () => {
        const lastZxid = await this.#closeLog();
        try {
          const recovered = await this.#recovery(zxid).run(target);
          this.#hasSnapshot = recovered.snapshotZxid !== undefined || this.#options.snapshotTrustEmpty;
          this.#log = this.#newLog(zxid);
          return recovered;
        } catch (error) {
          if (error instanceof TruncationImpossible || error instanceof StorageRefused) this.#log = this.#newLog(lastZxid);
          else this.#log!.fail(error);
          throw error;
        }
      }),
    );
  }

  /**
   * Replaces everything by a snapshot of the leader, made at `zxid`. It is written and read back
   * first; then the log entries beyond it are removed, it gets its name, and then everything else
   * is removed, so that the old history cannot return if this snapshot becomes unreadable one day;
   * see install-note.ts. A power loss meanwhile leaves the old history, its beginning, or the
   * snapshot.
   *
   * `source` must reject when its content will not arrive completely: `close` waits for it.
   *
   * Resolves to false when storage is closing; then nothing has changed. Rejects with the error of
   * `source`, with `SnapshotReadBackFailed` when the content read back is not a complete snapshot,
   * or with `DiskError` when it could not be written: nothing has changed. Rejects with `DiskError`
   * after `failed` has been called when the disk failed later.
   */
  async installSnapshot(zxid: Zxid, source: AsyncSnapshotSource): Promise<boolean> {
    return await this.#rewrite(async () => {
      const unnamed = await writeUnnamedSnapshot(
        this.#disk,
        this.#clock,
        this.#snapshotJob(zxid, source, () => this.#closing),
      );
      if (unnamed === undefined) return false;
      if (!(await verifySnapshot(this.#disk, unnamed.unfinishedPath, this.#hooks.snappy))) {
        await removeIfThere(this.#disk, unnamed.unfinishedPath);
        throw new SnapshotReadBackFailed(unnamed.unfinishedPath);
      }
      await this.#inBackground(() => this.#install(zxid, unnamed));
      return true;
    });
  }

  async #install(zxid: Zxid, unnamed: UnnamedSnapshot): Promise<void> {
    try {
      await this.#closeLog();
      // While a snapshot beyond `zxid` exists, a start finds it and the logs up to it; so it is
      // removed after the new one has its name.
      await truncateLogs(this.#disk, this.logFolder, zxid, this.#options.txnBytesMax);
      await writeInstallNote(this.#disk, this.#folders, unnamed);
      await nameSnapshot(this.#disk, unnamed);
      await removeOlderHistory(this.#disk, this.#folders, unnamed.name);
      await this.#consumeInitializeMarker();
    } catch (error) {
      this.#log!.fail(error);
      throw error;
    }
    this.#hasSnapshot = true;
    this.#log = this.#newLog(zxid);
    this.#hooks.logger.info(`snapshot ${zxid.toString(16)} replaced the data of this server: ${unnamed.bytes} bytes`, {
      event: 'snapshot.installed',
      zxid: formatZxid(zxid),
      bytes: unnamed.bytes,
    });
  }

  /**
   * Reads the log for others: from the txn with the largest zxid up to `zxid`, to the last one that
   * is durable now. Resolves to undefined when the log does not go back that far, and rejects with
   * `DiskError`. Logs that a reading needs are not purged, so it must be read to its end or closed.
   */
  async iterateLog(zxid: Zxid): Promise<TxnLogIterator | undefined> {
    return await this.#inBackground(() => this.#iterateLog(zxid));
  }

  async #iterateLog(zxid: Zxid): Promise<TxnLogIterator | undefined> {
    const { txnBytesMax } = this.#options;
    const lastZxid = this.#log!.durableZxid;
    const names = await this.#disk.list(this.logFolder);
    const all = numberedFiles(names, logPrefix);
    const logs = all.slice(
      Math.max(
        0,
        all.findLastIndex((log) => log.zxid <= zxid),
      ),
    );
    const first = logs[0];
    if (first === undefined || first.zxid > zxid) return undefined;
    let offset: number | undefined;
    await withFile(this.#disk, `${this.logFolder}/${first.name}`, async (file) => {
      const visit = (_zxid: Zxid, _bytes: Buffer, _start: number, _end: number, at: number) => {
        offset = at;
      };
      await readLog(file, txnBytesMax, visit, undefined, { zxidMax: Math.min(zxid, lastZxid) });
    });
    if (offset === undefined) return undefined;
    let logBytes = -offset;
    const begunBehind: Zxid[] = [];
    for (const log of logs) {
      const mark = names.includes(markName(log.zxid)) ? await readMark(this.#disk, `${this.logFolder}/${markName(log.zxid)}`) : undefined;
      if (mark !== undefined) begunBehind.push(mark.precedingZxid);
      logBytes += mark?.offset ?? (await withFile(this.#disk, `${this.logFolder}/${log.name}`, (file) => file.size()));
    }
    const snapshots = await listSnapshots(this.#disk, this.snapshotFolder);
    const newest = snapshots[0];
    const snapshotBytes =
      newest === undefined ? undefined : await withFile(this.#disk, `${this.snapshotFolder}/${newest.name}`, (file) => file.size());
    // Nothing would end a reading that began now before the logs are removed.
    if (this.#rewriting !== undefined || this.#closing) return undefined;
    const iterator = new TxnLogIterator(
      this.#disk,
      {
        folder: this.logFolder,
        logs,
        offset,
        lastZxid,
        known: [...snapshots.map((snapshot) => snapshot.zxid), ...begunBehind],
        txnBytesMax,
        logBytes: Math.max(0, logBytes),
        snapshotBytes,
      },
      (ended) => this.#logIterators.delete(ended),
    );
    this.#logIterators.add(iterator);
    return iterator;
  }

  /**
   * Nothing else is written while `work` runs: no snapshot of the state that is being left, and no
   * txn.
   */
  async #rewrite<T>(work: () => Promise<T>): Promise<T> {
    if (this.#rewriting !== undefined || this.#closing || this.#log === undefined) throw new Error('the folder cannot be rewritten now');
    const done = (async () => {
      await this.#snapshotUnderWay;
      const gone = { kind: 'gone', reason: `the logs in ${this.logFolder} are being rewritten` } as const;
      await Promise.all(Array.from(this.#logIterators, (reading) => reading.stop(gone)));
      return await work();
    })();
    this.#rewriting = done;
    try {
      return await done;
    } finally {
      this.#rewriting = undefined;
    }
  }

  /** Makes durable what was handed over, and closes the log. Returns the last txn. */
  async #closeLog(): Promise<Zxid> {
    const log = this.#log!;
    await log.close();
    if (log.failure !== undefined) throw log.failure;
    return log.lastZxid;
  }

  #newLog(lastZxid: Zxid): TxnLog {
    return new TxnLog(this.#disk, this.#clock, this.#hooks.logger, { ...this.#options, folder: this.logFolder }, lastZxid, this.#sink);
  }

  #recovery(truncateTo?: Zxid): Recovery {
    return new Recovery(this.#disk, this.#clock, this.#hooks.logger, {
      canRefetch: this.#canRefetch,
      snapshotFolder: this.snapshotFolder,
      logFolder: this.logFolder,
      snapshotTrustEmpty: this.#options.snapshotTrustEmpty,
      dbAutocreate: this.#options.dbAutocreate,
      initializeMarked: this.#initializeMarked,
      snappy: this.#hooks.snappy,
      txnBytesMax: this.#options.txnBytesMax,
      recent: this.#recent,
      ...(truncateTo === undefined ? {} : { truncateTo }),
    });
  }

  /**
   * Gives up a disk that does not answer. Called repeatedly, `passedMs` after the previous call:
   * time in which the process was suspended does not count, because the answer may already be
   * waiting.
   */
  checkDiskTimeout(timeoutMs: Millis, passedMs: Millis): void {
    const batch = this.#log?.batchUnderWay;
    this.#watchedBatchMs = batch !== undefined && batch === this.#watchedBatch ? this.#watchedBatchMs + passedMs : 0;
    this.#watchedBatch = batch;
    if (this.#watchedBatchMs >= timeoutMs) this.#log!.fail(new DiskError('ETIMEDOUT', 'append to the log in', this.logFolder));
  }

  /** Deletes files that no start needs; also runs every autopurge.purgeInterval. */
  purge(): Promise<PurgeResult> {
    return this.#inBackground(() => {
      const neededFrom = Math.min(...Array.from(this.#logIterators, (reading) => reading.oldestLogZxid));
      return purge(this.#disk, this.#folders, this.#options.snapRetainCount, this.#hooks.snappy, neededFrom);
    });
  }

  /** The sizes for `dirs`. */
  sizes(): Promise<StorageSizes> {
    return this.#inBackground(() => this.#sizes());
  }

  async #sizes(): Promise<StorageSizes> {
    const dataDirBytes = await folderBytes(this.#disk, this.snapshotFolder);
    const logDirBytes = this.logFolder === this.snapshotFolder ? dataDirBytes : await folderBytes(this.#disk, this.logFolder);
    return { dataDirBytes, logDirBytes };
  }

  /**
   * Runs background work, and work that must not overlap with it, one at a time. A disk works with
   * few threads (four, as in node). If the disk of the snapshots hangs, it occupies one for a
   * snapshot and one for all of this; a name server that hangs occupies another (see NameResolver
   * of the server); and one is always left for the log.
   */
  #inBackground<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#lastBackground.then(work);
    this.#lastBackground = done.catch(() => undefined);
    return done;
  }

  /** Ends work in progress, makes everything handed over durable, and releases the folders. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#purgeTimer !== undefined) this.#clock.cancel(this.#purgeTimer);
    this.#purgeTimer = undefined;
    await this.#snapshotUnderWay;
    // The caller of that work gets its error.
    await this.#rewriting?.catch(() => undefined);
    await Promise.all(Array.from(this.#logIterators, (reading) => reading.close()));
    await this.#epochs?.whenIdle();
    await this.#purgeUnderWay;
    await this.#log?.close();
    await this.#unlockFolders();
  }

  async #lockFolders(): Promise<void> {
    const folders = this.logFolder === this.snapshotFolder ? [this.snapshotFolder] : [this.snapshotFolder, this.logFolder];
    for (const folder of folders) {
      if (this.#options.dataDirAutocreate) await this.#disk.ensureFolder(folder);
      else if (!(await this.#disk.exists(folder))) {
        throw new StorageRefused(
          `${folder} does not exist and datadir.autocreate is false; create it, or correct dataDir and dataLogDir in the configuration`,
        );
      }
      this.#locks.push(await this.#disk.lock(folder));
    }
  }

  /**
   * With two folders, a file in the wrong one means that one of the settings has changed, and that
   * half of the data would be overlooked.
   */
  async #checkForMisplacedFiles(): Promise<void> {
    if (this.logFolder === this.snapshotFolder) return;
    const log = (await this.#disk.list(this.snapshotFolder)).find((name) => name.startsWith(`${logPrefix}.`));
    if (log !== undefined) {
      throw new StorageRefused(
        `${this.snapshotFolder} holds ${log}, but logs belong in dataLogDir (${this.#options.dataLogDir}); move the log files to ${this.logFolder}, or correct dataLogDir`,
      );
    }
    const snapshot = (await this.#disk.list(this.logFolder)).find((name) => name.startsWith(`${snapshotPrefix}.`));
    if (snapshot !== undefined) {
      throw new StorageRefused(
        `${this.logFolder} holds ${snapshot}, but snapshots belong in dataDir (${this.#options.dataDir}); move the snapshot files to ${this.snapshotFolder}, or correct dataDir`,
      );
    }
  }

  async #writeSnapshot(zxid: Zxid, source: SnapshotSource): Promise<boolean> {
    const startMs = this.#clock.now().elapsedMs;
    try {
      const isCancelled = () => this.#closing || this.#rewriting !== undefined;
      const unnamed = await writeUnnamedSnapshot(this.#disk, this.#clock, this.#snapshotJob(zxid, source, isCancelled));
      if (unnamed === undefined) return false;
      // A learner applies what its leader says is committed, and its own log may be that far
      // behind. If it continued after this snapshot without those txns in its log, an older
      // snapshot and the log could silently lead to another state one day.
      if (!(await this.#log!.whenDurable())) {
        await removeIfThere(this.#disk, unnamed.unfinishedPath);
        return false;
      }
      await nameOrRemoveSnapshot(this.#disk, unnamed);
      this.#hasSnapshot = true;
      const durationMs = Math.round(this.#clock.now().elapsedMs - startMs);
      this.#hooks.logger.info(`snapshot ${zxid.toString(16)} written: ${unnamed.bytes} bytes in ${durationMs} ms`, {
        event: 'snapshot.written',
        zxid: formatZxid(zxid),
        bytes: unnamed.bytes,
        durationMs,
      });
      await this.#consumeInitializeMarker();
      return true;
    } catch (error) {
      this.#snapshotErrors++;
      this.#snapshotFailure = messageOf(error);
      this.#hooks.logger.error(
        `cannot write a snapshot into ${this.snapshotFolder} (${messageOf(error)}); the server continues and tries again later, but check the disk now`,
        { event: 'snapshot.failed', path: this.snapshotFolder, reason: messageOf(error) },
      );
      return false;
    }
  }

  #snapshotJob(zxid: Zxid, source: AsyncSnapshotSource, isCancelled: () => boolean): SnapshotJob {
    const { snapshotCompression: compression, snapshotSliceBytes: sliceBytes } = this.#options;
    return { folder: this.snapshotFolder, zxid, source, compression, snappy: this.#hooks.snappy, sliceBytes, isCancelled };
  }

  /**
   * Only when a snapshot is durable: before the first one, a crash would leave an empty folder that
   * no start trusts.
   */
  async #consumeInitializeMarker(): Promise<void> {
    if (!this.#initializeMarked) return;
    this.#initializeMarked = false;
    await this.#disk.remove(`${this.#options.dataDir}/initialize`);
    await this.#disk.syncFolder(this.#options.dataDir);
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
      const { logger } = this.#hooks;
      for (const path of damaged) {
        logger.warn(`${path} is damaged or incomplete, and does not count as a snapshot to keep`, { event: 'snapshot.damaged', path });
      }
      if (removed.length > 0) logger.info(`purged ${removed.length} files: ${removed.join(', ')}`, { event: 'purge.done', paths: removed });
    } catch (error) {
      this.#hooks.logger.warn(`the purge failed (${messageOf(error)}); the server tries again later`, {
        event: 'purge.failed',
        reason: messageOf(error),
      });
    }
  }

  async #unlockFolders(): Promise<void> {
    for (const lock of this.#locks.splice(0)) await lock.release();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
