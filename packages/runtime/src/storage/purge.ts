/**
 * Deletes files that no start needs: snapshots older than the newest few, and logs whose txns are
 * all contained in each of those few.
 *
 * Only a snapshot that has just been read from end to end counts as one of the few (ZOOKEEPER-3231:
 * purging by names can leave a folder whose snapshots are all broken and whose logs are gone).
 * Names decide the rest, as in ZooKeeper: a log may be deleted only if a later one begins at or
 * before the oldest snapshot that is kept.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import type { SnappyCodec } from '../world.ts';
import { logPrefix, markName, numberedFiles, snapshotPrefix } from './file-names.ts';
import { verifySnapshot } from './snapshot-files.ts';

export interface PurgeFolders {
  readonly snapshots: string;
  readonly logs: string;
}

export interface PurgeResult {
  /** Paths, in the order they were deleted. */
  readonly removed: readonly string[];
  /** Damaged snapshots among those that were checked. They are kept, and do not count. */
  readonly damaged: readonly string[];
  /**
   * The oldest snapshot that was kept; undefined when there were too few good ones, and nothing was
   * deleted.
   */
  readonly oldestKept: Zxid | undefined;
}

/**
 * Logs from `keepLogsFrom` on, the zxid in a name, are kept in any case, because they are being
 * read.
 */
export async function purge(
  disk: Disk,
  folders: PurgeFolders,
  retainCount: number,
  snappy: SnappyCodec | undefined,
  keepLogsFrom: Zxid = Infinity,
): Promise<PurgeResult> {
  const snapshots = numberedFiles(await disk.list(folders.snapshots), snapshotPrefix).toReversed();
  const damaged: string[] = [];
  const removed: string[] = [];
  let good = 0;
  let oldestKept: Zxid | undefined;
  for (const { name, zxid } of snapshots) {
    const path = `${folders.snapshots}/${name}`;
    if (!(await verifySnapshot(disk, path, snappy))) {
      damaged.push(path);
      continue;
    }
    good++;
    if (good < retainCount) continue;
    oldestKept = zxid;
    break;
  }
  if (oldestKept === undefined) return { removed, damaged, oldestKept };

  const remove = async (path: string) => {
    await disk.remove(path);
    removed.push(path);
  };
  // Oldest first, snapshots before logs: a crash at any point leaves a folder that starts.
  for (const { name, zxid } of snapshots.toReversed()) if (zxid < oldestKept) await remove(`${folders.snapshots}/${name}`);
  const logNames = await disk.list(folders.logs);
  const logs = numberedFiles(logNames, logPrefix);
  const needed = logs.findLastIndex(({ zxid }) => zxid <= oldestKept);
  for (const { name, zxid } of logs.slice(0, Math.max(0, needed)).filter((log) => log.zxid < keepLogsFrom)) {
    await remove(`${folders.logs}/${name}`);
    if (logNames.includes(markName(zxid))) await remove(`${folders.logs}/${markName(zxid)}`);
  }
  return { removed, damaged, oldestKept };
}
