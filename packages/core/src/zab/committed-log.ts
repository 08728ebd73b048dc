/**
 * The last committed txns, kept in memory for learners that were disconnected briefly (ZKDatabase's
 * committedLog).
 *
 * It must have no hole: a learner that is sent txns from a list with a hole loses one for good, and
 * spreads the loss once it leads (ZOOKEEPER-4925). So every txn that is applied is added, in order,
 * including those that a learner applies while it is synchronised; a txn that does not follow the
 * last one is a broken belief. A learner that loses txns by TRUNC, or its whole history by SNAP,
 * removes them here as well (ZOOKEEPER-2845).
 */
import { counterOf, epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';

export interface CommittedLogOptions {
  /** commitLogCount: the maximum number of txns. */
  readonly countMax: number;
  /** The maximum of their total size. The newest is kept whatever its size. */
  readonly bytesMax: number;
}

/**
 * commitLogCount is 500, and never less (ZKDatabase.DEFAULT_COMMIT_LOG_COUNT). The limit in bytes
 * is ours: half of what may wait for a learner, which is sent all of it at once, and then the
 * proposals.
 */
export const committedLogDefaults: CommittedLogOptions = { countMax: 500, bytesMax: 32 * 1024 * 1024 };

const capacityAtFirst = 16;

/**
 * Whether a txn may follow `previous` directly: zxids increase by one, and an epoch begins with 1.
 * 0 is accepted too: ZooKeeper gives the error txn of a malformed request the zxid before it, which
 * at the beginning of an epoch is the epoch's own.
 *
 * True does not mean that no txn is missing: between the last txn of an epoch and the first of a
 * later one, zxids do not show a gap.
 */
export function isPossibleSuccessor(previous: Zxid, zxid: Zxid): boolean {
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

  /** The number of txns kept. */
  get length(): number {
    return this.#length;
  }

  /** Their total size in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The oldest txn kept; undefined if there is none. */
  get oldest(): Zxid | undefined {
    return this.#length === 0 ? undefined : this.#zxidAt(0);
  }

  /** The newest txn kept; undefined if there is none. */
  get newest(): Zxid | undefined {
    return this.#length === 0 ? undefined : this.#zxidAt(this.#length - 1);
  }

  /**
   * The oldest txn kept. Without one, both this and the newest are the txn applied last
   * (LearnerHandler.syncFollower).
   */
  min(lastApplied: Zxid): Zxid {
    return this.oldest ?? lastApplied;
  }

  /** The newest txn kept, or the one applied last if there is none. */
  max(lastApplied: Zxid): Zxid {
    return this.newest ?? lastApplied;
  }

  /**
   * Adds the txn that has just been committed: header, record and digest as in the log. The bytes
   * are kept, not copied: the caller gives up ownership. A txn with the zxid of the one before it
   * is skipped, and the result is false (see `isPossibleSuccessor`).
   *
   * `persistedZxid`: the zxid that both the tree and the log on disk have reached. A learner that
   * is sent a snapshot of the tree, or txns from that log, gets the later txns from here: so the
   * txn at `persistedZxid`, and those after it, are kept whatever their size.
   *
   * Throws an `Error` if the txn does not follow the newest.
   */
  append(zxid: Zxid, bytes: Buffer, persistedZxid: Zxid = Infinity): boolean {
    const { newest } = this;
    if (newest !== undefined) {
      if (zxid === newest) return false;
      if (!isPossibleSuccessor(newest, zxid)) {
        throw new Error(
          `txn ${formatZxid(zxid)} was committed after ${formatZxid(newest)}: txns between are missing, or it is a duplicate`,
        );
      }
    }
    if (this.#length === this.#zxids.length) this.#grow();
    const at = this.#at(this.#length);
    this.#zxids[at] = zxid;
    this.#txns[at] = bytes;
    this.#length++;
    this.#bytes += bytes.length;
    while (this.#length > 1 && this.#exceedsLimits && this.#zxidAt(1) <= persistedZxid) this.#dropOldest();
    return true;
  }

  /**
   * Adds a txn that was found in the log at start-up. Logs of ZooKeeper may contain txns whose zxid
   * does not increase; recovery warns of them, and they are skipped here.
   */
  restore(zxid: Zxid, bytes: Buffer): void {
    if (this.#length === 0 || zxid > this.#zxidAt(this.#length - 1)) this.append(zxid, bytes);
  }

  /** Removes every txn above `zxid`: they have been truncated from the log. */
  truncate(zxid: Zxid): void {
    const kept = this.#countUpTo(zxid);
    while (this.#length > kept) this.#clearSlot(--this.#length);
  }

  /** Removes all txns: another history has replaced this one. */
  clear(): void {
    this.truncate(-Infinity);
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    to.number(this.#length);
    for (let at = 0; at < this.#length; at++) {
      to.number(this.#zxidAt(at));
      fingerprintBytes(to, this.#txns[this.#at(at)]!);
    }
  }

  /** Whether a txn with this zxid is kept. */
  has(zxid: Zxid): boolean {
    const count = this.#countUpTo(zxid);
    return count > 0 && this.#zxidAt(count - 1) === zxid;
  }

  /** The last txn kept with at most this zxid; undefined if there is none. */
  lastUpTo(zxid: Zxid): Zxid | undefined {
    const count = this.#countUpTo(zxid);
    return count === 0 ? undefined : this.#zxidAt(count - 1);
  }

  /** The first txn kept above `zxid`; undefined if there is none. */
  firstAbove(zxid: Zxid): Zxid | undefined {
    const count = this.#countUpTo(zxid);
    return count === this.#length ? undefined : this.#zxidAt(count);
  }

  /**
   * Whether every txn above `zxid` up to the newest is still kept. `zxid` is that of a txn that is
   * or was kept, or of a learner between two of them. True for an empty log; its owner compares
   * `zxid` with the last committed txn. Below the oldest txn the result is false, even if no txn
   * lies between: only a reader of the log on disk can know that.
   */
  reachesBackTo(zxid: Zxid): boolean {
    return this.#length === 0 || zxid >= this.#zxidAt(0);
  }

  /**
   * Whether `forEachAbove` can visit them. Between two consecutive zxids there is no txn, so the
   * one before the oldest is accepted too, though its txn was never here.
   */
  hasAllAbove(zxid: Zxid): boolean {
    return this.reachesBackTo(zxid) || zxid === this.#zxidAt(0) - 1;
  }

  /**
   * Visits the txns above `zxid`, oldest first, while `visit` returns true. To continue later, call
   * it with the last zxid visited; txns may be added and removed in between.
   *
   * Throws an `Error` if txns above `zxid` may have been removed; check `hasAllAbove` first.
   */
  forEachAbove(zxid: Zxid, visit: (zxid: Zxid, bytes: Buffer) => boolean): void {
    if (!this.hasAllAbove(zxid)) {
      throw new Error(`the committed txns in memory start at ${formatZxid(this.#zxidAt(0))}: some above ${formatZxid(zxid)} are missing`);
    }
    for (let i = this.#countUpTo(zxid); i < this.#length; i++) {
      const at = this.#at(i);
      if (!visit(this.#zxids[at]!, this.#txns[at]!)) return;
    }
  }

  get #exceedsLimits(): boolean {
    return this.#length > this.#options.countMax || this.#bytes > this.#options.bytesMax;
  }

  #at(index: number): number {
    return (this.#start + index) % this.#zxids.length;
  }

  #zxidAt(index: number): Zxid {
    return this.#zxids[this.#at(index)]!;
  }

  /** The number of txns with at most this zxid, by binary search. */
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

  /** Releases the bytes of a txn. */
  #clearSlot(index: number): void {
    const at = this.#at(index);
    this.#bytes -= this.#txns[at]!.length;
    this.#txns[at] = undefined;
  }

  #dropOldest(): void {
    this.#clearSlot(0);
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
