/**
 * How zxids follow each other in a log: they grow by one, and an epoch begins at 1.
 *
 * So a hole within an epoch shows, and one at the end of an epoch does not: 0x100000014 and
 * 0x200000001 are neighbours if the first epoch ended with the former, and are not if the rest of
 * it was in a snapshot, or in a log that is gone. The names of snapshots show it, because a
 * snapshot between the two was made of txns that the log does not have. So does the mark of a log,
 * which has the zxid of the last txn before the log (synced-mark.ts).
 */
import { isPossibleSuccessor } from '@tskeeper/core/internal';
import type { Zxid } from '@tskeeper/protocol';

/** Whether no txn can be missing between two, given zxids that are known to have existed. */
export function isContiguous(last: Zxid, next: Zxid, known: readonly Zxid[]): boolean {
  return isPossibleSuccessor(last, next) && !known.some((zxid) => zxid > last && zxid < next);
}
