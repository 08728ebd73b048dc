/**
 * The learners that are sent SNAP, several at once, each its own snapshot of the tree, slice by slice.
 *
 * A quorum may need a voter, and anybody may say to be an observer. So a voter's snapshot begins at once and waits for no other learner's;
 * observers of the configuration are sent some at a time, as in ZooKeeper (leader.maxConcurrentSnapSyncs); and those that no configuration names
 * come last, two at a time. Nobody waits for one that is below him. Of one that is no voter a least speed is asked, since what changes meanwhile
 * is kept for it (tree/snapshot-walk.ts), and since others of its kind may wait.
 */
import { type Millis, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Replica } from '../request/replica.ts';
import type { SnapshotSource } from '../snapshot/snapshot-source.ts';
import type { LearnerSync } from './learner-sync.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

export interface SnapshotSyncsOptions {
  readonly tickTimeMs: Millis;
  /** How many observers of the configuration are sent one at a time. */
  readonly observersMax: number;
  /** Of a snapshot, in one go. */
  readonly sliceBytes: number;
  /** A step has ended in the midst of a snapshot. */
  readonly stepEnded: () => void;
  /** A learner has to wait for the snapshots of others of its kind. */
  readonly limitMet: () => void;
  /** Told that one begins, as of which txn, and how many there are with it. */
  readonly begun: (zxid: Zxid, underWay: number) => void;
  /** A learner has been sent all of a snapshot as of `zxid`. */
  readonly sent: (learner: LearnerSync, zxid: Zxid) => void;
}

/** Voters first, then observers of the configuration. */
const [voter, observer, stranger] = [0, 1, 2] as const;
type Rank = typeof voter | typeof observer | typeof stranger;

interface SnapshotSync {
  readonly learner: LearnerSync;
  readonly rank: Rank;
  readonly source: SnapshotSource;
  readonly zxid: Zxid;
  /** When it was last given a slice. */
  movedMs: Millis;
  /** What it has been given since then, for its speed. */
  sinceMs: Millis;
  sinceBytes: number;
}

const strangersMax = 2;
/** For how long one that takes nothing may keep others of its kind waiting. */
const stallTicks = 2;
/** What one that is no voter has to take in a second, as an average over so many ticks. */
const leastBytesPerSecond = 32 * 1024;
const speedTicks = 5;
/** How much of what changes is kept for a learner that takes its snapshot more slowly than that; a voter that falls so far back could not follow either. */
const voterAheadBytesMax = 64 * 1024 * 1024;
const otherAheadBytesMax = 16 * 1024 * 1024;

export class SnapshotSyncs {
  readonly #options: SnapshotSyncsOptions;
  readonly #links: QuorumLinks;
  readonly #replica: Replica;
  /** Who waits, by rank, and within one in the order in which they came. */
  #queue: LearnerSync[] = [];
  /** Who is being sent one; who was given a slice last is the last. */
  #syncs: SnapshotSync[] = [];

  constructor(options: SnapshotSyncsOptions, replica: Replica, links: QuorumLinks) {
    this.#options = options;
    this.#replica = replica;
    this.#links = links;
  }

  add(learner: LearnerSync): void {
    const rank = rankOf(learner);
    const before = this.#queue.findIndex((other) => rankOf(other) > rank);
    if (before === -1) this.#queue.push(learner);
    else this.#queue.splice(before, 0, learner);
  }

  /** The learner is gone. */
  remove(channel: ChannelId): void {
    this.#queue = this.#queue.filter((learner) => learner.channel !== channel);
    const sync = this.#syncs.find(({ learner }) => learner.channel === channel);
    if (sync !== undefined) this.#end(sync);
  }

  end(): void {
    this.#queue = [];
    for (const { source } of this.#syncs) source.abandon();
    this.#syncs = [];
  }

  /** How many learners are being sent one. */
  get underWay(): number {
    return this.#syncs.length;
  }

  /** There is something to do at once. `isBusy`: the tree is in the midst of a change. */
  wants(isBusy: boolean): boolean {
    if (!isBusy && this.#next() !== undefined) return true;
    let isReady = false;
    // All are asked, since one that is full says when it has room only if it was.
    for (const sync of this.#syncs) isReady = sync.source.isGivenUp || !this.#isFull(sync) || isReady;
    return isReady;
  }

  /** The beginning of a snapshot that can begin, and a slice of one that is under way. */
  wake(isBusy: boolean, nowMs: Millis): void {
    for (const sync of this.#syncs) this.#judge(sync, nowMs);
    const next = isBusy ? undefined : this.#next();
    if (next !== undefined) this.#begin(next, nowMs);
    let ready: SnapshotSync | undefined;
    for (const sync of this.#syncs) {
      if ((ready === undefined || sync.rank < ready.rank) && !this.#isFull(sync)) ready = sync;
    }
    if (ready !== undefined) this.#goOn(ready, nowMs);
  }

  /** Everything that can influence behaviour, for an explorer. A snapshot that is sent in part cannot be written down: throws an `Error`. */
  fingerprint(to: Fingerprint): void {
    if (this.#syncs.length > 0) throw new Error('a snapshot that has been sent in part has no fingerprint');
    to.number(this.#queue.length);
    for (const { channel, lastZxid } of this.#queue) {
      to.number(channel);
      to.number(lastZxid);
    }
  }

  /** Whose snapshot can begin. */
  #next(): LearnerSync | undefined {
    return this.#queue.find((learner) => this.#hasRoomFor(rankOf(learner)));
  }

  #hasRoomFor(rank: Rank): boolean {
    if (rank === voter) return true;
    const most = rank === observer ? this.#options.observersMax : strangersMax;
    let count = 0;
    for (const sync of this.#syncs) if (sync.rank === rank) count++;
    if (count < most) return true;
    this.#options.limitMet();
    return false;
  }

  #begin(learner: LearnerSync, nowMs: Millis): void {
    this.#queue.splice(this.#queue.indexOf(learner), 1);
    const zxid = this.#replica.lastZxid;
    writeEmptyPacket(this.#links.packets(learner.channel), PacketType.SNAP, zxid);
    const rank = rankOf(learner);
    const source = this.#replica.snapshotStream(rank === voter ? voterAheadBytesMax : otherAheadBytesMax);
    this.#syncs.push({ learner, rank, source, zxid, movedMs: nowMs, sinceMs: nowMs, sinceBytes: 0 });
    this.#options.begun(zxid, this.#syncs.length);
  }

  #goOn(sync: SnapshotSync, nowMs: Millis): void {
    const { learner, source, zxid } = sync;
    const writer = this.#links.packets(learner.channel);
    const before = writer.offset;
    const isDone = source.next(writer, this.#options.sliceBytes);
    sync.movedMs = nowMs;
    sync.sinceBytes += writer.offset - before;
    this.#syncs.splice(this.#syncs.indexOf(sync), 1);
    if (isDone) {
      this.#options.sent(learner, zxid);
      return;
    }
    this.#syncs.push(sync);
    this.#options.stepEnded();
  }

  #judge(sync: SnapshotSync, nowMs: Millis): void {
    const fault = this.#faultOf(sync, nowMs);
    if (fault === undefined) return;
    this.#links.closeChannel(sync.learner.channel, fault);
    this.#end(sync);
  }

  /** Why it is cut off: it may come again, and is behind the others then. */
  #faultOf(sync: SnapshotSync, nowMs: Millis): string | undefined {
    const { rank, source, movedMs } = sync;
    if (source.isGivenUp) return 'it takes its snapshot more slowly than the tree changes: it may come again when there is less to write';
    if (rank === voter || !this.#isFull(sync)) return undefined;
    const { tickTimeMs } = this.#options;
    const stalledMs = nowMs - movedMs;
    if (stalledMs > stallTicks * tickTimeMs && this.#queue.some((learner) => rankOf(learner) === rank)) {
      return `others wait for a snapshot, and it has taken nothing of its own for ${stalledMs} ms`;
    }
    const forMs = nowMs - sync.sinceMs;
    if (forMs < speedTicks * tickTimeMs) return undefined;
    const bytesPerSecond = Math.floor((sync.sinceBytes * 1000) / forMs);
    sync.sinceMs = nowMs;
    sync.sinceBytes = 0;
    if (bytesPerSecond >= leastBytesPerSecond) return undefined;
    return `it takes ${bytesPerSecond} bytes of its snapshot in a second, and ${leastBytesPerSecond} is the least for one that does not vote`;
  }

  #isFull({ learner }: SnapshotSync): boolean {
    return this.#links.channelIsFull(learner.channel);
  }

  #end(sync: SnapshotSync): void {
    sync.source.abandon();
    // A new array, since whoever ends one may be going through them.
    this.#syncs = this.#syncs.filter((other) => other !== sync);
  }
}

export function rankOf({ isVoter, isMember }: LearnerSync): Rank {
  if (isVoter) return voter;
  return isMember ? observer : stranger;
}
