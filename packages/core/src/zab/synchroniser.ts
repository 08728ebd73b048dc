/**
 * Brings learners to the leader's history, one stream each: DIFF or TRUNC and the txns in memory;
 * or those in the log on disk, which the storage reads; or SNAP (snapshot-syncs.ts). sync-plan.ts
 * makes all decisions.
 */
import { type Millis, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Replica } from '../request/replica.ts';
import { type CommittedLog, mayFollow } from './committed-log.ts';
import type { LearnerSync } from './learner-sync.ts';
import { SnapshotSyncs } from './snapshot-syncs.ts';
import { LogWalk, type OpenedPlan, planSync } from './sync-plan.ts';
import type { PeerStorage } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

/** A txn of the log on disk. */
export interface LogEntry {
  readonly zxid: Zxid;
  /** Header, record and digest. */
  readonly bytes: Buffer;
}

export interface SynchroniserOptions {
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
  readonly wholeFrom: Zxid;
  /** A step has ended in the middle of a snapshot. */
  readonly stepEnded: () => void;
  readonly limitMet: (limit: 'snapSyncsMax' | 'diffSyncsMax') => void;
  /** Reports how each learner is synchronised. */
  readonly begun: (by: 'diff' | 'trunc' | 'snap', from: 'memory' | 'log' | 'tree', snapshotsUnderWay: number, isBehind: boolean) => void;
}

/** A learner for which the log on disk is read, to decide what it is sent. */
interface Reading {
  readonly learner: LearnerSync;
  readonly bytesMax: number;
  walk: LogWalk;
  bytes: number;
}

/**
 * A learner that is sent txns of the log on disk after `sent`, until the next ones are in memory.
 */
interface Tail {
  readonly learner: LearnerSync;
  sent: Zxid;
}

/** Why a learner that has been sent a part is disconnected. */
const purged = 'the log was purged while it was read for this learner';

export class Synchroniser {
  readonly #options: SynchroniserOptions;
  readonly #links: QuorumLinks;
  readonly #storage: PeerStorage;
  readonly #committed: CommittedLog;
  readonly #readings = new Map<ChannelId, Reading>();
  readonly #tails = new Map<ChannelId, Tail>();
  /**
   * Learners whose log read must wait, since the number of concurrent reads for learners that do
   * not vote is limited.
   */
  readonly #waiting: Reading[] = [];
  readonly #snapshots: SnapshotSyncs;

  constructor(options: SynchroniserOptions, replica: Replica, committed: CommittedLog, links: QuorumLinks, storage: PeerStorage) {
    this.#options = options;
    this.#committed = committed;
    this.#links = links;
    this.#storage = storage;
    const snapshots = {
      tickTimeMs: options.tickTimeMs,
      observersMax: options.snapSyncsMax,
      sliceBytes: options.snapshotSliceBytes,
      stepEnded: options.stepEnded,
      limitMet: () => options.limitMet('snapSyncsMax'),
      begun: (zxid: Zxid, underWay: number) => options.begun('snap', 'tree', underWay, (committed.newest ?? 0) > zxid),
      sent: (learner: LearnerSync, zxid: Zxid) => this.#catchUp(learner, zxid, zxid),
    };
    this.#snapshots = new SnapshotSyncs(snapshots, replica, links);
  }

  /** `leaderLast`: the last committed txn. */
  add(learner: LearnerSync, leaderLast: Zxid): void {
    const { forceSnapshotSync } = this.#options;
    const facts = { learnerLast: learner.lastZxid, leaderLast, forceSnapshotSync, logBytesMax: this.#storage.logBytesMax() };
    const plan = planSync(facts, this.#committed);
    if (plan.kind === 'snap') {
      this.#snapshots.add(learner);
    } else if (plan.kind === 'readLog') {
      this.#waiting.push({ learner, bytesMax: plan.bytesMax, walk: new LogWalk(plan.from, this.#options.wholeFrom), bytes: 0 });
      this.#readSome();
    } else {
      this.#open(learner, plan, 'memory');
      this.#catchUp(learner, plan.from, leaderLast);
    }
  }

  /** The learner has disconnected. */
  remove(channel: ChannelId): void {
    this.#readings.delete(channel);
    this.#tails.delete(channel);
    const at = this.#waiting.findIndex(({ learner }) => learner.channel === channel);
    if (at !== -1) this.#waiting.splice(at, 1);
    this.#snapshots.remove(channel);
    this.#readSome();
  }

  /** Ends all synchronisation. */
  end(): void {
    this.#readings.clear();
    this.#tails.clear();
    this.#waiting.length = 0;
    this.#snapshots.end();
  }

  /** The next txns of the log; `isEnd` if there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const reading = this.#readings.get(channel);
    const tail = this.#tails.get(channel);
    if (reading !== undefined) this.#decide(reading, entries, isEnd, leaderLast);
    else if (tail !== undefined) this.#sendLogged(tail, entries, isEnd, leaderLast);
  }

  /** A snapshot is cheaper than the log, or the log does not reach back far enough. */
  logRefused(channel: ChannelId): void {
    const reading = this.#readings.get(channel);
    if (reading !== undefined) {
      this.#readings.delete(channel);
      this.#snapshots.add(reading.learner);
      this.#readSome();
    } else if (this.#tails.delete(channel)) {
      this.#links.closeChannel(channel, purged);
    }
  }

  /** Whether there is work now. `isBusy`: a txn is partly applied. */
  wants(isBusy: boolean): boolean {
    return this.#snapshots.wants(isBusy);
  }

  /** Performs the next step of the snapshots in progress. */
  wake(isBusy: boolean, nowMs: Millis): void {
    this.#snapshots.wake(isBusy, nowMs);
  }

  /**
   * Everything that can influence behaviour, for an explorer. Throws an `Error` while a snapshot is
   * partly sent.
   */
  fingerprint(to: Fingerprint): void {
    this.#snapshots.fingerprint(to);
    to.number(this.#readings.size);
    for (const channel of [...this.#readings.keys()].sort((a, b) => a - b)) writeReading(to, this.#readings.get(channel)!);
    to.number(this.#waiting.length);
    for (const reading of this.#waiting) writeReading(to, reading);
    to.number(this.#tails.size);
    for (const channel of [...this.#tails.keys()].sort((a, b) => a - b)) {
      to.number(channel);
      to.number(this.#tails.get(channel)!.sent);
    }
  }

  #open({ channel }: LearnerSync, { kind, zxid }: OpenedPlan, from: 'memory' | 'log'): void {
    this.#options.begun(kind, from, this.#snapshots.underWay, false);
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
  #catchUp(learner: LearnerSync, sent: Zxid, last: Zxid): void {
    const { channel } = learner;
    const { newest } = this.#committed;
    if (newest === undefined ? sent < last : !this.#committed.holdsAllAbove(sent)) {
      this.#tails.set(channel, { learner, sent });
      this.#storage.readLog(channel, sent, true);
      return;
    }
    const upTo = learner.begin();
    this.#committed.forEachAbove(sent, (zxid, bytes) => {
      if (zxid > upTo) return false;
      this.#sendTxn(channel, zxid, bytes);
      return true;
    });
    learner.done();
  }

  // ---- txns of the log

  /**
   * Starts log reads for waiting learners: for voters at once, for others while the limit allows.
   */
  #readSome(): void {
    let others = 0;
    for (const { learner } of [...this.#readings.values(), ...this.#tails.values()]) if (!learner.isVoter) others++;
    for (let at = 0; at < this.#waiting.length;) {
      const { learner } = this.#waiting[at]!;
      if (!learner.isVoter && others >= this.#options.diffSyncsMax) {
        this.#options.limitMet('diffSyncsMax');
        at++;
        continue;
      }
      if (!learner.isVoter) others++;
      const [reading] = this.#waiting.splice(at, 1);
      this.#readings.set(learner.channel, reading!);
      this.#storage.readLog(learner.channel, learner.lastZxid, false);
    }
  }

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
      this.#snapshots.add(learner);
    } else {
      this.#readings.delete(learner.channel);
      this.#open(learner, result, 'log');
      this.#catchUp(learner, result.kind === 'trunc' ? result.zxid : learner.lastZxid, leaderLast);
    }
    this.#readSome();
  }

  #sendLogged(tail: Tail, entries: readonly LogEntry[], isEnd: boolean, leaderLast: Zxid): void {
    const { learner } = tail;
    const { channel } = learner;
    for (const { zxid, bytes } of entries) {
      // Proposals that are not committed are in the log as well, and are sent later.
      if (zxid <= tail.sent || zxid > leaderLast) continue;
      if (!mayFollow(tail.sent, zxid)) {
        this.#tails.delete(channel);
        // It has been sent a part; the rest must not be sent in any other way.
        this.#links.closeChannel(channel, purged);
        return;
      }
      this.#sendTxn(channel, zxid, bytes);
      tail.sent = zxid;
    }
    if (!isEnd) return;
    this.#tails.delete(channel);
    // The log has been read to its end, so without a txn in memory this is all.
    this.#catchUp(learner, tail.sent, tail.sent);
    this.#readSome();
  }

  #sendTxn(channel: ChannelId, zxid: Zxid, bytes: Buffer): void {
    const writer = this.#links.packets(channel);
    writer.int32(PacketType.PROPOSAL);
    writer.int64(zxid);
    writer.int32(bytes.length);
    this.#links.share(channel, bytes, 0);
    const behind = this.#links.packets(channel);
    // No identities.
    behind.int32(-1);
    writeEmptyPacket(behind, PacketType.COMMIT, zxid);
  }
}

function writeReading(to: Fingerprint, { learner, bytesMax, walk, bytes }: Reading): void {
  for (const number of [learner.channel, learner.lastZxid, bytesMax, bytes]) to.number(number);
  walk.fingerprint(to);
}
