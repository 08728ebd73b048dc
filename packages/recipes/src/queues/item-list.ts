/**
 * The items of one znode as they were listed last, and what is left of the list. ZooKeeper's page, "Queues" and "Priority Queues":
 *
 *     getChildren, watch     1. who is there? the lowest first
 *     work off the list      2. without listing again before it is used up
 *     used up                3. the watch has fired: 1. again. It has not: there is nothing else, so wait for it
 *
 * Where the order is by more than the number (`drops`), what comes later may come first, so the list is dropped as soon as the watch fires.
 */
import { type ClientView, KeeperError, type WatchListener } from '@tskeeper/client';
import { unlessAborted } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { inOrder, type ItemName, type ItemNames } from './item-names.ts';

export class ItemList {
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #names: Pick<ItemNames<never>, 'read'>;
  readonly #drops: boolean;
  readonly #waiting = new Set<() => void>();
  #left: ItemName[] = [];
  #length = 0;
  /** There may be something that is not in the list: it was never made, the watch has fired, or an item of it was left where it is. */
  #isStale = true;
  #listing: Promise<void> | undefined;

  constructor(zk: ClientView, path: string, names: Pick<ItemNames<never>, 'read'>, drops: boolean) {
    this.#zk = zk;
    this.#path = path;
    this.#names = names;
    this.#drops = drops;
  }

  /** Takes the next to be tried out of the list; undefined when all there are have been tried, but for those whose rank is above `rankMax`. */
  async next(signal: AbortSignal, rankMax = Infinity): Promise<ItemName | undefined> {
    if (this.#isStale && (this.#drops || this.#left.length === 0)) await this.#refresh(signal);
    const [first] = this.#left;
    return first !== undefined && first.rank <= rankMax ? this.#left.shift() : undefined;
  }

  /** Of the one that comes next, and has not been tried. */
  get nextRank(): number | undefined {
    return this.#left[0]?.rank;
  }

  /** How many were there when they were listed last, which is done if there may be others now. */
  async length(signal: AbortSignal): Promise<number> {
    if (this.#isStale) await this.#refresh(signal);
    return this.#length;
  }

  /** Something that is there is not in the list. */
  readonly outdate = (): void => {
    this.#isStale = true;
    for (const callback of this.#waiting) callback();
  };

  /** Something that was taken out of the list is still there, in its old place. */
  drop(): void {
    this.#left = [];
    this.outdate();
  }

  /** What is told of a watch that was set for the list. */
  readonly onEvent: WatchListener = ({ type }) => {
    // The loss of a connection says nothing of the items: what is missed by it is told by the next one.
    if (type !== 'None' || this.#zk.closedBecause !== undefined) this.outdate();
  };

  /** Calls back as soon as there may be something new, at once if that is so; returns how to take that back. */
  whenOutdated(callback: () => void): () => void {
    this.#waiting.add(callback);
    if (this.#isStale) callback();
    return () => this.#waiting.delete(callback);
  }

  /** Nothing is heard any more. */
  close(): void {
    this.#zk.removeWatches(this.#path, { watch: this.onEvent, local: true }).catch(() => undefined);
  }

  /** One listing serves all who ask for it meanwhile. */
  #refresh(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined;
    });
    return unlessAborted(this.#listing, signal);
  }

  async #list(): Promise<void> {
    // Ahead of the request, since an event may be told before the answer has been looked at.
    this.#isStale = false;
    try {
      const names = await this.#children();
      const items: ItemName[] = [];
      for (const name of names) {
        const item = this.#names.read(name);
        if (item !== undefined) items.push(item);
      }
      this.#left = items.sort(inOrder);
      this.#length = items.length;
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  async #children(): Promise<readonly string[]> {
    const options = { ...untilTheEnd, watch: this.onEvent };
    for (;;) {
      try {
        return (await this.#zk.getChildren(this.#path, options)).children;
      } catch (error) {
        if (!KeeperError.is(error, 'NoNode')) throw error;
      }
      if ((await this.#zk.exists(this.#path, options)) === null) return [];
    }
  }
}
