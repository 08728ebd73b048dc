/**
 * What a watch loop has not been asked for yet: changes in the order in which servers told them, and requests to read again where some are
 * missing. It is bounded; when it is full, one such request takes the place of everything in it.
 *
 * A `Reread` that has not been taken stands for whatever comes to be missing until it is: the program reads later than that.
 */
import { Fifo } from '../session/fifo.ts';
import type { ChangeType } from '../watched-event.ts';

/** A change of a znode, as a watch loop tells it. */
export interface ZnodeChange<Type extends ChangeType = ChangeType> {
  /** What has happened. */
  readonly type: Type;
  /** Without the chroot. Below the watched path, when the loop is recursive; the watched path otherwise. */
  readonly path: string;
  /**
   * The txn that changed the znode, the same for all changes of one `multi`. undefined when the server does not say: before ZooKeeper 3.9,
   * and for what a one-shot watch on the same znode has missed.
   */
  readonly zxid: bigint | undefined;
}

/**
 * Changes may be missing here: read what you care about, now. It has neither path nor zxid, so that a loop which treats it as a change
 * does not compile.
 */
export interface Reread {
  readonly type: 'Reread';
  /**
   * - `started`: the first event of every loop. The watch is set; what a read from here on does not see is told.
   * - `reconnected`: there was no connection for a while. The watch is set again, and servers do not tell what a watch that stays has missed.
   * - `overflowed`: more than `maxQueuedEvents` had not been taken.
   */
  readonly because: 'started' | 'reconnected' | 'overflowed';
  /**
   * Changes up to this txn have been told: what has an `mzxid` and a `pzxid` no greater is as it was, data and children. undefined when
   * nothing of the kind is known: at the start, and for `overflowed` with servers before ZooKeeper 3.9.
   */
  readonly since: bigint | undefined;
  /** How many changes had arrived and were dropped; 0 unless the queue was full. */
  readonly dropped: number;
}

type Item = ZnodeChange | Reread;

export class ChangeQueue {
  readonly #max: number;
  readonly #items = new Fifo<Item>();
  /** The last item, if it is a Reread. */
  #tail: Reread | undefined;
  /** Stands alone in the queue, for everything that had to be dropped. */
  #overflow: { -readonly [Key in keyof Reread]: Reread[Key] } | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get length(): number {
    return this.#items.length;
  }

  push(change: ZnodeChange): void {
    if (this.#overflow !== undefined) {
      this.#overflow.dropped++;
    } else if (this.#items.length === this.#max) {
      this.#spill(1);
    } else {
      this.#items.push(change);
      this.#tail = undefined;
    }
  }

  reread(because: Reread['because'], since: bigint | undefined): void {
    if (this.#tail !== undefined) return;
    if (this.#items.length === this.#max) {
      this.#spill(0);
    } else {
      this.#tail = { type: 'Reread', because, since, dropped: 0 };
      this.#items.push(this.#tail);
    }
  }

  shift(): Item | undefined {
    const item = this.#items.shift();
    if (item === this.#tail) this.#tail = this.#overflow = undefined;
    return item;
  }

  clear(): void {
    this.#items.clear();
    this.#tail = this.#overflow = undefined;
  }

  #spill(more: number): void {
    const first = this.#items.peek()!;
    let dropped = more;
    for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift()) if (item.type !== 'Reread') dropped++;
    const { because, since } = first.type === 'Reread' ? first : { because: 'overflowed' as const, since: before(first.zxid) };
    this.#tail = this.#overflow = { type: 'Reread', because, since, dropped };
    this.#items.push(this.#tail);
  }
}

/** Others of the same txn may have been dropped along. */
function before(zxid: bigint | undefined): bigint | undefined {
  return zxid === undefined ? undefined : zxid - 1n;
}
