/**
 * The note in a folder while a snapshot of the leader replaces all other data (SNAP).
 *
 * From the moment that snapshot has its name until the last older file is removed, the folder holds
 * two histories. A start loads the newer, as it should. But if the snapshot went bad, a start would
 * silently fall back to the older one and continue with logs that were written after the other. So
 * the note is durable before the snapshot gets its name, and is removed after the last older file;
 * a start that finds the note completes the work.
 *
 * The note lists the files that were there, and the epoch of the server. If there are other files
 * by now, or the server is in another epoch, then another server, which does not know notes, has
 * used the folder since and may have acknowledged its data: then only the note is removed.
 */
// The whole module: an old Node lacks crc32, and would refuse the import before the server can
// report that it is too old.
import * as zlib from 'node:zlib';
import type { Disk } from '../disk.ts';
import type { Logger } from '../logger.ts';
import type { SnappyCodec } from '../world.ts';
import { copyFileRange, replaceFile, withFile } from './disk-helpers.ts';
import { readEpoch } from './epoch-files.ts';
import { logPrefix, numberedFiles, snapshotPrefix, unfinishedPrefix } from './file-names.ts';
import { type UnnamedSnapshot, verifySnapshot } from './snapshot-files.ts';
import { remedyFor } from './remedy.ts';
import { StorageRefused } from './storage-refused.ts';
import { removeLogs, removeSnapshots } from './truncation.ts';

/** ZooKeeper ignores it, because it looks only at names that begin with `log.` or `snapshot.`. */
export const installNoteName = 'installing';

export interface DataFolders {
  readonly snapshots: string;
  readonly logs: string;
}

/** The folders, as far as a note needs them. */
export interface NotedFolders extends DataFolders {
  /** Whether this server can fetch its data from its leader; see remedy.ts. */
  readonly canRefetch: boolean;
}

interface InstallNote {
  /** The name that the leader's snapshot gets. */
  readonly snapshot: string;
  /** undefined in a folder without epochs. */
  readonly currentEpoch: number | undefined;
  /** The logs and snapshots that were there before. */
  readonly older: readonly string[];
}

async function historyFiles(disk: Disk, { snapshots, logs }: DataFolders): Promise<string[]> {
  const inSnapshots = numberedFiles(await disk.list(snapshots), snapshotPrefix);
  const inLogs = numberedFiles(await disk.list(logs), logPrefix);
  return [...inSnapshots, ...inLogs].map(({ name }) => name);
}

/** Durable when it resolves. */
export async function writeInstallNote(disk: Disk, folders: NotedFolders, unnamed: UnnamedSnapshot): Promise<void> {
  // With the note and without that file, a start assumes that the snapshot has got its name.
  await disk.syncFolder(folders.snapshots);
  const note: InstallNote = {
    snapshot: unnamed.name,
    currentEpoch: await readEpoch(disk, folders.snapshots, 'currentEpoch', folders.canRefetch),
    older: await historyFiles(disk, folders),
  };
  const text = JSON.stringify(note);
  const bytes = Buffer.from(`${zlib.crc32(text).toString(16)} ${text}\n`, 'utf8');
  await replaceFile(disk, folders.snapshots, installNoteName, `${unfinishedPrefix}${installNoteName}`, bytes);
}

/** Removes everything that the snapshot replaces, then the note; durable when it resolves. */
export async function removeOlderHistory(disk: Disk, folders: DataFolders, snapshot: string): Promise<void> {
  await removeSnapshots(disk, folders.snapshots, ({ name }) => name !== snapshot);
  await removeLogs(disk, folders.logs);
  await removeInstallNote(disk, folders);
}

async function removeInstallNote(disk: Disk, folders: DataFolders): Promise<void> {
  await disk.remove(`${folders.snapshots}/${installNoteName}`);
  await disk.syncFolder(folders.snapshots);
}

/**
 * At a start: completes what the last process left undone. Rejects with `StorageRefused` where that
 * is not possible; then nothing has changed.
 */
export async function finishInstall(disk: Disk, folders: NotedFolders, snappy: SnappyCodec | undefined, logger: Logger): Promise<void> {
  const path = `${folders.snapshots}/${installNoteName}`;
  if (!(await disk.exists(path))) return;
  const { snapshot, currentEpoch, older } = await readNote(disk, folders);
  // It does not have its name yet.
  if (await disk.exists(`${folders.snapshots}/${unfinishedPrefix}${snapshot}`)) {
    await removeInstallNote(disk, folders);
    return;
  }
  const known = new Set([snapshot, ...older]);
  const hasOthers = (await historyFiles(disk, folders)).some((name) => !known.has(name));
  // If the file is missing, a later step refuses the folder.
  const epochNow = await readEpoch(disk, folders.snapshots, 'currentEpoch', folders.canRefetch);
  if (hasOthers || (epochNow !== undefined && epochNow !== currentEpoch)) {
    logger.warn(
      `${path} says that ${snapshot} was about to replace all other data, but another server has worked in this folder since; nothing is changed`,
      { event: 'snapshot.install-dropped', path },
    );
    await removeInstallNote(disk, folders);
    return;
  }
  const snapshotPath = `${folders.snapshots}/${snapshot}`;
  if (!(await verifySnapshot(disk, snapshotPath, snappy))) {
    throw new StorageRefused(
      `${snapshotPath}, a snapshot of the leader that was replacing all other data here, is damaged or missing, and the other data may be incomplete; ${restoreOrRefetch(folders)}`,
    );
  }
  await rewriteUnderName(disk, folders.snapshots, snapshot);
  await removeOlderHistory(disk, folders, snapshot);
  logger.warn(`${snapshotPath} replaced the data of this server; its last process ended before the older files were removed`, {
    event: 'snapshot.install-finished',
    path: snapshotPath,
  });
}

async function readNote(disk: Disk, folders: NotedFolders): Promise<InstallNote> {
  const path = `${folders.snapshots}/${installNoteName}`;
  const text = await withFile(disk, path, async (file) => (await file.read(0, await file.size())).toString('utf8'));
  const [, sum, json] = /^([0-9a-f]{1,8}) (\{.*\})\n$/.exec(text) ?? [];
  if (sum === undefined || json === undefined || Number.parseInt(sum, 16) !== zlib.crc32(json)) {
    throw new StorageRefused(
      `${path} is damaged: a snapshot of the leader was replacing all other data here, and the note does not identify that snapshot; ${restoreOrRefetch(folders)}`,
    );
  }
  return JSON.parse(json) as InstallNote;
}

function restoreOrRefetch(folders: NotedFolders): string {
  const { canRefetch, snapshots, logs } = folders;
  return remedyFor(canRefetch, folders, `restore ${snapshots}${logs === snapshots ? '' : ` and ${logs}`} from a backup`);
}

/**
 * The sync that should have kept the name may have failed, and a power loss may undo what no sync
 * has kept: so a copy takes the name.
 */
async function rewriteUnderName(disk: Disk, folder: string, snapshot: string): Promise<void> {
  const temporary = `${folder}/${unfinishedPrefix}copy.${snapshot}`;
  await withFile(disk, `${folder}/${snapshot}`, async (file) => {
    const copy = await disk.open(temporary, 'replace');
    try {
      await copyFileRange(file, copy, 0, await file.size());
    } finally {
      await copy.close();
    }
  });
  await disk.rename(temporary, `${folder}/${snapshot}`);
  await disk.syncFolder(folder);
}
