/**
 * Finds missing logs by the marks they have left.
 *
 * A later log shows that an earlier one is missing (recovery.ts); when the newest is missing,
 * nothing else in the folder shows it. A mark says up to which txn its log was durable. Txns beyond
 * the last one that was found have been acknowledged and are missing.
 *
 * An interrupted purge may leave a mark without its log as well: then a snapshot contains those
 * txns. A truncation leaves none, because it removes the mark first (truncation.ts).
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Disk } from '../disk.ts';
import { logName, markPrefix, numberedFiles, type NumberedFile } from './file-names.ts';
import { readMark, type SyncedMark } from './synced-mark.ts';

export interface OrphanMark {
  readonly name: string;
  readonly logZxid: Zxid;
  /** undefined when it cannot be read: then it is ignored. */
  readonly mark: SyncedMark | undefined;
}

/** `names`: the files in `folder`, and `logs` those of them that are logs. Oldest first. */
export async function findOrphanMarks(
  disk: Disk,
  folder: string,
  names: readonly string[],
  logs: readonly NumberedFile[],
): Promise<OrphanMark[]> {
  const present = new Set(logs.map(({ zxid }) => zxid));
  const orphans = numberedFiles(names, markPrefix).filter(({ zxid }) => !present.has(zxid));
  const found: OrphanMark[] = [];
  for (const { name, zxid } of orphans) found.push({ name, logZxid: zxid, mark: await readMark(disk, `${folder}/${name}`) });
  return found;
}

/** For sentences about them. */
export interface LostLogs {
  /** The last txn that was in one of them. */
  readonly lastZxid: Zxid;
  /** Their names: "log.4 and log.9". */
  readonly logs: string;
  /** The names of their marks. */
  readonly marks: string;
  readonly are: 'is' | 'are';
  readonly say: 'says' | 'say';
  readonly them: 'it' | 'them';
}

/**
 * The logs that had txns after `lastZxid`, the last one that was found; undefined when there are
 * none. A mark that has never moved is ignored: it is made before its log has a name, and a crash
 * between the two leaves it.
 */
export function lostLogs(marks: readonly OrphanMark[], lastZxid: Zxid): LostLogs | undefined {
  const lost = marks.filter(({ mark }) => mark !== undefined && mark.sequence > 1 && mark.lastZxid > lastZxid);
  if (lost.length === 0) return undefined;
  return {
    lastZxid: Math.max(...lost.map(({ mark }) => mark!.lastZxid)),
    logs: joined(lost.map(({ logZxid }) => logName(logZxid))),
    marks: joined(lost.map(({ name }) => name)),
    ...(lost.length === 1 ? { are: 'is', say: 'says', them: 'it' } : { are: 'are', say: 'say', them: 'them' }),
  };
}

/** "a", "a and b", "a, b and c" */
function joined(names: readonly string[]): string {
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
