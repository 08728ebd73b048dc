/**
 * Brings learners to the leader's history, one stream each: DIFF or TRUNC and the txns in memory;
 * or those in the log on disk, which the storage reads; or SNAP (snapshot-syncs.ts). sync-plan.ts
 * makes all decisions.
 */
import { type Millis, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Replica } from '../request/replica.ts';
import { type CommittedLog, isPossibleSuccessor } from './committed-log.ts';
import type { SyncTarget } from './sync-target.ts';
import { SnapshotSyncs, type SyncObserver } from './snapshot-syncs.ts';
import { LogWalk, type OpenedPlan, planSync } from './sync-plan.ts';
import type { LearnerLog } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

/** A txn of the log on disk. */
export interface LogEntry {
  readonly zxid: Zxid;
  /** Header, record and digest, without the framing. */
  readonly bytes: Buffer;
}

export interface LearnerSyncerOptions {
  readonly tickTimeMs: Millis;
  readonly forceSnapshotSync: boolean;
  /**
   * How many learners that do not vote are sent a snapshot at a time, and for how many the log is
   * read; voters do not count.
   */
  readonly snapSyncsMax: number;
  readonly diffSyncsMax: number;
  readonly snapshotSliceBytes: number;
  /** A step between txns is trusted only from here on; see `LogWalk`. */
  readonly logCompleteFromZxid: Zxid;
  readonly observer: SyncObserver;
}

/** A learner for which the log on disk is read, to decide what it is sent. */
interface LogDecision {
  readonly learner: SyncTarget;
  readonly bytesMax: number;
  walk: LogWalk;
  bytes: number;
}

/**
 * A learner that is sent txns of the log on disk after `sent`, until the next ones are in memory.
 */
interface LogStream {
  readonly learner: SyncTarget;
  sent: Zxid;
}

/** Why a learner that has been sent a part is disconnected. */
const purgedText = 'the log was purged while it was read for this learner';

export class LearnerSyncer {
  readonly #options: LearnerSyncerOptions;
  readonly #links: QuorumLinks;
  readonly #storage: LearnerLog;
  readonly #committed: CommittedLog;
  readonly #decisions = new Map<ChannelId, LogDecision>();
  readonly #streams = new Map<ChannelId, LogStream>();
  /**
   * Learners whose log read must wait, since the number of concurrent reads for learners that do
   * not vote is limited.
   */
  readonly #queuedDecisions: LogDecision[] = [];
  readonly #snapshotSyncs: SnapshotSyncs;

  constructor(options: LearnerSyncerOptions, replica: Replica, committed: CommittedLog, links: QuorumLinks, storage: LearnerLog) {
    this.#options = options;
    this.#committed = committed;
    this.#links = links;
    this.#storage = storage;
    const syncsOptions = {
      tickTimeMs: options.tickTimeMs,
      observersMax: options.snapSyncsMax,
      sliceBytes: options.snapshotSliceBytes,
      observer: options.observer,
      onSent: (learner: SyncTarget, zxid: Zxid) => this.#catchUp(learner, zxid, zxid),
    };
    this.#snapshotSyncs = new SnapshotSyncs(syncsOptions, replica, committed, links);
  }

  /** `leaderLast`: the last committed txn. */
  add(learner: SyncTarget, leaderLast: Zxid): void {
    const { forceSnapshotSync } = this.#options;
    const facts = { learnerLast: learner.lastZxid, leaderLast, forceSnapshotSync, logBytesMax: this.#storage.logBytesMax() };
    const plan = planSync(facts, this.#committed);
    if (plan.kind === 'snap') {
      this.#snapshotSyncs.add(learner);
    } else if (plan.kind === 'readLog') {
      this.#queuedDecisions.push({
        learner,
        bytesMax: plan.bytesMax,
        walk: new LogWalk(plan.from, this.#options.logCompleteFromZxid),
        bytes: 0,
      });
      this.#startLogReads();
    } else {
      this.#sendOpening(learner, plan, 'memory');
      this.#catchUp(learner, plan.from, leaderLast);
    }
  }

  /** The learner has disconnected. */
  remove(channel: ChannelId): void {
    this.#decisions.delete(channel);
    this.#streams.delete(channel);
    const at = this.#queuedDecisions.findIndex(({ learner }) => learner.channel === channel);
    if (at !== -1) this.#queuedDecisions.splice(at, 1);
    this.#snapshotSyncs.remove(channel);
    this.#startLogReads();
  }

  /** Ends all synchronisation. */
  stop(): void {
    this.#decisions.clear();
    this.#streams.clear();
    this.#queuedDecisions.length = 0;
    this.#snapshotSyncs.stop();
  }

  /** The next txns of the log; `isEnd` if there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const reading = this.#decisions.get(channel);
    const tail = this.#streams.get(channel);
    if (reading !== undefined) this.#decide(reading, entries, isEnd, leaderLast);
    else if (tail !== undefined) this.#sendFromLog(tail, entries, isEnd, leaderLast);
  }

  /** A snapshot is cheaper than the log, or the log does not reach back far enough. */
  logReadRefused(channel: ChannelId): void {
    const reading = this.#decisions.get(channel);
    if (reading !== undefined) {
      this.#decisions.delete(channel);
      this.#snapshotSyncs.add(reading.learner);
      this.#startLogReads();
    } else if (this.#streams.delete(channel)) {
      this.#links.closeChannel(channel, 'log purged', purgedText);
    }
  }

  /** Whether there is work now. `isBusy`: a txn is partly applied. */
  hasWork(isBusy: boolean): boolean {
    return this.#snapshotSyncs.hasWork(isBusy);
  }

  /** Performs the next step of the snapshots in progress. */
  wake(isBusy: boolean, nowMs: Millis): void {
    this.#snapshotSyncs.wake(isBusy, nowMs);
  }

  /**
   * Everything that can influence behaviour, for an explorer. Throws an `Error` while a snapshot is
   * partly sent.
   */
  fingerprint(to: Fingerprint): void {
    this.#snapshotSyncs.fingerprint(to);
    to.number(this.#decisions.size);
    for (const channel of [...this.#decisions.keys()].sort((a, b) => a - b)) fingerprintDecision(to, this.#decisions.get(channel)!);
    to.number(this.#queuedDecisions.length);
    for (const reading of this.#queuedDecisions) fingerprintDecision(to, reading);
    to.number(this.#streams.size);
    for (const channel of [...this.#streams.keys()].sort((a, b) => a - b)) {
      to.number(channel);
      to.number(this.#streams.get(channel)!.sent);
    }
  }

  #sendOpening({ channel }: SyncTarget, { kind, zxid }: OpenedPlan, from: 'memory' | 'log'): void {
    this.#options.observer.learnerSyncStarted(kind, from, this.#snapshotSyncs.activeCount, false);
    writeEmptyPacket(this.#links.packets(channel), kind === 'diff' ? PacketType.DIFF : PacketType.TRUNC, zxid);
  }

  /**
   * The learner has been sent everything up to `sent`. It gets the missing txns from memory, and
   * then all new ones; or, if memory does not reach back that far, from the log until it does. So
   * no txns are kept for a learner while a snapshot is sent to it, however long that takes.
   *
   * `last`: the last committed txn if memory is empty: after a TRUNC that removed all that was
   * there, or after a start or a SNAP since which nothing has been committed.
   */
  #catchUp(learner: SyncTarget, sent: Zxid, last: Zxid): void {
    const { channel } = learner;
    const { newest } = this.#committed;
    if (newest === undefined ? sent < last : !this.#committed.hasAllAbove(sent)) {
      this.#streams.set(channel, { learner, sent });
      this.#storage.readLog(channel, sent, true);
      return;
    }
    const upTo = learner.startReplicating();
    this.#committed.forEachAbove(sent, (zxid, bytes) => {
      if (zxid > upTo) return false;
      this.#sendTxn(channel, zxid, bytes);
      return true;
    });
    learner.historySent();
  }

  // ---- txns of the log

  /**
   * Starts log reads for waiting learners: for voters at once, for others while the limit allows.
   */
  #startLogReads(): void {
    let others = 0;
    for (const { learner } of [...this.#decisions.values(), ...this.#streams.values()]) if (!learner.isVoter) others++;
    for (let at = 0; at < this.#queuedDecisions.length;) {
      const { learner } = this.#queuedDecisions[at]!;
      if (!learner.isVoter && others >= this.#options.diffSyncsMax) {
        this.#options.observer.limitReached('diffSyncsMax');
        at++;
        continue;
      }
      if (!learner.isVoter) others++;
      const [reading] = this.#queuedDecisions.splice(at, 1);
      this.#decisions.set(learner.channel, reading!);
      this.#storage.readLog(learner.channel, learner.lastZxid, false);
    }
  }

  #decide(reading: LogDecision, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const { walk, learner } = reading;
    const min = this.#committed.min(leaderLast);
    const max = this.#committed.max(leaderLast);
    for (const { zxid, bytes } of entries) {
      if (walk.next(zxid, min, max) === 'send') reading.bytes += bytes.length;
      if (walk.result !== undefined) break;
    }
    if (isEnd && walk.result === undefined) walk.end(min);
    const { result } = walk;
    const isTooLarge = reading.bytes > reading.bytesMax;
    if (result === undefined && !isTooLarge) return;
    if (result === undefined || result.kind === 'snap' || isTooLarge) {
      this.#decisions.delete(learner.channel);
      this.#snapshotSyncs.add(learner);
    } else {
      this.#decisions.delete(learner.channel);
      this.#sendOpening(learner, result, 'log');
      this.#catchUp(learner, result.kind === 'trunc' ? result.zxid : learner.lastZxid, leaderLast);
    }
    this.#startLogReads();
  }

  #sendFromLog(tail: LogStream, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const { learner } = tail;
    const { channel } = learner;
    for (const { zxid, bytes } of entries) {
      // Proposals that are not committed are in the log as well, and are sent later.
      if (zxid <= tail.sent || zxid > leaderLast) continue;
      if (!isPossibleSuccessor(tail.sent, zxid)) {
        this.#streams.delete(channel);
        // It has been sent a part; the rest must not be sent in any other way.
        this.#links.closeChannel(channel, 'log purged', purgedText);
        return;
      }
      this.#sendTxn(channel, zxid, bytes);
      tail.sent = zxid;
    }
    if (!isEnd) return;
    this.#streams.delete(channel);
    // The log has been read to its end, so without a txn in memory this is all.
    this.#catchUp(learner, tail.sent, tail.sent);
    this.#startLogReads();
  }

  #sendTxn(channel: ChannelId, zxid: Zxid, bytes: Buffer): void {
    const writer = this.#links.packets(channel);
    writer.int32(PacketType.PROPOSAL);
    writer.int64(zxid);
    writer.int32(bytes.length);
    this.#links.writeShared(channel, bytes, 0);
    const suffix = this.#links.packets(channel);
    // No identities.
    suffix.int32(-1);
    writeEmptyPacket(suffix, PacketType.COMMIT, zxid);
  }
}

function fingerprintDecision(to: Fingerprint, { learner, bytesMax, walk, bytes }: LogDecision): void {
  for (const number of [learner.channel, learner.lastZxid, bytesMax, bytes]) to.number(number);
  walk.fingerprint(to);
}
