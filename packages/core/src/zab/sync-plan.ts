/**
 * How a learner that joins is brought to the leader's history: DIFF, TRUNC or SNAP, a choice from two histories (LearnerHandler.syncFollower
 * and queueCommittedProposals).
 *
 * The learner has said which txn is its last. Of the leader's own history there is, from the newest to the oldest: the committed txns in
 * memory, those in its log on disk, and its tree, which can always be sent as a whole. Memory is asked first, and decides at once. The log
 * can only be read by others and takes its time: the plan then says `readLog`, and the txns that are found are shown to a `LogWalk`, which
 * decides while they pass.
 *
 * Sending a snapshot is always right, and only slow. A DIFF with a hole in it, or a TRUNC of what was committed, loses data for good. So
 * wherever the two histories leave a doubt, the answer is SNAP; where that is stricter than ZooKeeper, it says so.
 */
import { counterOf, epochOf, type Zxid } from '@tskeeper/protocol';
import { type CommittedLog, mayFollow } from './committed-log.ts';

/** The packet the synchronisation begins with, unless it is SNAP. */
export type SyncOpening =
  /** What the learner has is part of the leader's history. `zxid` only informs it of the leader's last committed txn. */
  | { readonly kind: 'diff'; readonly zxid: Zxid }
  /** The learner cuts its log behind `zxid`, which is a txn of both histories. */
  | { readonly kind: 'trunc'; readonly zxid: Zxid };

export type SnapshotReason =
  | 'forceSnapshotSync is set'
  | 'the learner has no data'
  | 'the learner has no txn from which the committed txns in memory go on, and the log may not be read'
  | 'the learner stands at the beginning of an epoch that the leader has no txn of'
  | 'there is no txn that the learner could cut its log behind'
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
  /** The log is to be read from `from` on: see `LogWalk`. At most `bytesMax` bytes of it, Infinity if that does not matter. */
  | { readonly kind: 'readLog'; readonly from: Zxid; readonly bytesMax: number };

export interface SyncFacts {
  /** The last txn of the learner, from its ACKEPOCH. Or the zxid of an epoch with counter 0, at which it stood when it had no txn of it. */
  readonly learnerLast: Zxid;
  /** The last txn the leader has applied, or the beginning of its epoch (counter 0). */
  readonly leaderLast: Zxid;
  /** zookeeper.forceSnapshotSync */
  readonly forceSnapshotSync: boolean;
  /** How many bytes of log may be read for one learner, see `logBytesMax`; undefined when it may not be read. */
  readonly logBytesMax: number | undefined;
}

/**
 * How many bytes of log are still cheaper to send than the newest snapshot. `factor` is zookeeper.snapshotSizeFactor, 0.33 by default:
 * below 0 the log is never read, and 0 means no limit, as does a snapshot that is not there (ZKDatabase.calculateTxnLogSizeLimit).
 * `snapshotBytes` is the size of the newest snapshot's file. Returns undefined, a number of bytes, or Infinity.
 */
export function logBytesMax(factor: number, snapshotBytes: number): number | undefined {
  if (factor < 0) return undefined;
  const limit = Math.floor(snapshotBytes * factor);
  return limit === 0 ? Infinity : limit;
}

/** Chooses from what is in memory. */
export function planSync(facts: SyncFacts, committed: CommittedLog): SyncPlan {
  const { learnerLast, leaderLast } = facts;
  const min = committed.min(leaderLast);
  const max = committed.max(leaderLast);
  if (facts.forceSnapshotSync) return snap('forceSnapshotSync is set');
  // Not even an empty database (zxid -1): a log alone would not be trusted there.
  if (learnerLast < 0) return snap('the learner has no data');
  if (learnerLast === leaderLast) return { kind: 'diff', zxid: learnerLast, from: learnerLast };
  if (learnerLast > max) {
    // Zxids with counter 0 are no txns: whoever stands there may have nothing that could be cut.
    if (isNewEpoch(learnerLast)) return snap('the learner stands at the beginning of an epoch that the leader has no txn of');
    // Nor can anyone cut behind one. ZooKeeper tells its learner to, which then keeps the first txn above it. (A learner that is sent a
    // snapshot must not keep txns above it in its log either: the next start would apply them.)
    if (isNewEpoch(max)) return snap('there is no txn that the learner could cut its log behind');
    return { kind: 'trunc', zxid: max, from: max };
  }
  if (learnerLast >= min) return planFromMemory(learnerLast, max, committed);
  if (facts.logBytesMax === undefined) {
    return snap('the learner has no txn from which the committed txns in memory go on, and the log may not be read');
  }
  return { kind: 'readLog', from: learnerLast, bytesMax: facts.logBytesMax };
}

/** The learner stands within the committed txns, of which none is missing. */
function planFromMemory(learnerLast: Zxid, max: Zxid, committed: CommittedLog): SyncPlan {
  const next = committed.has(learnerLast) ? learnerLast : committed.firstAbove(learnerLast);
  const opening = chooseOpening(learnerLast, committed.lastUpTo(learnerLast), next, max);
  if (opening.kind === 'snap') return opening;
  return { ...opening, from: opening.kind === 'trunc' ? opening.zxid : learnerLast };
}

/**
 * The packet to begin with, by the first txn of the history that is not below the learner's last one; undefined when the history ends
 * before. `previous` is the last txn below it. `max` is the leader's last committed txn.
 */
function chooseOpening(learnerLast: Zxid, previous: Zxid | undefined, next: Zxid | undefined, max: Zxid): SyncOpening | SnapshotPlan {
  // A learner at the beginning of an epoch has had the whole history that the epoch began with, which was committed.
  if (next === learnerLast || isNewEpoch(learnerLast)) return { kind: 'diff', zxid: max };
  // The learner's last txn is not in the history. If its epoch goes on there, the two parted behind `previous`; if not, nothing says where.
  if (next === undefined || previous === undefined || epochOf(next) !== epochOf(learnerLast)) {
    return snap('the last txn of the learner is not in the history, and nothing says where it left it');
  }
  return { kind: 'trunc', zxid: previous };
}

export type LogStep =
  /** The learner has it already. */
  | 'pass'
  /** It is to be sent, as PROPOSAL and COMMIT. */
  | 'send'
  /** The committed txns in memory go on from here: `result` is the plan. This txn is not to be sent. */
  | 'met'
  /** `result` is SNAP. Nothing of what was to be sent may be sent. */
  | 'refused';

/**
 * Goes through the txns of the log on disk for one learner, and says of each whether it is to be sent.
 *
 * They are shown in the order they stand in, beginning with a file whose first txn is not above the learner's last one. Only when the walk has
 * met the txns in memory is it certain that nothing was missing between (ZOOKEEPER-2418). So nothing of it may be sent before; or it is
 * walked twice, once to decide and once to send. While the log is read memory lets go of txns, and new ones come, so every step is told
 * where memory begins and ends by then; the log has to be read on to there.
 *
 * A log may also lack txns without showing it. A server that was sent a snapshot has a log that goes on behind a hole; and what stands
 * before the hole may be a history that came to nothing, the reason for the snapshot (ZOOKEEPER-2846). Within an epoch a hole shows, since
 * zxids grow by one. From one epoch to the next it does not. Such a step is believed only from `wholeFrom` on: the zxid of the snapshot that
 * this server was started from or was sent since, whichever is later, behind which it has applied every txn of its log itself. ZooKeeper
 * believes all.
 */
export class LogWalk {
  readonly #learnerLast: Zxid;
  readonly #wholeFrom: Zxid;
  /** The last txn below the learner's last one. */
  #previous: Zxid | undefined;
  #opening: SyncOpening | undefined;
  #refusal: SnapshotPlan | undefined;
  #met = false;
  /** Up to here the learner will have the history: its own last txn at first, then the last one sent. */
  #last: Zxid;

  constructor(learnerLast: Zxid, wholeFrom: Zxid) {
    this.#learnerLast = this.#last = learnerLast;
    this.#wholeFrom = wholeFrom;
  }

  /** The plan, once the walk has met memory or has been refused. */
  get result(): OpenedPlan | SnapshotPlan | undefined {
    if (this.#refusal !== undefined) return this.#refusal;
    return this.#met ? { ...this.#opening!, from: this.#last } : undefined;
  }

  /** Shows the next txn of the log. `min` and `max` are those of the committed txns in memory, at this moment. */
  next(zxid: Zxid, min: Zxid, max: Zxid): LogStep {
    if (this.#refusal !== undefined) return 'refused';
    if (this.#met) return 'met';
    if (zxid > min) return this.#meet(min);
    if (zxid < this.#learnerLast) {
      this.#previous = Math.max(zxid, this.#previous ?? zxid);
      return 'pass';
    }
    if (this.#opening === undefined) return this.#open(zxid, max);
    // ZooKeeper's logs may hold a zxid twice.
    if (zxid <= this.#last) return 'pass';
    if (!this.#follows(zxid)) return this.#refuse('the log may lack txns');
    this.#last = zxid;
    return 'send';
  }

  /** The log holds nothing more. */
  end(min: Zxid): 'met' | 'refused' {
    if (this.#refusal !== undefined) return 'refused';
    return this.#met ? 'met' : this.#meet(min);
  }

  #open(zxid: Zxid, max: Zxid): LogStep {
    const isLearnerLast = zxid === this.#learnerLast;
    if (!isLearnerLast && this.#previous === undefined) return this.#refuse('the log does not reach back to the last txn of the learner');
    const opening = chooseOpening(this.#learnerLast, this.#previous, zxid, max);
    if (opening.kind === 'snap') return this.#refuse(opening.reason);
    if (!isLearnerLast && !this.#follows(zxid, opening)) return this.#refuse('the log may lack txns');
    this.#opening = opening;
    this.#last = zxid;
    return isLearnerLast ? 'pass' : 'send';
  }

  /** Whether no txn of the history stands between where the learner will be and this one. */
  #follows(zxid: Zxid, opening?: SyncOpening): boolean {
    // Behind a TRUNC a zxid is left out, the learner's: in the part that is whole it was never committed.
    if (opening?.kind === 'trunc') return opening.zxid >= this.#wholeFrom;
    const isNext = zxid === this.#last + 1;
    return isNext || (mayFollow(this.#last, zxid) && this.#last >= this.#wholeFrom);
  }

  #meet(min: Zxid): 'met' | 'refused' {
    if (this.#opening === undefined || this.#last < min) return this.#refuse('the log ends before the committed txns in memory begin');
    this.#met = true;
    return 'met';
  }

  #refuse(reason: SnapshotReason): 'refused' {
    this.#refusal = snap(reason);
    return 'refused';
  }
}

function isNewEpoch(zxid: Zxid): boolean {
  return counterOf(zxid) === 0;
}

function snap(reason: SnapshotReason): SnapshotPlan {
  return { kind: 'snap', reason };
}
