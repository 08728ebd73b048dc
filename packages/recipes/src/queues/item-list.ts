/**
 * The items of one znode as last listed, and the rest of that list. ZooKeeper's page, "Queues" and
 * "Priority Queues":
 *
 *     getChildren            1. which items are there? the lowest first
 *     work through the list  2. without listing again before it is used up
 *     used up                3. 1. again, once: by now there may be more
 *     nothing                4. with a watch, and wait for it: 1. again
 *
 * On the page each listing sets the watch. So a consumer that works, or has just found the queue
 * empty, receives an event for each item that another client puts or takes: all are woken for
 * nothing. Here only the waiting consumer sets it, one at a time (consumers.ts), and removes it
 * when the wait ends.
 *
 * If the order does not depend on the number alone (`drops`), a later item may come first, so a
 * list serves one look only, and no longer than until the watch fires.
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
  /** Paths with a watch of this list: the queue, and the claims. */
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

  /**
   * Removes the next item to be tried from the list; undefined when all have been tried, except
   * those whose rank is above `rankMax`.
   */
  next(rankMax = Infinity): ItemName | undefined {
    const [first] = this.#left;
    return first !== undefined && first.rank <= rankMax ? this.#left.shift() : undefined;
  }

  /** The rank of the next item, which has not been tried. */
  get nextRank(): number | undefined {
    return this.#left[0]?.rank;
  }

  /** Whether there was no event since it was listed with a watch. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  /** Whether it may be worked through as it is. */
  get isUsable(): boolean {
    return this.#isCurrent || !this.#drops;
  }

  /** How many items there were when last listed. Lists again if there may be more now. */
  async length(signal: AbortSignal): Promise<number> {
    if (!this.#isCurrent) await this.refresh(true, signal);
    return this.#length;
  }

  /** An item exists that is not in the list. */
  readonly outdate = (): void => {
    this.#isCurrent = false;
    for (const callback of this.#waiting) callback();
  };

  /** An item that was removed from the list still exists, in its old place. */
  drop(): void {
    this.#left = [];
    this.outdate();
  }

  /**
   * Calls back when there may be something new, at once if that is so; returns a function that
   * removes the callback.
   */
  whenOutdated(callback: () => void): () => void {
    this.#waiting.add(callback);
    if (!this.#isCurrent) callback();
    return () => this.#waiting.delete(callback);
  }

  /**
   * Lists the items. Concurrent callers share one listing. With a watch the list is current until
   * that fires.
   */
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
    // All callers may have given up by then.
    over.then(end, end);
    return listing;
  }

  /** The options of a read; with `watches` its events go to this list. */
  watching(path: string, watches: boolean): { readonly watch?: WatchListener } {
    if (!watches) return {};
    this.#watched.add(path);
    return { watch: this.#onEvent };
  }

  /** Removes the watches: no caller waits any more. */
  unwatch(): void {
    for (const path of this.#watched) this.#forget(path);
    this.#watched.clear();
    // A listing in progress continues without effect (`#list`).
    if (this.#listing?.watches === true) this.#listing = undefined;
    this.outdate();
  }

  #forget(path: string): void {
    this.#zk.removeWatches(path, { watch: this.#onEvent, local: true }).catch(() => undefined);
  }

  readonly #onEvent: WatchListener = ({ type, path }) => {
    // The loss of a connection says nothing about the items: after a reconnect the client sets the
    // watch again, and an event that was missed follows.
    if (type === 'None' && this.#zk.closedBecause === undefined) return;
    if (path !== null) this.#watched.delete(path);
    this.outdate();
  };

  async #list(watches: boolean): Promise<void> {
    // Before the request, since an event may be delivered before the reply has been processed.
    this.#isCurrent = watches;
    try {
      const names = await this.#children(watches);
      // The watch was set after `unwatch`.
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
