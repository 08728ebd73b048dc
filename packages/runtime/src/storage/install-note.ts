/**
 * The note that lies in a folder while the snapshot of a leader takes the place of all that was there (SNAP).
 *
 * From the moment that snapshot has its name until the last older file is gone there are two histories in the folder. A start takes the
 * newer, as it should. But should the snapshot go bad, it would fall back to the older one without a word, and go on with logs that were
 * written behind the other. So the note is durable before the snapshot has its name, and goes when nothing older is left; a start that finds
 * it ends the work.
 *
 * It says which files were there, and in which epoch the server stood. If there are others by now, or the server stands in another epoch,
 * then another server has worked in the folder since, one that knows nothing of notes, and may have acknowledged what is there: then nothing
 * is removed but the note.
 */
// As a whole: an old Node lacks crc32, and would refuse the import before the server can say that it is too old.
import * as zlib from 'node:zlib';
import type { Disk } from '../disk.ts';
import type { Logger } from '../logger.ts';
import type { SnappyCodec } from '../world.ts';
import { copyBytes, replaceFile, withFile } from './disk-helpers.ts';
import { readEpoch } from './epoch-files.ts';
import { logPrefix, numberedFiles, snapshotPrefix, unfinishedPrefix } from './file-names.ts';
import { type UnnamedSnapshot, verifySnapshot } from './snapshot-files.ts';
import { remedyFor } from './remedy.ts';
import { StorageRefused } from './storage-refused.ts';
import { removeLogs, removeSnapshots } from './truncation.ts';

/** Passed over by ZooKeeper, which looks at names that begin with `log.` or `snapshot.` only. */
export const installNoteName = 'installing';

export interface DataFolders {
  readonly snapshots: string;
  readonly logs: string;
}

/** As far as a note is concerned. */
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
  // With the note and without that file, a start takes it that the snapshot has got its name.
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

/** Takes away all that the snapshot takes the place of, then the note; durable when it resolves. */
export async function removeOlderHistory(disk: Disk, folders: DataFolders, snapshot: string): Promise<void> {
  await removeSnapshots(disk, folders.snapshots, ({ name }) => name !== snapshot);
  await removeLogs(disk, folders.logs);
  await removeInstallNote(disk, folders);
}

async function removeInstallNote(disk: Disk, folders: DataFolders): Promise<void> {
  await disk.remove(`${folders.snapshots}/${installNoteName}`);
  await disk.syncFolder(folders.snapshots);
}

/** At a start: ends what the last process did not. Rejects with `StorageRefused` where that is not possible; nothing has changed then. */
export async function finishInstall(disk: Disk, folders: NotedFolders, snappy: SnappyCodec | undefined, logger: Logger): Promise<void> {
  const path = `${folders.snapshots}/${installNoteName}`;
  if (!(await disk.exists(path))) return;
  const { snapshot, currentEpoch, older } = await readNote(disk, folders);
  // It has not got its name yet.
  if (await disk.exists(`${folders.snapshots}/${unfinishedPrefix}${snapshot}`)) {
    await removeInstallNote(disk, folders);
    return;
  }
  const known = new Set([snapshot, ...older]);
  const hasOthers = (await historyFiles(disk, folders)).some((name) => !known.has(name));
  // Without one, the folder is refused further on.
  const epochNow = await readEpoch(disk, folders.snapshots, 'currentEpoch', folders.canRefetch);
  if (hasOthers || (epochNow !== undefined && epochNow !== currentEpoch)) {
    logger.warn(
      `${path} says that ${snapshot} was about to replace all other data, but another server has worked in this folder since; everything stays as it is`,
      { event: 'snapshot.install-dropped', path },
    );
    await removeInstallNote(disk, folders);
    return;
  }
  const snapshotPath = `${folders.snapshots}/${snapshot}`;
  if (!(await verifySnapshot(disk, snapshotPath, snappy))) {
    throw new StorageRefused(
      `${snapshotPath}, a snapshot of the leader that was replacing all other data here, is damaged or gone, and the other data need not be whole; ${restoreOrRefetch(folders)}`,
    );
  }
  await nameAnew(disk, folders.snapshots, snapshot);
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
      `${path} is damaged: a snapshot of the leader was replacing all other data here, and the note names no snapshot that can be identified; ${restoreOrRefetch(folders)}`,
    );
  }
  return JSON.parse(json) as InstallNote;
}

function restoreOrRefetch(folders: NotedFolders): string {
  const { canRefetch, snapshots, logs } = folders;
  return remedyFor(canRefetch, folders, `restore ${snapshots}${logs === snapshots ? '' : ` and ${logs}`} from a backup`);
}

/** The sync that was to keep the name may have failed, and what no sync has kept may go with the power: so a copy takes the name. */
async function nameAnew(disk: Disk, folder: string, snapshot: string): Promise<void> {
  const temporary = `${folder}/${unfinishedPrefix}copy.${snapshot}`;
  await withFile(disk, `${folder}/${snapshot}`, async (file) => {
    const copy = await disk.open(temporary, 'replace');
    try {
      await copyBytes(file, copy, 0, await file.size());
    } finally {
      await copy.close();
    }
  });
  await disk.rename(temporary, `${folder}/${snapshot}`);
  await disk.syncFolder(folder);
}
