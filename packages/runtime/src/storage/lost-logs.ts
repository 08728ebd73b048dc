/**
 * Logs that were there and are gone, though later ones are there.
 *
 * Within an epoch the zxids show such a hole. Between two they do not: the next epoch begins at 1 wherever the last one ended. What shows it
 * is the mark that the log has left behind. We take a log away with its mark, and the newest first, so only somebody else leaves one with
 * later logs behind it. ZooKeeper does when it truncates; but what it has written since has no marks.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import { logPrefix, markName, markPrefix, numberedFiles } from './file-names.ts';
import { readMark } from './synced-mark.ts';

export interface LostLog {
  /** The zxid in its name. */
  readonly zxid: Zxid;
  /** The last txn that it is known to have held. */
  readonly lastZxid: Zxid;
}

/** Oldest first. `names` are those of all files in the folder. */
export async function lostLogs(disk: Disk, folder: string, names: readonly string[]): Promise<LostLog[]> {
  const present = new Set(names);
  const logs = numberedFiles(names, logPrefix);
  const there = new Set(logs.map(({ zxid }) => zxid));
  const lost: LostLog[] = [];
  for (const { name, zxid } of numberedFiles(names, markPrefix)) {
    const next = logs.find((log) => log.zxid > zxid);
    if (there.has(zxid) || next === undefined || !present.has(markName(next.zxid))) continue;
    const mark = await readMark(disk, `${folder}/${name}`);
    // A mark of sequence 1 is made before its log has a name.
    if (mark !== undefined && mark.sequence > 1) lost.push({ zxid, lastZxid: mark.lastZxid });
  }
  return lost;
}
