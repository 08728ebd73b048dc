/**
 * The last txns of a log, kept while it is replayed: a leader sends them to a follower that has
 * missed a little (ZooKeeper's committedLog) without reading the disk again.
 *
 * They are a contiguous piece of history that ends with the last txn of the state. If a snapshot
 * goes further than the log before it, the txns gathered until then are dropped: a list with a hole
 * would spread the hole (ZOOKEEPER-2418, ZOOKEEPER-4925).
 */
import type { LogEntry } from '@tskeeper/core/internal';
import type { Zxid } from '@tskeeper/protocol';
import { isContiguous } from './log-order.ts';

export interface RecentTxnsLimits {
  /** zookeeper.commitLogCount */
  readonly count: number;
  /** Limit of their bytes together; the last txn alone may be larger. */
  readonly bytes: number;
}

export class RecentTxns {
  readonly #limits: RecentTxnsLimits;
  readonly #snapshots: readonly Zxid[];
  #txns: LogEntry[] = [];
  /** Txns before this index are dropped; the array is trimmed now and then. */
  #first = 0;
  #bytes = 0;

  /** `snapshots` are the zxids of all snapshots in the folder. */
  constructor(limits: RecentTxnsLimits, snapshots: readonly Zxid[]) {
    this.#limits = limits;
    this.#snapshots = snapshots;
  }

  /** Copies the bytes [start, end). */
  add(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    if (this.#limits.count <= 0) return;
    const last = this.#txns.at(-1);
    if (last !== undefined && !isContiguous(last.zxid, zxid, this.#snapshots)) this.#clear();
    this.#txns.push({ zxid, bytes: Buffer.from(bytes.subarray(start, end)) });
    this.#bytes += end - start;
    while (this.#count > this.#limits.count || (this.#bytes > this.#limits.bytes && this.#count > 1)) {
      this.#bytes -= this.#txns[this.#first++]!.bytes.length;
    }
    if (this.#first > this.#limits.count) {
      this.#txns = this.#txns.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Those up to `lastZxid`, the last txn of the state; none when the log ends before it. */
  upTo(lastZxid: Zxid): readonly LogEntry[] {
    return this.#txns.at(-1)?.zxid === lastZxid ? this.#txns.slice(this.#first) : [];
  }

  get #count(): number {
    return this.#txns.length - this.#first;
  }

  #clear(): void {
    this.#txns = [];
    this.#first = this.#bytes = 0;
  }
}
