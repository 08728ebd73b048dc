/**
 * The last committed txns, kept in memory so that a learner that was away for a moment can be sent what it missed (ZKDatabase's
 * committedLog).
 *
 * The one thing that matters about it is that it has no hole: a learner that is sent txns out of a list with a hole has lost one for good,
 * and spreads the loss once it leads (ZOOKEEPER-4925). So every txn that is applied goes in, in order, also those a learner applies while
 * it is synchronised; what does not follow on the last one is a broken belief. And a learner that loses txns by TRUNC, or its whole history
 * by SNAP, loses them here as well (ZOOKEEPER-2845).
 */
import { counterOf, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { type Fingerprint, writeBytes } from '../fingerprint.ts';

export interface CommittedLogOptions {
  /** commitLogCount: how many txns are kept at most. */
  readonly countMax: number;
  /** How many bytes they may take together. The newest one is kept whatever it takes. */
  readonly bytesMax: number;
}

/**
 * commitLogCount is 500, and never less (ZKDatabase.DEFAULT_COMMIT_LOG_COUNT). The bound in bytes is ours: half of what may wait for a learner, which is
 * sent all of it at once, and then what is proposed.
 */
export const committedLogDefaults: CommittedLogOptions = { countMax: 500, bytesMax: 32 * 1024 * 1024 };

const capacityAtFirst = 16;

/**
 * Whether a txn may be the very next one: zxids grow by one, and an epoch begins with 1. 0 is taken too: ZooKeeper gives the error txn of a
 * request that it cannot read the zxid before it, and at the beginning of an epoch that is the epoch's own.
 *
 * The other way round this does not hold: between the last txn of one epoch and the first of a later one others may be missing, and no zxid
 * tells.
 */
export function mayFollow(previous: Zxid, zxid: Zxid): boolean {
  return zxid === previous + 1 || (epochOf(zxid) > epochOf(previous) && counterOf(zxid) <= 1);
}

export class CommittedLog {
  readonly #options: CommittedLogOptions;
  // A ring: txn i is at (#start + i) % capacity, in both.
  #zxids = new Float64Array(capacityAtFirst);
  #txns: (Buffer | undefined)[] = Array.from({ length: capacityAtFirst }, () => undefined);
  #start = 0;
  #length = 0;
  #bytes = 0;

  constructor(options: CommittedLogOptions) {
    this.#options = options;
  }

  /** How many txns are kept. */
  get length(): number {
    return this.#length;
  }

  /** What they take together, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The oldest txn kept; undefined when there is none. */
  get oldest(): Zxid | undefined {
    return this.#length === 0 ? undefined : this.#zxidAt(0);
  }

  /** The newest txn kept; undefined when there is none. */
  get newest(): Zxid | undefined {
    return this.#length === 0 ? undefined : this.#zxidAt(this.#length - 1);
  }

  /** The oldest txn kept. When there is none, that and the newest are taken to be the one applied last (LearnerHandler.syncFollower). */
  min(lastApplied: Zxid): Zxid {
    return this.oldest ?? lastApplied;
  }

  /** The newest txn kept, or the one applied last when none is. */
  max(lastApplied: Zxid): Zxid {
    return this.newest ?? lastApplied;
  }

  /**
   * Adds the txn that has just been committed: header, record and digest as they stand in the log. The bytes are kept, not copied: they must
   * be the caller's to give away. A txn with the zxid of the one before it is passed over, and the answer is false (see `mayFollow`).
   *
   * `settled`: how far both the tree and the log on disk are. A learner that is sent a snapshot of the tree, or what is in that log, gets the txns
   * after it from here: so the last one that is settled, and those after it, are kept whatever they take.
   *
   * Throws an `Error` when the txn is not the one after the newest.
   */
  append(zxid: Zxid, bytes: Buffer, settled: Zxid = Infinity): boolean {
    const { newest } = this;
    if (newest !== undefined) {
      if (zxid === newest) return false;
      if (!mayFollow(newest, zxid)) {
        throw new Error(`txn ${formatZxid(zxid)} was committed behind ${formatZxid(newest)}: those between are missing, or it comes again`);
      }
    }
    if (this.#length === this.#zxids.length) this.#grow();
    const at = this.#at(this.#length);
    this.#zxids[at] = zxid;
    this.#txns[at] = bytes;
    this.#length++;
    this.#bytes += bytes.length;
    while (this.#length > 1 && this.#isTooMuch && this.#zxidAt(1) <= settled) this.#dropOldest();
    return true;
  }

  /**
   * Adds a txn that was found in the log at start-up. Logs of ZooKeeper may hold txns whose zxid does not grow; recovery warns of them, and
   * here they are passed over.
   */
  restore(zxid: Zxid, bytes: Buffer): void {
    if (this.#length === 0 || zxid > this.#zxidAt(this.#length - 1)) this.append(zxid, bytes);
  }

  /** Forgets every txn above `zxid`: they have been cut off the log. */
  truncate(zxid: Zxid): void {
    const kept = this.#countUpTo(zxid);
    while (this.#length > kept) this.#take(--this.#length);
  }

  /** Forgets everything: another history has taken the place of this one. */
  clear(): void {
    this.truncate(-Infinity);
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    to.number(this.#length);
    for (let at = 0; at < this.#length; at++) {
      to.number(this.#zxidAt(at));
      writeBytes(to, this.#txns[this.#at(at)]!);
    }
  }

  /** Whether a txn with this zxid is kept. */
  has(zxid: Zxid): boolean {
    const count = this.#countUpTo(zxid);
    return count > 0 && this.#zxidAt(count - 1) === zxid;
  }

  /** The last txn up to `zxid`; undefined when none of those kept is. */
  lastUpTo(zxid: Zxid): Zxid | undefined {
    const count = this.#countUpTo(zxid);
    return count === 0 ? undefined : this.#zxidAt(count - 1);
  }

  /** The first txn above `zxid`; undefined when none of those kept is. */
  firstAbove(zxid: Zxid): Zxid | undefined {
    const count = this.#countUpTo(zxid);
    return count === this.#length ? undefined : this.#zxidAt(count);
  }

  /**
   * Whether every txn above `zxid` up to the newest is still kept. `zxid` is that of a txn that is or was kept, or of a learner between two of
   * them. The answer is yes for an empty log, which cannot tell; its owner compares `zxid` with the last committed txn. Below the oldest txn the
   * answer is no, even if no txn lies between: only a reader of the log on disk can know that.
   */
  reachesBackTo(zxid: Zxid): boolean {
    return this.#length === 0 || zxid >= this.#zxidAt(0);
  }

  /** Whether `forEachAbove` can show them. Between two zxids that follow each other there is no txn, though none before the oldest was ever here. */
  holdsAllAbove(zxid: Zxid): boolean {
    return this.reachesBackTo(zxid) || zxid === this.#zxidAt(0) - 1;
  }

  /**
   * Shows the txns above `zxid`, oldest first, for as long as `visit` returns true. Whoever has stopped goes on from the zxid seen last; in
   * between txns may come and go, which is why each call asks anew.
   *
   * Throws an `Error` when txns above `zxid` may have been let go; `holdsAllAbove` tells beforehand.
   */
  forEachAbove(zxid: Zxid, visit: (zxid: Zxid, bytes: Buffer) => boolean): void {
    if (!this.holdsAllAbove(zxid)) {
      throw new Error(
        `the committed txns in memory begin at ${formatZxid(this.#zxidAt(0))}: those above ${formatZxid(zxid)} are not all here`,
      );
    }
    for (let i = this.#countUpTo(zxid); i < this.#length; i++) {
      const at = this.#at(i);
      if (!visit(this.#zxids[at]!, this.#txns[at]!)) return;
    }
  }

  get #isTooMuch(): boolean {
    return this.#length > this.#options.countMax || this.#bytes > this.#options.bytesMax;
  }

  #at(index: number): number {
    return (this.#start + index) % this.#zxids.length;
  }

  #zxidAt(index: number): Zxid {
    return this.#zxids[this.#at(index)]!;
  }

  /** How many txns have a zxid of at most that, by halving. */
  #countUpTo(zxid: Zxid): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#zxidAt(middle) <= zxid) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Lets go of the bytes of a txn. */
  #take(index: number): void {
    const at = this.#at(index);
    this.#bytes -= this.#txns[at]!.length;
    this.#txns[at] = undefined;
  }

  #dropOldest(): void {
    this.#take(0);
    this.#start = this.#at(1);
    this.#length--;
  }

  #grow(): void {
    const zxids = new Float64Array(this.#length * 2);
    const txns: (Buffer | undefined)[] = Array.from({ length: zxids.length }, () => undefined);
    for (let i = 0; i < this.#length; i++) {
      zxids[i] = this.#zxidAt(i);
      txns[i] = this.#txns[this.#at(i)];
    }
    this.#zxids = zxids;
    this.#txns = txns;
    this.#start = 0;
  }
}
