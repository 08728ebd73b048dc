/**
 * Chooses how a learner is synchronised: DIFF, TRUNC or SNAP, from two histories
 * (LearnerHandler.syncFollower and queueCommittedProposals).
 *
 * The learner has sent its last zxid. The leader's own history consists, from the newest to the
 * oldest, of the committed txns in memory, those in its log on disk, and its tree, which can always
 * be sent as a whole. Memory is checked first, and gives a result at once. Reading the log takes
 * time and happens elsewhere: the plan is then `readLog`, and the txns found are passed to a
 * `LogWalk`, which decides while they pass.
 *
 * A snapshot is always correct, only slow. A DIFF with a hole, or a TRUNC of committed txns, loses
 * data for good. So wherever the two histories leave a doubt, the result is SNAP; comments mark
 * where that is stricter than ZooKeeper.
 */
import { counterOf, epochOf, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { type CommittedLog, isPossibleSuccessor } from './committed-log.ts';

/** The packet with which the synchronisation begins, unless it is SNAP. */
export type SyncOpening =
  /**
   * The learner's txns are part of the leader's history. `zxid` informs it of the leader's last
   * committed txn.
   */
  | { readonly kind: 'diff'; readonly zxid: Zxid }
  /** The learner truncates its log after `zxid`, a txn of both histories. */
  | { readonly kind: 'trunc'; readonly zxid: Zxid };

export type SnapshotReason =
  | 'forceSnapshotSync is set'
  | 'the learner has no data'
  | 'the learner has no txn from which the committed txns in memory go on, and the log may not be read'
  | 'the learner stands at the beginning of an epoch that the leader has no txn of'
  | 'the learner has no txn after which to truncate its log'
  | 'the log to be read is too large beside a snapshot'
  | 'the log does not reach back to the last txn of the learner'
  | 'the last txn of the learner is not in the history, and nothing says where it left it'
  | 'the log may lack txns'
  | 'the log ends before the committed txns in memory begin';

export interface SnapshotPlan {
  readonly kind: 'snap';
  /** For the operator. */
  readonly reason: SnapshotReason;
}

/** The packet to begin with; then every committed txn above `from`, each as PROPOSAL and COMMIT. */
export type OpenedPlan = SyncOpening & { readonly from: Zxid };

export type SyncPlan =
  | OpenedPlan
  | SnapshotPlan
  /**
   * The log must be read from `from` on: see `LogWalk`. At most `bytesMax` bytes of it, Infinity
   * for no limit.
   */
  | { readonly kind: 'readLog'; readonly from: Zxid; readonly bytesMax: number };

export interface SyncFacts {
  /**
   * The last txn of the learner, from its ACKEPOCH; or the zxid of an epoch with counter 0, if it
   * had no txn of that epoch.
   */
  readonly learnerLast: Zxid;
  /** The last txn that the leader has applied, or the beginning of its epoch (counter 0). */
  readonly leaderLast: Zxid;
  /** zookeeper.forceSnapshotSync */
  readonly forceSnapshotSync: boolean;
  /**
   * How many bytes of log may be read for one learner, see `logBytesMax`; undefined if it may not
   * be read.
   */
  readonly logBytesMax: number | undefined;
}

/**
 * How many bytes of log are cheaper to send than the newest snapshot. `factor` is
 * zookeeper.snapshotSizeFactor, 0.33 by default: below 0 the log is never read, and 0 means no
 * limit, as does a missing snapshot (ZKDatabase.calculateTxnLogSizeLimit). `snapshotBytes` is the
 * size of the newest snapshot's file. Returns undefined, a number of bytes, or Infinity.
 */
export function logBytesMax(factor: number, snapshotBytes: number): number | undefined {
  if (factor < 0) return undefined;
  const limit = Math.floor(snapshotBytes * factor);
  return limit === 0 ? Infinity : limit;
}

/** Chooses by the txns in memory. */
export function planSync(facts: SyncFacts, committed: CommittedLog): SyncPlan {
  const { learnerLast, leaderLast } = facts;
  const min = committed.min(leaderLast);
  const max = committed.max(leaderLast);
  if (facts.forceSnapshotSync) return snapshotPlan('forceSnapshotSync is set');
  // Even if the leader's database is empty (zxid -1): the learner would not trust a log alone.
  if (learnerLast < 0) return snapshotPlan('the learner has no data');
  if (learnerLast === leaderLast) return { kind: 'diff', zxid: learnerLast, from: learnerLast };
  if (learnerLast > max) {
    // Zxids with counter 0 are not txns: a learner with such a last zxid may have nothing to
    // truncate.
    if (isEpochStart(learnerLast)) return snapshotPlan('the learner stands at the beginning of an epoch that the leader has no txn of');
    // Nor can a log be truncated after one. ZooKeeper sends such a TRUNC, and its learner then
    // keeps the first txn above it. (A learner that is sent a snapshot must not keep txns above it
    // in its log either: the next start would apply them.)
    if (isEpochStart(max)) return snapshotPlan('the learner has no txn after which to truncate its log');
    return { kind: 'trunc', zxid: max, from: max };
  }
  if (learnerLast >= min) return planFromMemory(learnerLast, max, committed);
  if (facts.logBytesMax === undefined) {
    return snapshotPlan('the learner has no txn from which the committed txns in memory go on, and the log may not be read');
  }
  return { kind: 'readLog', from: learnerLast, bytesMax: facts.logBytesMax };
}

/** The learner's last zxid is within the committed txns in memory, which have no hole. */
function planFromMemory(learnerLast: Zxid, max: Zxid, committed: CommittedLog): SyncPlan {
  const next = committed.has(learnerLast) ? learnerLast : committed.firstAbove(learnerLast);
  const opening = chooseOpening(learnerLast, committed.lastUpTo(learnerLast), next, max);
  if (opening.kind === 'snap') return opening;
  return { ...opening, from: opening.kind === 'trunc' ? opening.zxid : learnerLast };
}

/**
 * The packet to begin with. `next` is the first txn of the history that is not below the learner's
 * last one; undefined if the history ends before. `previous` is the last txn below it. `max` is the
 * leader's last committed txn.
 */
function chooseOpening(learnerLast: Zxid, previous: Zxid | undefined, next: Zxid | undefined, max: Zxid): SyncOpening | SnapshotPlan {
  // A learner at the beginning of an epoch has the whole history with which the epoch began, which
  // was committed.
  if (next === learnerLast || isEpochStart(learnerLast)) return { kind: 'diff', zxid: max };
  // The learner's last txn is not in the history. If its epoch continues there, the two diverged
  // after `previous`; otherwise the point is unknown.
  if (next === undefined || previous === undefined || epochOf(next) !== epochOf(learnerLast)) {
    return snapshotPlan('the last txn of the learner is not in the history, and nothing says where it left it');
  }
  return { kind: 'trunc', zxid: previous };
}

export type LogStep =
  /** The learner has it already. */
  | 'pass'
  /** Send it, as PROPOSAL and COMMIT. */
  | 'send'
  /**
   * The committed txns in memory continue from here: `result` is the plan. Do not send this txn.
   */
  | 'met'
  /** `result` is SNAP. Send none of the txns. */
  | 'refused';

/**
 * Walks the txns of the log on disk for one learner, and decides of each whether it is sent.
 *
 * They are passed in log order, beginning with a file whose first txn is not above the learner's
 * last one. Only when the walk has reached the txns in memory is it certain that none was missing
 * (ZOOKEEPER-2418). So no txn may be sent before; or the log is walked twice, once to decide and
 * once to send. While the log is read, memory drops old txns and gets new ones, so every step is
 * passed the current bounds of memory; the log must be read up to there.
 *
 * A log may also lack txns without showing it. The log of a server that was sent a snapshot has a
 * hole before the snapshot, and the txns before the hole may be a discarded history, the reason for
 * the snapshot (ZOOKEEPER-2846). Within an epoch a hole is visible, since zxids increase by one;
 * between epochs it is not. Such a step is trusted only from `completeFromZxid` on: the zxid of the
 * snapshot that this server started from or was sent since, whichever is later, after which it has
 * applied every txn of its log itself. ZooKeeper trusts all.
 */
export class LogWalk {
  readonly #learnerLast: Zxid;
  readonly #completeFromZxid: Zxid;
  /** The last txn below the learner's last one. */
  #previous: Zxid | undefined;
  #opening: SyncOpening | undefined;
  #refusal: SnapshotPlan | undefined;
  #reachedMemory = false;
  /**
   * The learner will have the history up to here: its own last txn at first, then the last one
   * sent.
   */
  #last: Zxid;

  constructor(learnerLast: Zxid, completeFromZxid: Zxid) {
    this.#learnerLast = this.#last = learnerLast;
    this.#completeFromZxid = completeFromZxid;
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    for (const zxid of [this.#learnerLast, this.#completeFromZxid, this.#previous ?? -1, this.#last, this.#opening?.zxid ?? -1])
      to.number(zxid);
    to.text(`${this.#opening?.kind} ${this.#refusal?.kind} ${this.#reachedMemory}`);
  }

  /** The plan, once the walk has reached memory or has been refused. */
  get result(): OpenedPlan | SnapshotPlan | undefined {
    if (this.#refusal !== undefined) return this.#refusal;
    return this.#reachedMemory ? { ...this.#opening!, from: this.#last } : undefined;
  }

  /**
   * Takes the next txn of the log. `min` and `max` are the current bounds of the committed txns in
   * memory.
   */
  next(zxid: Zxid, min: Zxid, max: Zxid): LogStep {
    if (this.#refusal !== undefined) return 'refused';
    if (this.#reachedMemory) return 'met';
    if (zxid > min) return this.#reachMemory(min);
    if (zxid < this.#learnerLast) {
      this.#previous = Math.max(zxid, this.#previous ?? zxid);
      return 'pass';
    }
    if (this.#opening === undefined) return this.#open(zxid, max);
    // ZooKeeper's logs may contain a zxid twice.
    if (zxid <= this.#last) return 'pass';
    if (!this.#hasNoGapBefore(zxid)) return this.#refuse('the log may lack txns');
    this.#last = zxid;
    return 'send';
  }

  /** The end of the log. */
  end(min: Zxid): 'met' | 'refused' {
    if (this.#refusal !== undefined) return 'refused';
    return this.#reachedMemory ? 'met' : this.#reachMemory(min);
  }

  #open(zxid: Zxid, max: Zxid): LogStep {
    const isLearnerLast = zxid === this.#learnerLast;
    if (!isLearnerLast && this.#previous === undefined) return this.#refuse('the log does not reach back to the last txn of the learner');
    const opening = chooseOpening(this.#learnerLast, this.#previous, zxid, max);
    if (opening.kind === 'snap') return this.#refuse(opening.reason);
    if (!isLearnerLast && !this.#hasNoGapBefore(zxid, opening)) return this.#refuse('the log may lack txns');
    this.#opening = opening;
    this.#last = zxid;
    return isLearnerLast ? 'pass' : 'send';
  }

  /** Whether no txn of the history is between the learner's future last txn and this one. */
  #hasNoGapBefore(zxid: Zxid, opening?: SyncOpening): boolean {
    // After a TRUNC the learner's own zxid is skipped: in the complete part of the log it was never
    // committed.
    if (opening?.kind === 'trunc') return opening.zxid >= this.#completeFromZxid;
    const isNext = zxid === this.#last + 1;
    return isNext || (isPossibleSuccessor(this.#last, zxid) && this.#last >= this.#completeFromZxid);
  }

  #reachMemory(min: Zxid): 'met' | 'refused' {
    if (this.#opening === undefined || this.#last < min) return this.#refuse('the log ends before the committed txns in memory begin');
    this.#reachedMemory = true;
    return 'met';
  }

  #refuse(reason: SnapshotReason): 'refused' {
    this.#refusal = snapshotPlan(reason);
    return 'refused';
  }
}

function isEpochStart(zxid: Zxid): boolean {
  return counterOf(zxid) === 0;
}

function snapshotPlan(reason: SnapshotReason): SnapshotPlan {
  return { kind: 'snap', reason };
}
