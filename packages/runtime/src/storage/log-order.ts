/**
 * How zxids follow each other in a log: they grow by one, and an epoch begins at 1.
 *
 * So a hole within an epoch shows, and one at the end of an epoch does not: 0x100000014 and 0x200000001 are neighbours if the first epoch
 * ended with the one, and are not if a snapshot has stood in for the rest of it, or a log with the rest is gone. The names of snapshots tell,
 * since one between the two was made of txns that the log does not have, and so does the mark of a log, which has the zxid behind which that
 * was begun (synced-mark.ts).
 */
import { mayFollow } from '@tskeeper/core/internal';
import type { Zxid } from '@tskeeper/protocol';

/** Whether nothing can be missing between two txns, given zxids that are known to have been there. */
export function isNext(last: Zxid, next: Zxid, known: readonly Zxid[]): boolean {
  return mayFollow(last, next) && !known.some((zxid) => zxid > last && zxid < next);
}
