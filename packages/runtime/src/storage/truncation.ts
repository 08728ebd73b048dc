/**
 * Removing the end of a history, in steps that may be interrupted.
 *
 * A leader notifies a learner which of its txns were never committed (TRUNC), or sends a snapshot
 * in place of an unrelated history (SNAP). Removal goes from the newest to the oldest, logs before
 * snapshots, and each step is durable before the next one begins. So a power loss leaves the old
 * history, or a part of it from the beginning on, never one with a hole: a log without its
 * predecessor would prevent the next start. And a snapshot is removed only when no log has anything
 * after it, so whichever is the newest can be started from.
 *
 * ZooKeeper cuts and deletes without any sync, and keeps snapshots that are newer than the cut,
 * from which the txns return at the next start (ZOOKEEPER-4837).
 */
import { formatZxid, type Zxid } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import { logName, logPrefix, markName, markPrefix, numberedFiles, type NumberedFile, snapshotPrefix } from './file-names.ts';
import { type LogEnd, readLog } from './log-reader.ts';
import { moveMark, readMark } from './synced-mark.ts';

/**
 * The history of this server cannot be cut after a txn. Nothing has been changed. The caller does
 * something else: a truncation to `heldZxid`, which will succeed, and joining anew from there; or a
 * snapshot of the leader.
 */
export class TruncationImpossible extends Error {
  override readonly name = 'TruncationImpossible';
  readonly zxid: Zxid;
  /**
   * The last txn up to `zxid` that can be gone back to; undefined when no snapshot is old enough.
   */
  readonly nearestZxid: Zxid | undefined;

  constructor(zxid: Zxid, heldZxid: Zxid | undefined, folder: string) {
    super(
      heldZxid === undefined
        ? `the history in ${folder} cannot be cut after ${formatZxid(zxid)}: no snapshot that can be loaded is that old`
        : `the history in ${folder} cannot be cut after ${formatZxid(zxid)}, because it does not contain that txn; the last one before is ${formatZxid(heldZxid)}`,
    );
    this.zxid = zxid;
    this.nearestZxid = heldZxid;
  }
}

/**
 * Removes a log and its mark. The mark is removed first, durably: without one, only the content of
 * a log counts, while a mark without its log says that acknowledged txns are missing.
 */
async function removeLog(disk: Disk, folder: string, names: ReadonlySet<string>, { name, zxid }: NumberedFile): Promise<void> {
  if (names.has(markName(zxid))) {
    await disk.remove(`${folder}/${markName(zxid)}`);
    await disk.syncFolder(folder);
  }
  await disk.remove(`${folder}/${name}`);
}

/** Marks of missing logs beyond `zxid` belong to another history from now on. */
async function removeLostMarks(disk: Disk, folder: string, names: ReadonlySet<string>, zxid: Zxid): Promise<void> {
  const lost = numberedFiles([...names], markPrefix).filter((mark) => mark.zxid > zxid && !names.has(logName(mark.zxid)));
  for (const { name } of lost) await disk.remove(`${folder}/${name}`);
  if (lost.length > 0) await disk.syncFolder(folder);
}

/** Removes every log entry beyond `zxid`; durable when it resolves. */
export async function truncateLogs(disk: Disk, folder: string, zxid: Zxid, txnBytesMax: number): Promise<void> {
  const names = new Set(await disk.list(folder));
  await removeLostMarks(disk, folder, names, zxid);
  const logs = numberedFiles([...names], logPrefix);
  for (const log of logs.toReversed()) {
    if (log.zxid > zxid) {
      await removeLog(disk, folder, names, log);
    } else {
      const cut = await truncateLog(disk, folder, names, log, zxid, txnBytesMax);
      // Logs before it end where it begins.
      if (cut !== 'removed') return;
    }
    await disk.syncFolder(folder);
  }
}

async function truncateLog(
  disk: Disk,
  folder: string,
  names: ReadonlySet<string>,
  log: NumberedFile,
  zxid: Zxid,
  txnBytesMax: number,
): Promise<'whole' | 'cut' | 'removed'> {
  const path = `${folder}/${log.name}`;
  let end: LogEnd;
  const file = await disk.open(path, 'existing');
  try {
    end = await readLog(file, txnBytesMax, () => undefined, undefined, { zxidMax: zxid });
    if (end.reason !== 'limit') return 'whole';
    if (end.count > 0) {
      await lowerMark(disk, folder, names, log, end);
      await file.truncate(end.offset);
      return 'cut';
    }
  } finally {
    await file.close();
  }
  // None of its entries stays, and a log without a first entry would count as damaged.
  await removeLog(disk, folder, names, log);
  return 'removed';
}

/** The mark is lowered first: it may lag behind its log, and must never be ahead of it. */
async function lowerMark(disk: Disk, folder: string, names: ReadonlySet<string>, log: NumberedFile, end: LogEnd): Promise<void> {
  const name = markName(log.zxid);
  if (!names.has(name)) return;
  const path = `${folder}/${name}`;
  const mark = await readMark(disk, path);
  if (mark === undefined || mark.firstChecksum !== end.firstChecksum) {
    await disk.remove(path);
    await disk.syncFolder(folder);
  } else if (mark.offset > end.offset) {
    await moveMark(disk, path, { ...mark, sequence: mark.sequence + 1, offset: end.offset, lastZxid: end.lastZxid! });
  }
}

/** Removes the snapshots that `isGone` selects, the newest first; durable when it resolves. */
export async function removeSnapshots(disk: Disk, folder: string, isGone: (snapshot: NumberedFile) => boolean): Promise<void> {
  const snapshots = numberedFiles(await disk.list(folder), snapshotPrefix).toReversed();
  for (const snapshot of snapshots) {
    if (!isGone(snapshot)) continue;
    await disk.remove(`${folder}/${snapshot.name}`);
    await disk.syncFolder(folder);
  }
}

/** Removes all logs with their marks, the newest first; durable when it resolves. */
export async function removeLogs(disk: Disk, folder: string): Promise<void> {
  const names = new Set(await disk.list(folder));
  await removeLostMarks(disk, folder, names, 0);
  for (const log of numberedFiles([...names], logPrefix).toReversed()) await removeLog(disk, folder, names, log);
  await disk.syncFolder(folder);
}
