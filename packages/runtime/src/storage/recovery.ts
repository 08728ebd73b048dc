/**
 * From a data folder to its state: the newest snapshot that can be read, and every txn after it.
 *
 * Recovery distinguishes three kinds of trouble. What a crash left (a torn tail, a file without a
 * name or without a header) was never acknowledged: it is removed and the server starts. What was
 * acknowledged and is missing or damaged is never ignored: the server refuses to start, with a
 * sentence that names what, where and what to do. Cases that cannot be distinguished are decided by
 * ZooKeeper's own rules, and never by cutting.
 *
 * Everything is checked before anything is changed, so a refusal leaves the folder as it was.
 */
import { isPossibleSuccessor, type LogEntry } from '@tskeeper/core/internal';
import {
  epochMax,
  epochOf,
  formatZxid,
  type Millis,
  ProtocolError,
  Reader,
  readTxn,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  type Zxid,
} from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Disk } from '../disk.ts';
import type { Logger } from '../logger.ts';
import type { SnappyCodec } from '../world.ts';
import { copyFileRange, syncFile, withFile } from './disk-helpers.ts';
import { logPrefix, markName, numberedFiles, type NumberedFile, unfinishedPrefix } from './file-names.ts';
import { isAllZero, type LogEnd, type OnLogEntry, readLog } from './log-reader.ts';
import { lostLogs, findOrphanMarks } from './lost-logs.ts';
import { afterZxid, damageOf, describeLogEnd, isTruncated, logConditionOf, markMismatch, misplacedEntry } from './log-condition.ts';
import { RecentTxns, type RecentTxnsLimits } from './recent-txns.ts';
import { isUnreadable, listSnapshots, loadSnapshot, looksComplete, type SnapshotSink } from './snapshot-files.ts';
import { remedyFor } from './remedy.ts';
import { StorageRefused } from './storage-refused.ts';
import { moveMark, readMark, type SyncedMark } from './synced-mark.ts';
import { truncateLogs, removeSnapshots, TruncationImpossible } from './truncation.ts';

/** Builds the state from what recovery reads. */
export interface RecoveryTarget {
  /**
   * A snapshot is about to be loaded: starts from nothing, whatever was fed before, because an
   * earlier snapshot may have turned out to be damaged half-way. Not called when there is no
   * snapshot.
   */
  beginSnapshot(zxid: Zxid): SnapshotSink;
  /** A txn of the log, in order. It may repeat what the snapshot already contains. */
  apply(header: TxnHeader, txn: Txn, digest: TxnDigest | undefined): void;
}

export interface RecoveryOptions {
  /**
   * Whether this server can fetch damaged data from its leader: another server of its ensemble
   * votes.
   */
  readonly canRefetch: boolean;
  readonly snapshotFolder: string;
  readonly logFolder: string;
  readonly snapshotTrustEmpty: boolean;
  readonly dbAutocreate: boolean;
  /** Whether the marker file `initialize` exists. */
  readonly initializeMarked: boolean;
  readonly snappy: SnappyCodec | undefined;
  /**
   * The longest txn that may have been written; distinguishes a cut entry from a corrupt length.
   */
  readonly txnBytesMax: number;
  /** How much of the end of the log is kept for `RecoveryResult.recent`; nothing by default. */
  readonly recent?: RecentTxnsLimits;
  /**
   * Goes back to this txn: builds the state after it, and then removes everything later. Rejects
   * with `TruncationImpossible`, and without having changed anything, where the folder does not
   * allow that.
   */
  readonly truncateTo?: Zxid;
}

export interface RecoveryResult {
  /** 0 for a new, empty database; -1 for an empty folder that is not trusted to be new. */
  readonly lastZxid: Zxid;
  /** undefined when no snapshot was loaded. */
  readonly snapshotZxid: Zxid | undefined;
  /** Number of txns applied. */
  readonly txnCount: number;
  readonly logCount: number;
  readonly loadSnapshotMs: Millis;
  readonly replayMs: Millis;
  /**
   * The last txns, as far as the replayed logs contain them: without a hole, and ending with
   * `lastZxid`; or none.
   */
  readonly recent: readonly LogEntry[];
  /** Each has been logged as well. */
  readonly warnings: readonly string[];
}

/** How many snapshots are tried; ZooKeeper's own number. */
const candidatesMax = 100;

export class Recovery {
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #options: RecoveryOptions;
  readonly #warnings: string[] = [];
  /** Changes to the folder, made once it is certain that nothing must be refused. */
  readonly #repairs: (() => Promise<void>)[] = [];
  #lastZxid: Zxid = 0;
  /** Where the last txn came from, for sentences about holes. */
  #lastSource = '';
  #txnCount = 0;
  #recent: RecentTxns | undefined;
  /** `truncateTo`, or no limit. */
  readonly #limit: Zxid;
  /**
   * A log ends before its mark, after a whole entry: a server that does not know marks has cut it.
   */
  #truncatedByAnother = false;
  /** The newest snapshot that cannot be loaded. */
  #damagedSnapshot: { readonly path: string; readonly zxid: Zxid } | undefined;
  /** Snapshots that contain txns beyond the limit. */
  readonly #snapshotsBeyondLimit = new Set<string>();

  constructor(disk: Disk, clock: Clock, logger: Logger, options: RecoveryOptions) {
    this.#disk = disk;
    this.#clock = clock;
    this.#logger = logger;
    this.#options = options;
    this.#limit = options.truncateTo ?? Infinity;
  }

  async run(target: RecoveryTarget): Promise<RecoveryResult> {
    const { logFolder, snapshotFolder } = this.#options;
    const startMs = this.#clock.now().elapsedMs;
    const logNames = await this.#disk.list(logFolder);
    const logs = numberedFiles(logNames, logPrefix);
    const snapshots = await listSnapshots(this.#disk, snapshotFolder);
    this.#recent = new RecentTxns(
      this.#options.recent ?? { count: 0, bytes: 0 },
      snapshots.map(({ zxid }) => zxid),
    );
    const snapshotZxid = await this.#loadNewestSnapshot(snapshots, target);
    if (snapshotZxid === undefined) this.#checkLogsAlone(logs);
    const loadedMs = this.#clock.now().elapsedMs;
    if (snapshotZxid === undefined) this.#lastSource = 'a start without snapshot';
    this.#lastZxid = snapshotZxid ?? 0;
    const first = Math.max(
      0,
      logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 1),
    );
    const replayed = logs.slice(first).filter(({ zxid }) => zxid <= this.#limit);
    for (const log of replayed) await this.#replay(log, log === logs.at(-1), new Set(logNames), target);
    const { truncateTo } = this.#options;
    if (truncateTo !== undefined && truncateTo !== this.#lastZxid) throw new TruncationImpossible(truncateTo, this.#lastZxid, logFolder);
    if (snapshotZxid === undefined && this.#txnCount > 0 && !this.#options.snapshotTrustEmpty) {
      throw new StorageRefused(
        `no snapshot found in ${snapshotFolder}, but there are log entries in ${logFolder}; bring the snapshots back, or, if there never were any, start once with snapshot.trust.empty=true${
          this.#options.canRefetch ? `; or else ${this.#remedy('')}` : ''
        }`,
      );
    }
    this.#checkDamagedSnapshot();
    await this.#checkLostLogs(logNames, logs);
    for (const repair of this.#repairs) await repair();
    if (truncateTo !== undefined) {
      await truncateLogs(this.#disk, logFolder, truncateTo, this.#options.txnBytesMax);
      await removeSnapshots(this.#disk, snapshotFolder, ({ name }) => this.#snapshotsBeyondLimit.has(name));
    }
    await this.#removeUnfinished(logFolder);
    if (snapshotFolder !== logFolder) await this.#removeUnfinished(snapshotFolder);

    const empty = snapshotZxid === undefined && this.#txnCount === 0;
    const trusted = this.#options.dbAutocreate || this.#options.initializeMarked;
    return {
      lastZxid: empty && !trusted ? -1 : this.#lastZxid,
      snapshotZxid,
      txnCount: this.#txnCount,
      logCount: replayed.length,
      loadSnapshotMs: loadedMs - startMs,
      replayMs: this.#clock.now().elapsedMs - loadedMs,
      recent: this.#recent.upTo(this.#lastZxid),
      warnings: this.#warnings,
    };
  }

  /** The rest of a sentence about damage. */
  #remedy(standaloneRemedy: string): string {
    const { canRefetch, snapshotFolder, logFolder } = this.#options;
    return remedyFor(canRefetch, { snapshots: snapshotFolder, logs: logFolder }, standaloneRemedy);
  }

  #warn(sentence: string): void {
    this.#warnings.push(sentence);
    this.#logger.warn(sentence, { event: 'recovery.warning', reason: sentence });
  }

  async #loadNewestSnapshot(snapshots: readonly NumberedFile[], target: RecoveryTarget): Promise<Zxid | undefined> {
    const folder = this.#options.snapshotFolder;
    let tried = 0;
    for (const { name, zxid } of snapshots) {
      if (zxid > this.#limit) {
        this.#snapshotsBeyondLimit.add(name);
        continue;
      }
      if (tried >= candidatesMax) break;
      const path = `${folder}/${name}`;
      try {
        if (!(await looksComplete(this.#disk, path))) {
          this.#warn(`${path} is not a complete snapshot; trying an older one`);
          this.#damagedSnapshot ??= { path, zxid };
          continue;
        }
        tried++;
        const sink = target.beginSnapshot(zxid);
        await loadSnapshot(this.#disk, path, this.#options.snappy, sink);
        const content = sink.contentZxid?.() ?? zxid;
        if (content > this.#limit) {
          this.#snapshotsBeyondLimit.add(name);
          this.#warn(`${path} holds changes up to ${formatZxid(content)}, beyond ${formatZxid(this.#limit)}; trying an older snapshot`);
          continue;
        }
        this.#lastSource = path;
        return zxid;
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        this.#warn(`${path} cannot be loaded (${error.message}); trying an older snapshot`);
        this.#damagedSnapshot ??= { path, zxid };
      }
    }
    if (snapshots.length > 0 && this.#options.truncateTo === undefined) {
      throw new StorageRefused(
        `none of the ${snapshots.length} snapshots in ${folder} can be loaded (${this.#warnings.at(-1) ?? ''}); ${this.#remedy('restore one from a backup, together with the logs that follow it')}`,
      );
    }
    return undefined;
  }

  /**
   * Going back needs a snapshot that is old enough. Logs alone suffice where they are trusted, if
   * there never was another snapshot, or if they begin with the very first txn.
   */
  #checkLogsAlone(logs: readonly NumberedFile[]): void {
    const { truncateTo, snapshotTrustEmpty, logFolder } = this.#options;
    if (truncateTo === undefined) return;
    const begins = logs[0]?.zxid;
    const sound = this.#snapshotsBeyondLimit.size === 0 ? begins === undefined || snapshotTrustEmpty : begins === 1 && snapshotTrustEmpty;
    if (!sound) throw new TruncationImpossible(truncateTo, undefined, logFolder);
  }

  /**
   * A snapshot gets its name when all txns it contains are durable, so an older one with the logs
   * after it must lead as far.
   */
  #checkDamagedSnapshot(): void {
    const { path, zxid } = this.#damagedSnapshot ?? {};
    if (path === undefined || zxid === undefined || zxid <= this.#lastZxid || this.#options.truncateTo !== undefined) return;
    throw new StorageRefused(
      `txns are missing: ${path} covers those up to ${formatZxid(zxid)} and is damaged, and the remaining data ends with ${formatZxid(this.#lastZxid)}; ${this.#remedy(
        `restore ${path}, or the logs that lead there, from a backup, or, if those txns may be lost, delete ${path}`,
      )}`,
    );
  }

  async #replay(log: NumberedFile, isLast: boolean, names: ReadonlySet<string>, target: RecoveryTarget): Promise<void> {
    const folder = this.#options.logFolder;
    const path = `${folder}/${log.name}`;
    let mark = names.has(markName(log.zxid)) ? await readMark(this.#disk, `${folder}/${markName(log.zxid)}`) : undefined;
    const hadMark = mark !== undefined;
    const [before, countBefore] = [this.#lastZxid, this.#txnCount];
    /** Whether an entry with the mark's zxid ends where the mark says. */
    let markMet = false;
    const reader = new Reader();
    const { txnBytesMax } = this.#options;
    const end = await withFile(this.#disk, path, async (file) => {
      const visit: OnLogEntry = (zxid, bytes, start, stop, offset, entryEnd) => {
        if (mark !== undefined && entryEnd === mark.offset) markMet = zxid === mark.lastZxid;
        this.#recent!.add(zxid, bytes, start, stop);
        if (zxid <= this.#lastZxid && this.#txnCount === 0) return;
        this.#checkOrder(path, offset, zxid);
        this.#apply(path, offset, reader.wrap(bytes, start, stop), target);
        this.#lastZxid = Math.max(this.#lastZxid, zxid);
        this.#lastSource = path;
      };
      const logEnd = await readLog(file, txnBytesMax, visit, undefined, { zxidMax: this.#limit });
      // What was read may be only in the page cache, if the process that wrote it was killed. The
      // state builds on it, so it must be durable. (After a failed sync this one has no effect; see
      // `#makeDurable`.)
      await syncFile(file);
      return { ...logEnd, allZero: logEnd.reason === 'zero header' && (await isAllZero(file)) };
    });

    if (mark !== undefined && this.#txnCount > countBefore) this.#checkBeginning(path, mark, end, before);
    // Txns beyond the limit are going to be cut off, with their mark; whether they are intact does
    // not matter.
    if (end.reason === 'limit' && (mark === undefined || misplacedEntry(end, mark) === undefined)) return;
    if (mark !== undefined && !this.#markFits(mark, end, markMet, path)) mark = undefined;
    if (hadMark && mark === undefined) {
      // It would be wrong again at each start.
      this.#repairs.push(() => this.#disk.remove(`${folder}/${markName(log.zxid)}`));
    }
    this.#handleLogEnd(log, end, mark, isLast, path);
  }

  /** Between two epochs the zxids show no hole. */
  #checkBeginning(path: string, { precedingZxid, firstChecksum }: SyncedMark, end: LogEnd, before: Zxid): void {
    if (precedingZxid <= before || end.firstChecksum !== firstChecksum) return;
    throw new StorageRefused(
      `txns are missing: ${path} begins after ${formatZxid(precedingZxid)}, but the txns before it end with ${formatZxid(before)}; ${this.#remedy('bring the missing log or snapshot back, or start from a backup that has it')}`,
    );
  }

  #markFits(mark: SyncedMark, end: LogEnd, markMet: boolean, path: string): boolean {
    const misfit = markMismatch(mark, end, markMet);
    if (misfit === undefined) return true;
    this.#warn(`${path} ${misfit}; the mark is ignored`);
    if (isTruncated(mark, end)) this.#truncatedByAnother = true;
    return false;
  }

  #handleLogEnd(
    log: NumberedFile,
    end: LogEnd & { readonly allZero: boolean },
    mark: SyncedMark | undefined,
    isLast: boolean,
    path: string,
  ): void {
    const condition = logConditionOf(end, mark, isLast, end.allZero);
    const damage = damageOf(end, mark);
    switch (condition) {
      case 'whole':
        break;
      case 'torn':
        this.#warn(
          `${path} has a torn tail at offset ${end.offset}, ${afterZxid(end)} (${describeLogEnd(end)}); nothing there was acknowledged, and it is cut off`,
        );
        this.#repairs.push(() => withFile(this.#disk, path, (file) => file.truncate(end.offset)));
        break;
      case 'unwritten':
        this.#warn(
          `${path} ends within an entry at offset ${end.offset}, ${afterZxid(end)}; as in ZooKeeper, that entry counts as not written`,
        );
        break;
      case 'nothing':
        this.#warn(`${path} holds no txn (${describeLogEnd(end)}); its server stopped while creating it, and it is removed`);
        this.#repairs.push(() => this.#disk.remove(path));
        break;
      case 'lost':
        throw new StorageRefused(
          `${path} is damaged at offset ${damage.offset}, ${afterZxid(damage)} (${damage.reason}), though its txns up to ${formatZxid(mark?.lastZxid ?? 0)} at offset ${mark?.offset} were durable and may have been acknowledged; ${this.#remedy(
            `restore the file from a backup, or, if those txns may be lost, delete ${markName(log.zxid)} and all later logs with their synced files, and cut the file with: truncate -s ${damage.offset} ${path}`,
          )}`,
        );
      case 'damaged':
        throw new StorageRefused(
          `${path} is damaged at offset ${damage.offset}, ${afterZxid(damage)} (${damage.reason}); ${this.#remedy(
            `restore the file from a backup, or, if nothing from there on was acknowledged or it may be lost, delete all later logs with their synced files, and ${
              end.count === 0 ? `the file itself` : `cut it with: truncate -s ${damage.offset} ${path}`
            }`,
          )}`,
        );
      default:
        condition satisfies never;
    }
    if (mark !== undefined) this.#moveMark(log, end, mark);
  }

  /** What was read beyond the mark is durable from now on, and the mark says so. */
  #moveMark(log: NumberedFile, end: LogEnd, mark: SyncedMark): void {
    if (end.offset <= mark.offset && mark.sequence > 1) return;
    const moved = { ...mark, sequence: mark.sequence + 1, offset: end.offset, lastZxid: end.lastZxid ?? mark.lastZxid };
    this.#repairs.push(async () => {
      await this.#makeDurable(log, mark, end);
      await moveMark(this.#disk, `${this.#options.logFolder}/${markName(log.zxid)}`, moved);
    });
  }

  /**
   * Makes durable what no mark vouches for. A sync is not enough: if the last process ended because
   * a sync had failed, the system regards the pages as clean although the disk may not have them,
   * and a power loss would lose them after the state has been built on them. So they are written
   * anew. A log whose mark has never moved may even owe its name to a sync of the folder that
   * failed: it is copied, and the copy takes its name.
   */
  async #makeDurable(log: NumberedFile, mark: SyncedMark, end: LogEnd): Promise<void> {
    const { logFolder } = this.#options;
    const path = `${logFolder}/${log.name}`;
    await withFile(this.#disk, path, async (file) => {
      if (mark.sequence > 1) {
        await copyFileRange(file, file, mark.offset, end.offset);
        return;
      }
      const temporary = `${logFolder}/${unfinishedPrefix}${log.name}`;
      const copy = await this.#disk.open(temporary, 'replace');
      try {
        await copyFileRange(file, copy, 0, end.offset);
      } finally {
        await copy.close();
      }
      await this.#disk.rename(temporary, path);
      await this.#disk.syncFolder(logFolder);
    });
  }

  /** zxids grow by one, and an epoch begins at 1. */
  #checkOrder(path: string, offset: number, zxid: Zxid): void {
    const last = this.#lastZxid;
    if (epochOf(zxid) > epochMax) {
      throw new StorageRefused(
        `${path} holds a txn of epoch ${epochOf(zxid)} at offset ${offset}; the highest epoch this server supports is ${epochMax}`,
      );
    }
    if (isPossibleSuccessor(last, zxid)) return;
    if (zxid <= last) {
      // In ZooKeeper an error txn of a request that could not be read repeats the zxid before it.
      this.#warn(`${path} has ${formatZxid(zxid)} at offset ${offset} after ${formatZxid(last)}; applied as it is`);
      return;
    }
    throw new StorageRefused(
      `txns are missing: ${path} continues with ${formatZxid(zxid)} at offset ${offset}, but expected ${formatZxid(last + 1)} after ${formatZxid(last)} from ${this.#lastSource}; ${this.#remedy(`bring the missing log back into ${this.#options.logFolder}, or start from a backup that has it`)}`,
    );
  }

  #apply(path: string, offset: number, reader: Reader, target: RecoveryTarget): void {
    let logged;
    try {
      logged = readTxn(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      throw new StorageRefused(
        `${path} has a txn at offset ${offset} that this server cannot read (${error.message}), though its checksum is right; it was written by a server of another kind or version, so start that one, or ${this.#remedy('restore the file from a backup')}`,
      );
    }
    target.apply(logged.header, logged.txn, logged.digest);
    this.#txnCount++;
  }

  /**
   * There are two exceptions: another server has truncated the logs, which removes later ones and
   * does not know marks; and our own truncation is about to remove them.
   */
  async #checkLostLogs(names: readonly string[], logs: readonly NumberedFile[]): Promise<void> {
    const { logFolder, truncateTo } = this.#options;
    const marks = await findOrphanMarks(this.#disk, logFolder, names, logs);
    for (const { name } of marks) this.#repairs.push(() => this.#disk.remove(`${logFolder}/${name}`));
    const lost = lostLogs(marks, this.#lastZxid);
    if (lost === undefined || truncateTo !== undefined) return;
    const what = `${lost.logs} in ${logFolder} ${lost.are} gone`;
    const left = formatZxid(this.#lastZxid);
    if (!this.#truncatedByAnother) {
      throw new StorageRefused(
        `${what}: ${lost.marks} ${lost.say} that txns up to ${formatZxid(lost.lastZxid)} were durable and may have been acknowledged, but the remaining data ends with ${left}; ${this.#remedy(
          `bring ${lost.logs} back, or start from a backup that has ${lost.them}, or, if those txns may be lost, delete ${lost.marks} and start this server again`,
        )}`,
      );
    }
    this.#warn(
      `${what}, with txns up to ${formatZxid(lost.lastZxid)}: the server that truncated the logs has removed ${lost.them}, and this server starts at ${left}`,
    );
  }

  /**
   * Removes what a crash left unfinished, and makes everything found and done durable: a name may
   * be known to the system alone.
   */
  async #removeUnfinished(folder: string): Promise<void> {
    for (const name of await this.#disk.list(folder)) if (name.startsWith(unfinishedPrefix)) await this.#disk.remove(`${folder}/${name}`);
    await this.#disk.syncFolder(folder);
  }
}
