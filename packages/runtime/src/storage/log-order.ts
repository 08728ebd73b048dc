/**
 * How zxids follow each other in a log: they grow by one, and an epoch begins at 1.
 *
 * So a hole within an epoch shows, and one at the end of an epoch does not: 0x100000014 and 0x200000001 are neighbours if the first epoch
 * ended with the one, and are not if a snapshot has stood in for the rest of it. Only the names of snapshots tell: one between the two was
 * made of txns that the log does not have.
 */
import { counterOf, epochOf, type Zxid } from '@tskeeper/protocol';

/** Whether `next` may stand right behind `last`. */
export function mayFollow(last: Zxid, next: Zxid): boolean {
  return next === last + 1 || (epochOf(next) > epochOf(last) && counterOf(next) === 1);
}

/** Whether nothing can be missing between two txns, given the zxids of all snapshots that are known. */
export function isNext(last: Zxid, next: Zxid, snapshots: readonly Zxid[]): boolean {
  return mayFollow(last, next) && !snapshots.some((zxid) => zxid > last && zxid < next);
}
