/**
 * Brings learners to the leader's history, one stream each: DIFF or TRUNC and the txns that are in memory; or those in the log on disk,
 * which somebody else has to read; or SNAP, in slices, one learner after the other, since the tree can be written once at a time. Voters come
 * first: a quorum may need them, and anybody may say to be an observer.
 *
 * Whatever is decided is decided by sync-plan.ts.
 */
import { beginQuorumPacket, endQuorumPacket, type Millis, PacketType, writeEmptyPacket, type Writer, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Replica } from '../request/replica.ts';
import type { SnapshotSource } from '../snapshot/snapshot-source.ts';
import { type CommittedLog, mayFollow } from './committed-log.ts';
import { LogWalk, type OpenedPlan, planSync } from './sync-plan.ts';
import type { ChannelId } from './zab-out.ts';

/** A learner that is to be brought up to date, as its leader sees it. */
export interface LearnerSync {
  readonly channel: ChannelId;
  readonly isVoter: boolean;
  /** The last txn in its log. */
  readonly lastZxid: Zxid;
  /**
   * From here on the learner hears of everything that is committed or proposed, after `done`, which follows in the same turn. Returns the last
   * txn that was committed before: the learner is to be sent everything up to there.
   */
  begin(): Zxid;
  done(): void;
}

/** A txn as it stands in the log on disk. */
export interface LogEntry {
  readonly zxid: Zxid;
  /** Header, record and digest. */
  readonly bytes: Buffer;
}

export interface SynchroniserOut {
  packets(channel: ChannelId): Writer;
  /** Whether so much waits for the stream that what can wait should. Once it has been said, `wake` is called when there is room again. */
  channelIsFull(channel: ChannelId): boolean;
  closeChannel(channel: ChannelId, reason: string): void;
  /**
   * Reads the log, from the last txn up to `from` on. It completes as `logRead`, in pieces. The reader stops when it is asked for another
   * log over the same stream, or when that is gone, and waits while the stream is full. `isTail`: however much that is, as the learner has
   * had what comes before; otherwise it completes as `logRefused` when a snapshot is cheaper.
   */
  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void;
}

export interface SynchroniserOptions {
  readonly tickTimeMs: Millis;
  readonly forceSnapshotSync: boolean;
  /** How many bytes of log are cheaper to send than a snapshot; undefined when the log is not to be read. See `logBytesMax`. */
  readonly logBytesMax: () => number | undefined;
  /** A step between txns is believed only from here on; see `LogWalk`. */
  readonly wholeFrom: Zxid;
  /** Of a snapshot, in one step. */
  readonly sliceBytes: number;
  /** A step has ended in the midst of a snapshot. */
  readonly stepEnded: () => void;
  /** Told how each learner is brought up to date. */
  readonly begun: (by: 'diff' | 'trunc' | 'snap', from: 'memory' | 'log' | 'tree', isBehind: boolean) => void;
}

/** A learner for whom the log on disk is read, to decide what it is to be sent. */
interface Reading {
  readonly learner: LearnerSync;
  readonly bytesMax: number;
  walk: LogWalk;
  bytes: number;
}

/** A learner that is sent txns out of the log on disk, from the one after `sent` on, until those that follow are in memory. */
interface Tail {
  readonly learner: LearnerSync;
  sent: Zxid;
}

/** A learner that is being sent a snapshot. */
interface Snapshot {
  readonly learner: LearnerSync;
  readonly source: SnapshotSource;
  readonly zxid: Zxid;
  /** When it was last given a slice. */
  movedMs: Millis;
}

/** Why a learner that has been sent a part is left. */
const purged = 'the log was purged while it was read for this learner';

/** For how long one that takes nothing may keep others waiting. */
const stallTicks = 2;
/** For how long one that is no voter may keep a voter waiting. */
const voterWaitTicks = 1;

export class Synchroniser {
  readonly #options: SynchroniserOptions;
  readonly #out: SynchroniserOut;
  readonly #replica: Replica;
  readonly #committed: CommittedLog;
  readonly #readings = new Map<ChannelId, Reading>();
  readonly #tails = new Map<ChannelId, Tail>();
  /** Who waits for a snapshot, voters first. */
  #queue: LearnerSync[] = [];
  #snapshot: Snapshot | undefined;
  /** Since when a voter waits for the snapshot of one that is none. */
  #voterWaitsSinceMs: Millis | undefined;

  constructor(options: SynchroniserOptions, replica: Replica, committed: CommittedLog, out: SynchroniserOut) {
    this.#options = options;
    this.#replica = replica;
    this.#committed = committed;
    this.#out = out;
  }

  /** `leaderLast`: the last txn that is committed. */
  add(learner: LearnerSync, leaderLast: Zxid): void {
    const { forceSnapshotSync, logBytesMax } = this.#options;
    const facts = { learnerLast: learner.lastZxid, leaderLast, forceSnapshotSync, logBytesMax: logBytesMax() };
    const plan = planSync(facts, this.#committed);
    if (plan.kind === 'snap') {
      this.#enqueue(learner);
    } else if (plan.kind === 'readLog') {
      const walk = new LogWalk(plan.from, this.#options.wholeFrom);
      this.#readings.set(learner.channel, { learner, bytesMax: plan.bytesMax, walk, bytes: 0 });
      this.#out.readLog(learner.channel, plan.from, false);
    } else {
      this.#open(learner, plan, 'memory');
      this.#catchUp(learner, plan.from);
    }
  }

  /** The learner is gone. */
  remove(channel: ChannelId): void {
    this.#readings.delete(channel);
    this.#tails.delete(channel);
    this.#queue = this.#queue.filter((learner) => learner.channel !== channel);
    if (this.#snapshot?.learner.channel === channel) this.#endSnapshot();
  }

  /** Nobody is to be brought up to date any more. */
  end(): void {
    this.#readings.clear();
    this.#tails.clear();
    this.#queue = [];
    if (this.#snapshot !== undefined) this.#endSnapshot();
  }

  /** The next txns of the log; `isEnd` when there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const reading = this.#readings.get(channel);
    const tail = this.#tails.get(channel);
    if (reading !== undefined) this.#decide(reading, entries, isEnd, leaderLast);
    else if (tail !== undefined) this.#sendLogged(tail, entries, isEnd, leaderLast);
  }

  /** The log is more than is worth sending, and the learner is sent a snapshot; or it does not go back so far. */
  logRefused(channel: ChannelId): void {
    const reading = this.#readings.get(channel);
    if (reading !== undefined) {
      this.#readings.delete(channel);
      this.#enqueue(reading.learner);
    } else if (this.#tails.delete(channel)) {
      this.#out.closeChannel(channel, purged);
    }
  }

  /** There is something to do at once. `isBusy`: the tree is in the midst of a change. */
  wants(isBusy: boolean): boolean {
    if (this.#snapshot !== undefined) return !this.#out.channelIsFull(this.#snapshot.learner.channel);
    return this.#queue.length > 0 && !isBusy && !this.#replica.tree.isBeingWritten;
  }

  /** A slice of the snapshot that is being sent, or the beginning of the next. */
  wake(isBusy: boolean, nowMs: Millis): void {
    if (this.#snapshot !== undefined) this.#maybeMakeWay(this.#snapshot, nowMs);
    if (!this.wants(isBusy)) return;
    const snapshot = (this.#snapshot ??= this.#beginSnapshot(this.#queue.shift()!, nowMs));
    const { learner, source, zxid } = snapshot;
    snapshot.movedMs = nowMs;
    if (!source.next(this.#out.packets(learner.channel), this.#options.sliceBytes)) {
      this.#options.stepEnded();
      return;
    }
    this.#snapshot = undefined;
    this.#catchUp(learner, zxid);
  }

  /** Everything that can influence behaviour, for an explorer. A snapshot that is sent in part cannot be written down: throws an `Error`. */
  fingerprint(to: Fingerprint): void {
    if (this.#snapshot !== undefined) throw new Error('a snapshot that has been sent in part has no fingerprint');
    to.number(this.#replica.tree.isBeingWritten ? 1 : 0);
    to.number(this.#queue.length);
    for (const { channel, lastZxid } of this.#queue) {
      to.number(channel);
      to.number(lastZxid);
    }
    to.number(this.#readings.size);
    for (const channel of [...this.#readings.keys()].sort((a, b) => a - b)) {
      const { learner, bytesMax, walk, bytes } = this.#readings.get(channel)!;
      for (const number of [channel, learner.lastZxid, bytesMax, bytes]) to.number(number);
      walk.fingerprint(to);
    }
    to.number(this.#tails.size);
    for (const channel of [...this.#tails.keys()].sort((a, b) => a - b)) {
      to.number(channel);
      to.number(this.#tails.get(channel)!.sent);
    }
  }

  #open({ channel }: LearnerSync, { kind, zxid }: OpenedPlan, from: 'memory' | 'log'): void {
    this.#options.begun(kind, from, false);
    writeEmptyPacket(this.#out.packets(channel), kind === 'diff' ? PacketType.DIFF : PacketType.TRUNC, zxid);
  }

  /**
   * The learner has been sent everything up to `sent`. What it lacks comes out of memory, and it hears of the rest; or, where memory does not go
   * back so far, out of the log until it does. So nothing is kept for a learner while a snapshot is on its way to it, however long that takes.
   */
  #catchUp(learner: LearnerSync, sent: Zxid): void {
    const { channel } = learner;
    if (!this.#committed.holdsAllAbove(sent)) {
      this.#tails.set(channel, { learner, sent });
      this.#out.readLog(channel, sent, true);
      return;
    }
    const upTo = learner.begin();
    const writer = this.#out.packets(channel);
    this.#committed.forEachAbove(sent, (zxid, bytes) => {
      if (zxid > upTo) return false;
      sendTxn(writer, zxid, bytes);
      return true;
    });
    learner.done();
  }

  // ---- from the log

  #decide(reading: Reading, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
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
      this.#readings.delete(learner.channel);
      this.#enqueue(learner);
      return;
    }
    this.#readings.delete(learner.channel);
    this.#open(learner, result, 'log');
    this.#catchUp(learner, result.kind === 'trunc' ? result.zxid : learner.lastZxid);
  }

  #sendLogged(tail: Tail, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const { learner } = tail;
    const { channel } = learner;
    const writer = this.#out.packets(channel);
    for (const { zxid, bytes } of entries) {
      // What is proposed and not committed is in the log as well, and comes later.
      if (zxid <= tail.sent || zxid > leaderLast) continue;
      if (!mayFollow(tail.sent, zxid)) {
        this.#tails.delete(channel);
        // It has been sent a part; the rest must not be made up for in any other way.
        this.#out.closeChannel(channel, purged);
        return;
      }
      sendTxn(writer, zxid, bytes);
      tail.sent = zxid;
    }
    if (!isEnd) return;
    this.#tails.delete(channel);
    this.#catchUp(learner, tail.sent);
  }

  // ---- snapshots

  #enqueue(learner: LearnerSync): void {
    const firstOther = learner.isVoter ? this.#queue.findIndex(({ isVoter }) => !isVoter) : -1;
    if (firstOther === -1) this.#queue.push(learner);
    else this.#queue.splice(firstOther, 0, learner);
  }

  /** While others wait, one that is sent a snapshot has to take it; and one that is no voter is cut off for a voter, and comes again. */
  #maybeMakeWay({ learner, movedMs }: Snapshot, nowMs: Millis): void {
    const [next] = this.#queue;
    const isInTheWay = next?.isVoter === true && !learner.isVoter;
    this.#voterWaitsSinceMs = isInTheWay ? (this.#voterWaitsSinceMs ?? nowMs) : undefined;
    if (next === undefined) return;
    const { tickTimeMs } = this.#options;
    const stalledMs = nowMs - movedMs;
    if (isInTheWay && nowMs - this.#voterWaitsSinceMs! > voterWaitTicks * tickTimeMs) {
      this.#out.closeChannel(learner.channel, 'a voter waits for a snapshot, and one is sent at a time: it may come again');
    } else if (stalledMs > stallTicks * tickTimeMs && this.#out.channelIsFull(learner.channel)) {
      this.#out.closeChannel(learner.channel, `others wait for a snapshot, and it has taken nothing of its own for ${stalledMs} ms`);
    } else {
      return;
    }
    this.#endSnapshot();
  }

  #beginSnapshot(learner: LearnerSync, nowMs: Millis): Snapshot {
    const zxid = this.#replica.lastZxid;
    this.#options.begun('snap', 'tree', (this.#committed.newest ?? 0) > zxid);
    writeEmptyPacket(this.#out.packets(learner.channel), PacketType.SNAP, zxid);
    return { learner, source: this.#replica.snapshotStream(), zxid, movedMs: nowMs };
  }

  #endSnapshot(): void {
    this.#snapshot?.source.abandon();
    this.#snapshot = this.#voterWaitsSinceMs = undefined;
  }
}

function sendTxn(writer: Writer, zxid: Zxid, bytes: Buffer): void {
  const at = beginQuorumPacket(writer, PacketType.PROPOSAL, zxid);
  writer.raw(bytes);
  endQuorumPacket(writer, at);
  writeEmptyPacket(writer, PacketType.COMMIT, zxid);
}
