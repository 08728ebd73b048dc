/**
 * Putting, taking and claiming the items below one znode.
 *
 *     put     multi: create path/queue- (SEQUENTIAL)
 *     take    the first of the list (item-list.ts)
 *             getData                                          gone: the next
 *             multi: delete, with the version that was read    gone, or claimed since: the next
 *     claim   the first of the list
 *             getData, and exists on the claim if there ever was one
 *                  claimed: getChildren of all claims, and the next item without one
 *             multi: setData with the same data and the version that was read; create the claim
 *                  (EPHEMERAL)
 *
 * Each multi includes a mark (markers/idempotency-markers.ts), and so is applied once. Each claim
 * increments the version of its item: of two that have read the same version only one succeeds,
 * each claim has a name of its own, and the version shows how often the item was claimed.
 */
import { type Acl, type CheckOp, type ClientView, type Data, KeeperError, op, type ReadOptions, type Stat } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import { ItemList } from './item-list.ts';
import { compareItems, type ParsedItemName, type ItemNaming } from './item-names.ts';
import type { IdempotencyMarkers } from '../markers/idempotency-markers.ts';

/** An item as read. */
export interface ReadItem extends ParsedItemName {
  readonly path: string;
  readonly data: Uint8Array | null;
  /** How often it had been claimed. */
  readonly version: number;
}

/** One pass through the list, for a consumer that wants an item. */
export interface ItemSearch {
  readonly signal: AbortSignal;
  /** Whether the list watches for later changes. */
  watches: boolean;
  /** Items with a claim; undefined until the pass has met one. */
  claimed: ReadonlySet<string> | undefined;
  /**
   * Another consumer was faster with an item, so others may have been put since the list was made.
   */
  isListStale: boolean;
}

/** An item, and the claim on it. */
export interface ItemClaim {
  readonly item: ReadItem;
  readonly path: string;
  readonly czxid: bigint;
}

export interface QueueShardOptions<Label> {
  readonly path: string;
  readonly naming: ItemNaming<Label>;
  readonly mode: 'ephemeralSequential' | 'persistentSequential';
  readonly acl: readonly Acl[] | undefined;
  /** A later item may come first. */
  readonly isRanked: boolean;
  /** The rank of an item is the time from which it is available. */
  readonly isTimed: boolean;
  readonly claimsPath: string;
  /** Claims have the names of their items, as in kazoo's LockingQueue. */
  readonly claimsNamedAsItems: boolean;
}

export class QueueShard<Label> {
  readonly zk: ClientView;
  readonly path: string;
  readonly list: ItemList;
  readonly markers: IdempotencyMarkers;
  readonly #options: QueueShardOptions<Label>;

  constructor(zk: ClientView, marks: IdempotencyMarkers, options: QueueShardOptions<Label>) {
    this.zk = zk;
    this.path = options.path;
    this.list = new ItemList(zk, options.path, options.naming, options.isRanked);
    this.markers = marks;
    this.#options = options;
  }

  /**
   * Puts all items in this order, or none; none if one of `checks` fails. `prefix`: the part of the
   * name before the number.
   */
  async put(items: readonly Data[], prefix: string, checks: readonly CheckOp[], signal: AbortSignal): Promise<void> {
    const { mode, acl } = this.#options;
    const path = childPath(this.path, prefix);
    const ops = [...checks, ...items.map((data) => op.create(path, data, acl === undefined ? { mode } : { mode, acl }))];
    for (;;) {
      try {
        await this.markers.write(ops, signal);
        return;
      } catch (error) {
        if (!failedAt(error, checks.length, 'NoNode')) throw error;
      }
      // Not a container, which would be deleted when empty: the numbers of the next would begin
      // anew, and a client that is about to delete an earlier item would delete another one with
      // the same name.
      await this.zk.ensurePath(this.path, { ...retryForever, acl, signal });
    }
  }

  /**
   * The result of `takeOrClaim` for the first item that it can get; undefined if none is available.
   * With `watches` the list watches for anything that may change that.
   */
  async first<Got>(
    takeOrClaim: (item: ParsedItemName, search: ItemSearch) => Promise<Got | undefined>,
    signal: AbortSignal,
    watches: boolean,
  ): Promise<Got | undefined> {
    const { list } = this;
    const search: ItemSearch = { signal, watches, claimed: undefined, isListStale: false };
    let isListed = false;
    for (let isNeeded = !list.isUsable; ; isNeeded = true) {
      if (isNeeded) {
        if (list.isCurrent || (isListed && !search.isListStale)) return undefined;
        search.isListStale = false;
        // The new list makes claims that were read before it out of date: their ends may have been
        // reported before.
        search.claimed = undefined;
        await list.refresh(watches, signal);
        isListed = true;
      }
      const result = await this.#firstListed(takeOrClaim, search);
      if (result !== undefined) return result;
    }
  }

  async #firstListed<Got>(
    takeOrClaim: (item: ParsedItemName, search: ItemSearch) => Promise<Got | undefined>,
    search: ItemSearch,
  ): Promise<Got | undefined> {
    const { signal } = search;
    for (;;) {
      const rankMax = this.#options.isTimed ? await this.#rankLimitMs(signal) : Infinity;
      // Another call waits for events of this list, maybe since a moment ago: it does not see the
      // items that this pass skips.
      if (this.list.isCurrent && !search.watches) {
        search.watches = true;
        search.claimed = undefined;
      }
      const item = this.list.next(rankMax);
      if (item === undefined) return undefined;
      if (search.claimed?.has(item.name) === true) continue;
      try {
        const result = await takeOrClaim(item, search);
        if (result !== undefined) return result;
      } catch (error) {
        // It may still exist.
        this.list.invalidate();
        throw error;
      }
    }
  }

  /**
   * Up to which time items are available. If none is due by the last known leader's time, that is
   * enough; that one is due must be known exactly.
   */
  async #rankLimitMs(signal: AbortSignal): Promise<number> {
    const { estimatedLeaderNowMs } = this.markers;
    const { nextRank = Infinity } = this.list;
    return estimatedLeaderNowMs !== undefined && nextRank > estimatedLeaderNowMs
      ? estimatedLeaderNowMs
      : await this.markers.leaderNowMs(signal);
  }

  /**
   * The time until the next item is available, in ms; undefined if none is known to wait for its
   * time.
   */
  get untilNextMs(): number | undefined {
    const { nextRank } = this.list;
    const { estimatedLeaderNowMs } = this.markers;
    return this.#options.isTimed && nextRank !== undefined && estimatedLeaderNowMs !== undefined
      ? nextRank - estimatedLeaderNowMs
      : undefined;
  }

  /** Deletes it; undefined if another consumer has it. */
  readonly take = async (name: ParsedItemName, search: ItemSearch): Promise<ReadItem | undefined> => {
    for (;;) {
      const item = await this.#readUnclaimed(name, search);
      if (item === undefined) return undefined;
      try {
        await this.markers.write([op.delete(item.path, { version: item.version })], search.signal);
        return item;
      } catch (error) {
        if (!failedAt(error, 0, 'NoNode', 'BadVersion')) throw error;
        search.isListStale = true;
        if (error.code === 'NoNode') return undefined;
      }
    }
  };

  /** Claims it; undefined if another consumer has it. */
  readonly claim = async (name: ParsedItemName, search: ItemSearch): Promise<ItemClaim | undefined> => {
    const { signal } = search;
    for (;;) {
      const item = await this.#readUnclaimed(name, search);
      if (item === undefined) return undefined;
      try {
        const made = await this.#makeClaim(item, signal);
        if (made !== undefined) return made;
      } catch (error) {
        if (failedAt(error, 1, 'NodeExists')) {
          // The claim of another kind of consumer, or of one that has a deleted item of the same
          // name.
          if (await this.#isClaimed(item.name, item.version + 1, search)) return undefined;
          continue;
        }
        if (failedAt(error, 0, 'NoNode', 'BadVersion')) {
          search.isListStale = true;
          if (error.code === 'NoNode') return undefined;
          // Another consumer has claimed it since, and may still have it.
          continue;
        }
        if (!failedAt(error, 1, 'NoNode')) throw error;
        const { claimsPath, acl } = this.#options;
        await this.zk.ensurePath(claimsPath, { ...retryForever, mode: 'container', acl, signal });
      }
    }
  };

  /** undefined if the claim was created, and is gone already. */
  async #makeClaim(item: ReadItem, signal: AbortSignal): Promise<ItemClaim | undefined> {
    const { acl } = this.#options;
    const path = this.#claimPathOf(item.name, item.version + 1);
    const { results } = await this.markers.write(
      [
        op.setData(item.path, item.data, { version: item.version }),
        op.create(path, null, acl === undefined ? { mode: 'ephemeral' } : { mode: 'ephemeral', acl }),
      ],
      signal,
    );
    // Servers before ZooKeeper 3.8.2 omit the Stat.
    const repliedStat = (results?.[1] as { readonly stat: Stat | undefined } | undefined)?.stat;
    const stat = repliedStat ?? (await this.zk.exists(path, retryForever));
    if (stat === null || stat.ephemeralOwner !== this.zk.sessionId) return undefined;
    return { item: { ...item, version: item.version + 1 }, path, czxid: stat.czxid };
  }

  /** undefined if it is gone, or claimed. */
  async #readUnclaimed(name: ParsedItemName, search: ItemSearch): Promise<ReadItem | undefined> {
    const item = await this.#read(name, search.signal);
    if (item === undefined) search.isListStale = true;
    if (item === undefined || (item.version === 0 && !this.#options.claimsNamedAsItems)) return item;
    return (await this.#isClaimed(item.name, item.version, search)) ? undefined : item;
  }

  /**
   * Whether this claim exists. The first one found leads to a list of all claims: it serves for the
   * other items, and one watch reports the end of each.
   */
  async #isClaimed(item: string, version: number, search: ItemSearch): Promise<boolean> {
    const { signal } = search;
    const isThere = async () => (await this.zk.exists(this.#claimPathOf(item, version), { ...retryForever, signal })) !== null;
    if (!(await isThere())) return false;
    if (search.claimed !== undefined) return true;
    search.claimed = await this.claimed(signal, search.watches);
    // It may have ended just before the list.
    return search.claimed.has(item) || (await isThere());
  }

  async #read(name: ParsedItemName, signal: AbortSignal): Promise<ReadItem | undefined> {
    const path = childPath(this.path, name.name);
    const found = await undefinedIfNoNode(this.zk.getData(path, { ...retryForever, signal }));
    return found && { ...name, path, data: found.data, version: found.stat.version };
  }

  #claimPathOf(item: string, version: number): string {
    const { claimsPath, claimsNamedAsItems } = this.#options;
    return childPath(claimsPath, claimsNamedAsItems ? item : `${item}-${version}`);
  }

  /** The first item, which stays in the queue; undefined if there is none. */
  async peek(signal: AbortSignal): Promise<ReadItem | undefined> {
    for (const name of await this.contents(signal)) {
      const item = await this.#read(name, signal);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  /** The current items, in their order. */
  async contents(signal: AbortSignal): Promise<readonly ParsedItemName[]> {
    return (await this.#childrenOf(this.path, signal, {}))
      .map((name) => this.#options.naming.parse(name))
      .filter((item) => item !== undefined)
      .sort(compareItems);
  }

  /** Names of items with a claim. With `watches` the list is notified of changes. */
  async claimed(signal: AbortSignal, watches: boolean): Promise<ReadonlySet<string>> {
    const { claimsPath, claimsNamedAsItems } = this.#options;
    const claims = await this.#childrenOf(claimsPath, signal, this.list.watchOption(claimsPath, watches));
    return new Set(claimsNamedAsItems ? claims : claims.map((name) => name.replace(/-\d+$/, '')));
  }

  async #childrenOf(path: string, signal: AbortSignal, options: ReadOptions): Promise<readonly string[]> {
    return (await undefinedIfNoNode(this.zk.getChildren(path, { ...retryForever, ...options, signal })))?.children ?? [];
  }

  /** How many children the znode has. */
  async size(signal: AbortSignal): Promise<number> {
    return (await this.zk.exists(this.path, { ...retryForever, signal }))?.numChildren ?? 0;
  }
}

/** Whether operation `index` of a multi was rejected with one of these codes. */
export function failedAt(
  error: unknown,
  index: number,
  ...codes: readonly ('NoNode' | 'BadVersion' | 'NodeExists')[]
): error is KeeperError {
  return KeeperError.is(error, ...codes) && error.failedIndex === index;
}
