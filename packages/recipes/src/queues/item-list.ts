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
import { unlessAborted } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { compareItems, type ParsedItemName, type ItemNaming } from './item-names.ts';

interface Listing {
  readonly watches: boolean;
  readonly done: Promise<void>;
}

export class ItemList {
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #names: Pick<ItemNaming<never>, 'parse'>;
  readonly #isRanked: boolean;
  readonly #staleListeners = new Set<() => void>();
  /** Paths with a watch of this list: the queue, and the claims. */
  readonly #watchedPaths = new Set<string>();
  #remaining: ParsedItemName[] = [];
  #length = 0;
  #isCurrent = false;
  #listing: Listing | undefined;

  constructor(zk: ClientView, path: string, names: Pick<ItemNaming<never>, 'parse'>, isRanked: boolean) {
    this.#zk = zk;
    this.#path = path;
    this.#names = names;
    this.#isRanked = isRanked;
  }

  /**
   * Removes the next item to be tried from the list; undefined when all have been tried, except
   * those whose rank is above `rankMax`.
   */
  next(rankMax = Infinity): ParsedItemName | undefined {
    const [first] = this.#remaining;
    return first !== undefined && first.rank <= rankMax ? this.#remaining.shift() : undefined;
  }

  /** The rank of the next item, which has not been tried. */
  get nextRank(): number | undefined {
    return this.#remaining[0]?.rank;
  }

  /** Whether there was no event since it was listed with a watch. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  /** Whether it may be worked through as it is. */
  get isUsable(): boolean {
    return this.#isCurrent || !this.#isRanked;
  }

  /** How many items there were when last listed. Lists again if there may be more now. */
  async length(signal: AbortSignal): Promise<number> {
    if (!this.#isCurrent) await this.refresh(true, signal);
    return this.#length;
  }

  /** An item exists that is not in the list. */
  readonly markStale = (): void => {
    this.#isCurrent = false;
    for (const callback of this.#staleListeners) callback();
  };

  /** An item that was removed from the list still exists, in its old place. */
  invalidate(): void {
    this.#remaining = [];
    this.markStale();
  }

  /**
   * Calls back when there may be something new, at once if that is so; returns a function that
   * removes the callback.
   */
  onStale(callback: () => void): () => void {
    this.#staleListeners.add(callback);
    if (!this.#isCurrent) callback();
    return () => this.#staleListeners.delete(callback);
  }

  /**
   * Lists the items. Concurrent callers share one listing. With a watch the list is current until
   * that fires.
   */
  async refresh(watches: boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (watches) while (this.#listing?.watches === false) await unlessAborted(this.#listing.done, signal);
    this.#listing ??= this.#startListing(watches);
    await unlessAborted(this.#listing.done, signal);
  }

  #startListing(watches: boolean): Listing {
    const done = this.#list(watches);
    const listing = { watches, done };
    const end = () => {
      if (this.#listing === listing) this.#listing = undefined;
    };
    // All callers may have given up by then.
    done.then(end, end);
    return listing;
  }

  /** The options of a read; with `watches` its events go to this list. */
  watchOption(path: string, watches: boolean): { readonly watch?: WatchListener } {
    if (!watches) return {};
    this.#watchedPaths.add(path);
    return { watch: this.#onEvent };
  }

  /** Removes the watches: the last caller has stopped waiting. */
  unwatch(): void {
    for (const path of this.#watchedPaths) this.#removeWatch(path);
    this.#watchedPaths.clear();
    // A listing in progress continues without effect (`#list`).
    if (this.#listing?.watches === true) this.#listing = undefined;
    this.markStale();
  }

  #removeWatch(path: string): void {
    this.#zk.removeWatches(path, { watch: this.#onEvent, local: true }).catch(() => undefined);
  }

  readonly #onEvent: WatchListener = ({ type, path }) => {
    // The loss of a connection says nothing about the items: after a reconnect the client sets the
    // watch again, and an event that was missed follows.
    if (type === 'None' && this.#zk.endReason === undefined) return;
    if (path !== null) this.#watchedPaths.delete(path);
    this.markStale();
  };

  async #list(watches: boolean): Promise<void> {
    // Before the request, since an event may be delivered before the reply has been processed.
    this.#isCurrent = watches;
    try {
      const names = await this.#children(watches);
      // The watch was set after `unwatch`.
      if (watches && !this.#watchedPaths.has(this.#path)) this.#removeWatch(this.#path);
      const items: ParsedItemName[] = [];
      for (const name of names) {
        const item = this.#names.parse(name);
        if (item !== undefined) items.push(item);
      }
      this.#remaining = items.sort(compareItems);
      this.#length = items.length;
    } catch (error) {
      this.#isCurrent = false;
      throw error;
    }
  }

  async #children(watches: boolean): Promise<readonly string[]> {
    const options = { ...retryForever, ...this.watchOption(this.#path, watches) };
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
