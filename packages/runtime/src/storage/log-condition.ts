/**
 * The meaning of the end of a log: a clean end, a tail that a crash tore off, or damage to
 * acknowledged txns.
 *
 * The reader of logs (log-reader.ts) reports where it stopped and why, the mark (synced-mark.ts)
 * how far the log is known to be durable. This module combines the two, for recovery, which acts on
 * the result, and for tools that only report it.
 */
import { formatZxid, type Zxid } from '@tskeeper/protocol';
import type { LogEnd, OutOfOrder } from './log-reader.ts';
import type { SyncedMark } from './synced-mark.ts';

export type LogCondition =
  /** Nothing is wrong with it. */
  | 'whole'
  /** Damage after the mark: never acknowledged, and cut off at the next start. */
  | 'torn'
  /** No mark, and the last entry is incomplete: by ZooKeeper's rules it was never written. */
  | 'unwritten'
  /** No mark, and the newest log is empty: its server stopped while creating it. */
  | 'nothing'
  /** Txns that the mark says were durable are missing: a server refuses to start. */
  | 'lost'
  /** No mark, and bytes that no crash explains: a server refuses to start. */
  | 'damaged';

/**
 * `isLast`: it is the newest of its folder. `allZero`: the file contains only zeros; used only for
 * the end `zero header`.
 */
export function logConditionOf(end: LogEnd, mark: SyncedMark | undefined, isLast: boolean, allZero: boolean): LogCondition {
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
 * The first entry before the mark that no server wrote in this place: a server writes zxids in
 * order, so the disk has written a sector to the wrong place. The checksum of such an entry is
 * right.
 */
export function misplacedEntry({ outOfOrder }: LogEnd, mark: SyncedMark): OutOfOrder | undefined {
  return outOfOrder !== undefined && outOfOrder.offset < mark.offset ? outOfOrder : undefined;
}

/** The place and the kind of damage; for the conditions 'lost' and 'damaged'. */
export interface LogDamage {
  readonly offset: number;
  /** The last zxid before the damage. */
  readonly lastZxid: Zxid | undefined;
  readonly reason: string;
}

export function damageOf(end: LogEnd, mark: SyncedMark | undefined): LogDamage {
  const misplaced = mark === undefined ? undefined : misplacedEntry(end, mark);
  if (misplaced === undefined) return { offset: end.offset, lastZxid: end.lastZxid, reason: describeLogEnd(end) };
  const { offset, after, zxid } = misplaced;
  return { offset, lastZxid: after, reason: `txn ${formatZxid(zxid)} is in the place of a later one` };
}

/**
 * Why a mark cannot belong to this log, as the rest of a sentence about the log; undefined when it
 * does. A mark belongs to its log when the log begins with the entry the mark knows, and either
 * contains the entry the mark ends with (`markMet`) or is damaged before it. A log that simply ends
 * before the mark, after a whole entry, was cut by ZooKeeper (TRUNC): that is not damage.
 */
export function markMismatch(mark: SyncedMark, end: LogEnd, markMet: boolean): string | undefined {
  // A log that begins without a whole entry counts as damaged. It may also be another log, but
  // nothing proves that.
  if (end.count > 0 && end.firstChecksum !== mark.firstChecksum) {
    return 'is not the log that its mark was written for';
  }
  // ZooKeeper may have cut the log and continued it, but then in order.
  if (misplacedEntry(end, mark) !== undefined) return undefined;
  if (end.offset >= mark.offset) return markMet ? undefined : 'does not match its mark';
  if (end.reason === 'end of file' && end.count > 0) {
    return `ends after ${formatZxid(end.lastZxid ?? 0)}, though it once reached ${formatZxid(mark.lastZxid)}: it has been truncated by another server`;
  }
  return undefined;
}

/**
 * Of a mark that does not fit: whether its log ends before it, after a whole entry. Then a server
 * that does not know marks has truncated the log, and has removed the later ones.
 */
export function isTruncated(mark: SyncedMark, end: LogEnd): boolean {
  return end.offset < mark.offset && end.firstChecksum === mark.firstChecksum;
}

/** `after 0x1a`, or where the damage is when no txn precedes it. */
export function afterZxid(end: { readonly lastZxid: Zxid | undefined }): string {
  return end.lastZxid === undefined ? 'before its first txn' : `after ${formatZxid(end.lastZxid)}`;
}

/** Why the reading of a log ended, in words. */
export function describeLogEnd(end: LogEnd): string {
  switch (end.reason) {
    case 'checksum':
      return 'a checksum that does not match its txn';
    case 'bad length':
      return 'an impossible length';
    case 'no end mark':
      return 'an entry without its end mark';
    case 'cut entry':
      return 'the file ends within an entry';
    case 'end of file':
      return `the file ends, at ${end.size} bytes`;
    case 'padding':
      return 'zeros where an entry should begin';
    case 'empty':
      return 'an empty file';
    case 'cut header':
      return 'the file ends within its header';
    case 'zero header':
      return 'zeros where the header should be';
    case 'bad magic':
      return 'a header that is not that of a transaction log';
    case 'limit':
      return 'the requested part ends';
    default:
      return end.reason satisfies never;
  }
}
