/**
 * The items of one znode as they were listed last, and what is left of the list. ZooKeeper's page, "Queues" and "Priority Queues":
 *
 *     getChildren            1. who is there? the lowest first
 *     work off the list      2. without listing again before it is used up
 *     used up                3. 1. again, once: by now there may be others
 *     nothing                4. with a watch, and wait for it: 1. again
 *
 * The page has the watch set by each list. So whoever works, or has just found the queue empty, is told of each item that somebody else puts or takes: all are woken, for
 * nothing. Here only who waits sets it, which is one at a time (consumers.ts), and when the wait is over the watch is.
 *
 * Where the order is by more than the number (`drops`), what comes later may come first, so a list serves for one look only, and no longer than until the watch fires.
 */
import { type ClientView, KeeperError, type WatchListener } from '@tskeeper/client';
import { unlessAborted } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { inOrder, type ItemName, type ItemNames } from './item-names.ts';

interface Listing {
  readonly watches: boolean;
  readonly over: Promise<void>;
}

export class ItemList {
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #names: Pick<ItemNames<never>, 'read'>;
  readonly #drops: boolean;
  readonly #waiting = new Set<() => void>();
  /** Paths with a watch of this list: that of the queue, and that of the claims. */
  readonly #watched = new Set<string>();
  #left: ItemName[] = [];
  #length = 0;
  #isCurrent = false;
  #listing: Listing | undefined;

  constructor(zk: ClientView, path: string, names: Pick<ItemNames<never>, 'read'>, drops: boolean) {
    this.#zk = zk;
    this.#path = path;
    this.#names = names;
    this.#drops = drops;
  }

  /** Takes the next to be tried out of the list; undefined when all have been tried, but for those whose rank is above `rankMax`. */
  next(rankMax = Infinity): ItemName | undefined {
    const [first] = this.#left;
    return first !== undefined && first.rank <= rankMax ? this.#left.shift() : undefined;
  }

  /** Of the one that comes next, and has not been tried. */
  get nextRank(): number | undefined {
    return this.#left[0]?.rank;
  }

  /** Whether nothing has happened since it was listed with a watch. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  /** Whether it may be worked off as it is. */
  get isUsable(): boolean {
    return this.#isCurrent || !this.#drops;
  }

  /** How many were there when they were listed last, which is done if there may be others now. */
  async length(signal: AbortSignal): Promise<number> {
    if (!this.#isCurrent) await this.refresh(true, signal);
    return this.#length;
  }

  /** Something that is there is not in the list. */
  readonly outdate = (): void => {
    this.#isCurrent = false;
    for (const callback of this.#waiting) callback();
  };

  /** Something that was taken out of the list is still there, in its old place. */
  drop(): void {
    this.#left = [];
    this.outdate();
  }

  /** Calls back as soon as there may be something new, at once if that is so; returns how to take that back. */
  whenOutdated(callback: () => void): () => void {
    this.#waiting.add(callback);
    if (!this.#isCurrent) callback();
    return () => this.#waiting.delete(callback);
  }

  /** Lists them. One listing serves all who ask for it meanwhile. With a watch the list is current until that fires. */
  async refresh(watches: boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (watches) while (this.#listing?.watches === false) await unlessAborted(this.#listing.over, signal);
    this.#listing ??= this.#begin(watches);
    await unlessAborted(this.#listing.over, signal);
  }

  #begin(watches: boolean): Listing {
    const over = this.#list(watches);
    const listing = { watches, over };
    const end = () => {
      if (this.#listing === listing) this.#listing = undefined;
    };
    // Whoever asked for it may have given up by then.
    over.then(end, end);
    return listing;
  }

  /** The options of a read that is to tell this list, if it is to. */
  watching(path: string, watches: boolean): { readonly watch?: WatchListener } {
    if (!watches) return {};
    this.#watched.add(path);
    return { watch: this.#onEvent };
  }

  /** Nobody waits any more, and nothing is heard. */
  unwatch(): void {
    for (const path of this.#watched) this.#forget(path);
    this.#watched.clear();
    // What is under way goes on, and serves nobody (`#list`).
    if (this.#listing?.watches === true) this.#listing = undefined;
    this.outdate();
  }

  #forget(path: string): void {
    this.#zk.removeWatches(path, { watch: this.#onEvent, local: true }).catch(() => undefined);
  }

  readonly #onEvent: WatchListener = ({ type, path }) => {
    // The loss of a connection says nothing of the items: what is missed by it is told by the next one.
    if (type === 'None' && this.#zk.closedBecause === undefined) return;
    if (path !== null) this.#watched.delete(path);
    this.outdate();
  };

  async #list(watches: boolean): Promise<void> {
    // Ahead of the request, since an event may be told before the answer has been looked at.
    this.#isCurrent = watches;
    try {
      const names = await this.#children(watches);
      // It has been set behind `unwatch`.
      if (watches && !this.#watched.has(this.#path)) this.#forget(this.#path);
      const items: ItemName[] = [];
      for (const name of names) {
        const item = this.#names.read(name);
        if (item !== undefined) items.push(item);
      }
      this.#left = items.sort(inOrder);
      this.#length = items.length;
    } catch (error) {
      this.#isCurrent = false;
      throw error;
    }
  }

  async #children(watches: boolean): Promise<readonly string[]> {
    const options = { ...untilTheEnd, ...this.watching(this.#path, watches) };
    for (;;) {
      try {
        return (await this.#zk.getChildren(this.#path, options)).children;
      } catch (error) {
        if (!KeeperError.is(error, 'NoNode')) throw error;
      }
      if (!watches || (await this.#zk.exists(this.#path, options)) === null) return [];
    }
  }
}
