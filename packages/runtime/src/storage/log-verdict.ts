/**
 * What the end of a log means: a clean end, a tail that a crash tore off, or damage to what was acknowledged.
 *
 * The reader of logs (log-reader.ts) says where it stopped and why, the mark (synced-mark.ts) how far the log is known to have been safe.
 * Here both are put together, for recovery, which acts upon it, and for tools that only say so.
 */
import { formatZxid, type Zxid } from '@tskeeper/protocol';
import type { LogEnd, OutOfOrder } from './log-reader.ts';
import type { SyncedMark } from './synced-mark.ts';

export type LogVerdict =
  /** Nothing is wrong with it. */
  | 'whole'
  /** Behind the mark something broke off: never acknowledged, and cut at the next start. */
  | 'torn'
  /** No mark, and the last entry is not all there: by ZooKeeper's rules it was never written. */
  | 'unwritten'
  /** No mark, and the newest log holds nothing: it was being made when its server stopped. */
  | 'nothing'
  /** What the mark says was safe is not there any more: a server refuses to start. */
  | 'lost'
  /** No mark, and bytes that no crash explains: a server refuses to start. */
  | 'damaged';

/** `isLast`: it is the newest of its folder. `allZero`: the file holds nothing but zeros; only matters for the end `zero header`. */
export function judgeLog(end: LogEnd, mark: SyncedMark | undefined, isLast: boolean, allZero: boolean): LogVerdict {
  if (mark !== undefined) {
    if (end.offset < mark.offset || misplacedEntry(end, mark) !== undefined) return 'lost';
    return end.reason === 'end of file' || end.reason === 'padding' || end.reason === 'limit' ? 'whole' : 'torn';
  }
  switch (end.reason) {
    case 'end of file':
    case 'padding':
    case 'limit':
      return 'whole';
    case 'cut entry':
    case 'no end mark':
      return 'unwritten';
    case 'empty':
    case 'cut header':
      return isLast ? 'nothing' : 'damaged';
    case 'zero header':
      return isLast && allZero ? 'nothing' : 'damaged';
    case 'checksum':
    case 'bad length':
    case 'bad magic':
      return 'damaged';
    default:
      return end.reason satisfies never;
  }
}

/**
 * The first entry before the mark that no server wrote where it stands: a server writes zxids in order, so the disk has written a sector to the
 * wrong place. Such an entry has a checksum that is right.
 */
export function misplacedEntry({ outOfOrder }: LogEnd, mark: SyncedMark): OutOfOrder | undefined {
  return outOfOrder !== undefined && outOfOrder.offset < mark.offset ? outOfOrder : undefined;
}

/** Where a log is damaged, and how; for the verdicts 'lost' and 'damaged'. */
export interface LogDamage {
  readonly offset: number;
  /** The last zxid before the damage. */
  readonly lastZxid: Zxid | undefined;
  readonly reason: string;
}

export function damageOf(end: LogEnd, mark: SyncedMark | undefined): LogDamage {
  const misplaced = mark === undefined ? undefined : misplacedEntry(end, mark);
  if (misplaced === undefined) return { offset: end.offset, lastZxid: end.lastZxid, reason: explain(end) };
  const { offset, after, zxid } = misplaced;
  return { offset, lastZxid: after, reason: `the txn ${formatZxid(zxid)} stands where a later one was written` };
}

/**
 * Why a mark cannot be that of this log, as the rest of a sentence about the log; undefined when it is. A mark belongs to its log when the
 * log begins with the entry the mark knows, and either holds the entry the mark ends with (`markMet`) or breaks off before. A log that
 * simply ends before, behind a whole entry, was cut by ZooKeeper (TRUNC): that is no damage.
 */
export function markMisfit(mark: SyncedMark, end: LogEnd, markMet: boolean): string | undefined {
  // What begins with no entry that is whole is damaged. It may be another log all the same; but nobody can say that this one is not.
  if (end.count > 0 && end.firstChecksum !== mark.firstChecksum) {
    return 'is not the log that the mark beside it was made for';
  }
  // ZooKeeper may have cut the log and gone on, but then in order.
  if (misplacedEntry(end, mark) !== undefined) return undefined;
  if (end.offset >= mark.offset) return markMet ? undefined : 'does not hold what the mark beside it says';
  if (end.reason === 'end of file' && end.count > 0) {
    return `ends after ${formatZxid(end.lastZxid ?? 0)}, though it once reached to ${formatZxid(mark.lastZxid)}: it has been truncated by another server`;
  }
  return undefined;
}

/**
 * Of a mark that does not fit: whether its log ends before it, behind a whole entry. A server that knows no marks has truncated it then, and
 * has removed the later logs.
 */
export function isTruncated(mark: SyncedMark, end: LogEnd): boolean {
  return end.offset < mark.offset && end.firstChecksum === mark.firstChecksum;
}

/** `after 0x1a`, or where the damage is when there is nothing before it. */
export function afterZxid(end: { readonly lastZxid: Zxid | undefined }): string {
  return end.lastZxid === undefined ? 'before its first txn' : `after ${formatZxid(end.lastZxid)}`;
}

/** Why the reading of a log ended, in words. */
export function explain(end: LogEnd): string {
  switch (end.reason) {
    case 'checksum':
      return 'a checksum that is not that of its txn';
    case 'bad length':
      return 'a length that no txn has';
    case 'no end mark':
      return 'an entry that does not end as entries do';
    case 'cut entry':
      return 'the file ends within an entry';
    case 'end of file':
      return `the file ends, at ${end.size} bytes`;
    case 'padding':
      return 'zeros where an entry should begin';
    case 'empty':
      return 'no bytes at all';
    case 'cut header':
      return 'the file ends within its header';
    case 'zero header':
      return 'zeros where the header should be';
    case 'bad magic':
      return 'a beginning that is not that of a transaction log';
    case 'limit':
      return 'the part that was asked for ends';
    default:
      return end.reason satisfies never;
  }
}
