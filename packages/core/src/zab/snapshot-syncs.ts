/**
 * Sends SNAP to learners, several at once, each its own snapshot of the tree, slice by slice.
 *
 * A quorum may need a voter, while any process may claim to be an observer. So the snapshot of a
 * voter begins at once and waits for no other learner's; observers of the configuration are served
 * a limited number at a time, as in ZooKeeper (leader.maxConcurrentSnapSyncs); and observers
 * outside the configuration come last, two at a time. No learner waits for one of a lower rank. A
 * learner that does not vote must read at a minimum speed, since changes are kept for it meanwhile
 * (tree/snapshot-walk.ts), and since others of its rank may wait.
 */
import { type Millis, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Observer } from '../observer.ts';
import type { Replica } from '../request/replica.ts';
import type { SnapshotWriter } from '../snapshot/snapshot-writer.ts';
import type { CommittedLog } from './committed-log.ts';
import type { SyncTarget } from './sync-target.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

/** Is notified of how learners are synchronised. */
export type SyncObserver = Pick<Observer, 'learnerSyncStarted' | 'limitReached' | 'stepYielded'>;

export interface SnapshotSyncsOptions {
  readonly tickTimeMs: Millis;
  /** How many observers of the configuration are served at a time. */
  readonly observersMax: number;
  /** Bytes of a snapshot per step. */
  readonly sliceBytes: number;
  readonly observer: SyncObserver;
  /** A learner has been sent a whole snapshot of `zxid`. */
  readonly onSent: (learner: SyncTarget, zxid: Zxid) => void;
}

/** Lower numbers come first. */
const [voter, observer, stranger] = [0, 1, 2] as const;
type Rank = typeof voter | typeof observer | typeof stranger;

interface SnapshotSync {
  readonly learner: SyncTarget;
  readonly rank: Rank;
  readonly writer: SnapshotWriter;
  readonly zxid: Zxid;
  /** When it was last sent a slice. */
  lastSliceMs: Millis;
  /** When the count in `rateBytes` began. */
  rateSinceMs: Millis;
  /** Bytes sent since `rateSinceMs`, for its speed. */
  rateBytes: number;
}

const unknownObserverSyncsMax = 2;
/** How long a learner that reads nothing may keep others of its rank waiting. */
const stallTicks = 2;
/** The minimum speed of a learner that does not vote, as an average over this many ticks. */
const bytesPerSecondMin = 32 * 1024;
const speedTicks = 5;
/**
 * Limit of the changes kept for a learner that reads more slowly than the tree changes; a voter
 * that exceeds it could not follow either.
 */
const voterPreservedBytesMax = 64 * 1024 * 1024;
const otherPreservedBytesMax = 16 * 1024 * 1024;

export class SnapshotSyncs {
  readonly #options: SnapshotSyncsOptions;
  readonly #links: QuorumLinks;
  readonly #replica: Replica;
  readonly #committed: CommittedLog;
  /** Waiting learners, by rank, and by arrival within a rank. */
  #queue: SyncTarget[] = [];
  /** Learners being sent a snapshot; the one served last is at the end. */
  #syncs: SnapshotSync[] = [];

  constructor(options: SnapshotSyncsOptions, replica: Replica, committed: CommittedLog, links: QuorumLinks) {
    this.#options = options;
    this.#replica = replica;
    this.#committed = committed;
    this.#links = links;
  }

  add(learner: SyncTarget): void {
    const rank = rankOf(learner);
    const before = this.#queue.findIndex((other) => rankOf(other) > rank);
    if (before === -1) this.#queue.push(learner);
    else this.#queue.splice(before, 0, learner);
  }

  /** The learner has disconnected. */
  remove(channel: ChannelId): void {
    this.#queue = this.#queue.filter((learner) => learner.channel !== channel);
    const sync = this.#syncs.find(({ learner }) => learner.channel === channel);
    if (sync !== undefined) this.#end(sync);
  }

  stop(): void {
    this.#queue = [];
    for (const { writer } of this.#syncs) writer.abandon();
    this.#syncs = [];
  }

  /** The number of snapshots being sent. */
  get activeCount(): number {
    return this.#syncs.length;
  }

  /** Whether there is work now. `isBusy`: a txn is partly applied. */
  hasWork(isBusy: boolean): boolean {
    if (!isBusy && this.#next() !== undefined) return true;
    let isReady = false;
    // All are asked, since a full channel reports room only after `channelIsFull` was true.
    for (const sync of this.#syncs) isReady = sync.writer.isAborted || !this.#isFull(sync) || isReady;
    return isReady;
  }

  /** Begins a snapshot that can begin, and sends a slice of one in progress. */
  wake(isBusy: boolean, nowMs: Millis): void {
    for (const sync of this.#syncs) this.#checkProgress(sync, nowMs);
    const next = isBusy ? undefined : this.#next();
    if (next !== undefined) this.#begin(next, nowMs);
    let ready: SnapshotSync | undefined;
    for (const sync of this.#syncs) {
      if ((ready === undefined || sync.rank < ready.rank) && !this.#isFull(sync)) ready = sync;
    }
    if (ready !== undefined) this.#sendSlice(ready, nowMs);
  }

  /**
   * Everything that can influence behaviour, for an explorer. Throws an `Error` while a snapshot is
   * partly sent.
   */
  fingerprint(to: Fingerprint): void {
    if (this.#syncs.length > 0) throw new Error('a partly sent snapshot has no fingerprint');
    to.number(this.#queue.length);
    for (const { channel, lastZxid } of this.#queue) {
      to.number(channel);
      to.number(lastZxid);
    }
  }

  /** The next learner whose snapshot can begin. */
  #next(): SyncTarget | undefined {
    return this.#queue.find((learner) => this.#hasRoomFor(rankOf(learner)));
  }

  #hasRoomFor(rank: Rank): boolean {
    if (rank === voter) return true;
    const most = rank === observer ? this.#options.observersMax : unknownObserverSyncsMax;
    let count = 0;
    for (const sync of this.#syncs) if (sync.rank === rank) count++;
    if (count < most) return true;
    this.#options.observer.limitReached('snapSyncsMax');
    return false;
  }

  #begin(learner: SyncTarget, nowMs: Millis): void {
    this.#queue.splice(this.#queue.indexOf(learner), 1);
    const zxid = this.#replica.lastZxid;
    writeEmptyPacket(this.#links.packets(learner.channel), PacketType.SNAP, zxid);
    const rank = rankOf(learner);
    const writer = this.#replica.snapshotStream(rank === voter ? voterPreservedBytesMax : otherPreservedBytesMax);
    this.#syncs.push({ learner, rank, writer, zxid, lastSliceMs: nowMs, rateSinceMs: nowMs, rateBytes: 0 });
    this.#options.observer.learnerSyncStarted('snap', 'tree', this.#syncs.length, (this.#committed.newest ?? 0) > zxid);
  }

  #sendSlice(sync: SnapshotSync, nowMs: Millis): void {
    const { learner, writer, zxid } = sync;
    const output = this.#links.packets(learner.channel);
    const before = output.offset;
    const isDone = writer.next(output, this.#options.sliceBytes);
    sync.lastSliceMs = nowMs;
    sync.rateBytes += output.offset - before;
    this.#syncs.splice(this.#syncs.indexOf(sync), 1);
    if (isDone) {
      this.#options.onSent(learner, zxid);
      return;
    }
    this.#syncs.push(sync);
    this.#options.observer.stepYielded('sync');
  }

  #checkProgress(sync: SnapshotSync, nowMs: Millis): void {
    const fault = this.#failureOf(sync, nowMs);
    if (fault === undefined) return;
    this.#links.closeChannel(sync.learner.channel, 'snapshot read too slowly', fault);
    this.#end(sync);
  }

  /** Why it is disconnected: it may reconnect, and is then queued after the others. */
  #failureOf(sync: SnapshotSync, nowMs: Millis): string | undefined {
    const { rank, writer, lastSliceMs } = sync;
    if (writer.isAborted)
      return 'the learner reads its snapshot more slowly than the tree changes: it can reconnect when fewer writes arrive';
    if (rank === voter || !this.#isFull(sync)) return undefined;
    const { tickTimeMs } = this.#options;
    const stalledMs = nowMs - lastSliceMs;
    if (stalledMs > stallTicks * tickTimeMs && this.#queue.some((learner) => rankOf(learner) === rank)) {
      return `other learners wait for a snapshot, but this one has read nothing of its own for ${stalledMs} ms`;
    }
    const forMs = nowMs - sync.rateSinceMs;
    if (forMs < speedTicks * tickTimeMs) return undefined;
    const bytesPerSecond = Math.floor((sync.rateBytes * 1000) / forMs);
    sync.rateSinceMs = nowMs;
    sync.rateBytes = 0;
    if (bytesPerSecond >= bytesPerSecondMin) return undefined;
    return `the learner reads its snapshot at ${bytesPerSecond} bytes per second; a learner that does not vote must reach ${bytesPerSecondMin}`;
  }

  #isFull({ learner }: SnapshotSync): boolean {
    return this.#links.channelIsFull(learner.channel);
  }

  #end(sync: SnapshotSync): void {
    sync.writer.abandon();
    // A new array, since the caller may be iterating over it.
    this.#syncs = this.#syncs.filter((other) => other !== sync);
  }
}

export function rankOf({ isVoter, isMember }: SyncTarget): Rank {
  if (isVoter) return voter;
  return isMember ? observer : stranger;
}
