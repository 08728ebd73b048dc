/**
 * The events that a watch loop has not taken yet: changes in the order in which servers sent them,
 * and a `Reread` where some are missing. The queue is bounded; when it is full, one `Reread`
 * replaces everything in it.
 *
 * A `Reread` that has not been taken covers everything that is missing until it is taken, as the
 * program reads after that.
 */
import { Fifo } from '../fifo.ts';
import type { ChangeType } from '../watched-event.ts';

/** A change of a znode, as a watch loop delivers it. */
export interface ZnodeChange<Type extends ChangeType = ChangeType> {
  /** What happened. */
  readonly type: Type;
  /** The path without the chroot: the watched path, or one below it if the loop is recursive. */
  readonly path: string;
  /**
   * The txn that changed the znode, the same for all changes of one `multi`. undefined if the
   * server does not send it: before ZooKeeper 3.9, and for what a one-shot watch on the same znode
   * has missed.
   */
  readonly zxid: bigint | undefined;
}

/**
 * Changes may be missing here: read the current state now. It has neither path nor zxid, so that a
 * loop that treats it as a change does not compile.
 */
export interface Reread {
  readonly type: 'Reread';
  /**
   * - `started`: the first event of every loop. The watch is set; the loop delivers everything that
   *   a read from now on does not see.
   * - `reconnected`: the connection was lost for a while. The watch is set again; servers do not
   *   report what a persistent watch has missed.
   * - `overflowed`: more than `maxQueuedEvents` events were not taken.
   */
  readonly cause: 'started' | 'reconnected' | 'overflowed';
  /**
   * Changes up to this txn have been delivered: data and children of a znode with a smaller or
   * equal `mzxid` and `pzxid` have not changed. undefined if this is not known: at the start, and
   * for `overflowed` with servers before ZooKeeper 3.9.
   */
  readonly since: bigint | undefined;
  /** Number of changes that had arrived and were dropped; 0 unless the queue was full. */
  readonly dropped: number;
}

type Item = ZnodeChange | Reread;

export class ChangeQueue {
  readonly #maxEvents: number;
  readonly #items = new Fifo<Item>();
  /** The last item, if it is a Reread. */
  #lastReread: Reread | undefined;
  /** The only item of the queue; stands for everything that was dropped. */
  #overflowReread: { -readonly [Key in keyof Reread]: Reread[Key] } | undefined;

  constructor(max: number) {
    this.#maxEvents = max;
  }

  get length(): number {
    return this.#items.length;
  }

  push(change: ZnodeChange): void {
    if (this.#overflowReread !== undefined) {
      this.#overflowReread.dropped++;
    } else if (this.#items.length === this.#maxEvents) {
      this.#dropAll(1);
    } else {
      this.#items.push(change);
      this.#lastReread = undefined;
    }
  }

  reread(cause: Reread['cause'], since: bigint | undefined): void {
    if (this.#lastReread !== undefined) return;
    if (this.#items.length === this.#maxEvents) {
      this.#dropAll(0);
    } else {
      this.#lastReread = { type: 'Reread', cause, since, dropped: 0 };
      this.#items.push(this.#lastReread);
    }
  }

  shift(): Item | undefined {
    const item = this.#items.shift();
    if (item === this.#lastReread) this.#lastReread = this.#overflowReread = undefined;
    return item;
  }

  clear(): void {
    this.#items.clear();
    this.#lastReread = this.#overflowReread = undefined;
  }

  #dropAll(more: number): void {
    const first = this.#items.peek()!;
    let dropped = more;
    for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift()) if (item.type !== 'Reread') dropped++;
    const { cause, since } = first.type === 'Reread' ? first : { cause: 'overflowed' as const, since: zxidBefore(first.zxid) };
    this.#lastReread = this.#overflowReread = { type: 'Reread', cause, since, dropped };
    this.#items.push(this.#lastReread);
  }
}

/** Other changes of the same txn may be among the dropped ones. */
function zxidBefore(zxid: bigint | undefined): bigint | undefined {
  return zxid === undefined ? undefined : zxid - 1n;
}
