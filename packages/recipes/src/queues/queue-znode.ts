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
 * Each multi includes a mark (marks/marks.ts), and so is applied once. Each claim increments the
 * version of its item: of two that have read the same version only one succeeds, each claim has a
 * name of its own, and the version shows how often the item was claimed.
 */
import { type Acl, type CheckOp, type ClientView, type Data, KeeperError, op, type ReadOptions, type Stat } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import { ItemList } from './item-list.ts';
import { inOrder, type ItemName, type ItemNames } from './item-names.ts';
import type { Marks } from '../marks/marks.ts';

/** An item as read. */
export interface ReadItem extends ItemName {
  readonly path: string;
  readonly data: Uint8Array | null;
  /** How often it had been claimed. */
  readonly version: number;
}

/** One pass through the list, for a consumer that wants an item. */
export interface Look {
  readonly signal: AbortSignal;
  /** Whether the list watches for later changes. */
  watches: boolean;
  /** Items with a claim; undefined until the pass has met one. */
  claimed: ReadonlySet<string> | undefined;
  /**
   * Another consumer was faster with an item, so others may have been put since the list was made.
   */
  isLate: boolean;
}

/** An item, and the claim on it. */
export interface MadeClaim {
  readonly item: ReadItem;
  readonly path: string;
  readonly czxid: bigint;
}

export interface QueueZnodeOptions<Label> {
  readonly path: string;
  readonly names: ItemNames<Label>;
  readonly mode: 'ephemeralSequential' | 'persistentSequential';
  readonly acl: readonly Acl[] | undefined;
  /** A later item may come first. */
  readonly drops: boolean;
  /** The rank of an item is the time from which it is available. */
  readonly isTimed: boolean;
  readonly claimsPath: string;
  /** Claims have the names of their items, as in kazoo's LockingQueue. */
  readonly sharesClaims: boolean;
}

export class QueueZnode<Label> {
  readonly zk: ClientView;
  readonly path: string;
  readonly list: ItemList;
  readonly marks: Marks;
  readonly #options: QueueZnodeOptions<Label>;

  constructor(zk: ClientView, marks: Marks, options: QueueZnodeOptions<Label>) {
    this.zk = zk;
    this.path = options.path;
    this.list = new ItemList(zk, options.path, options.names, options.drops);
    this.marks = marks;
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
        await this.marks.write(ops, signal);
        return;
      } catch (error) {
        if (!isAt(error, checks.length, 'NoNode')) throw error;
      }
      // Not a container, which would be deleted when empty: the numbers of the next would begin
      // anew, and a client that is about to delete an earlier item would delete another one with
      // the same name.
      await this.zk.ensurePath(this.path, { ...untilTheEnd, acl, signal });
    }
  }

  /**
   * The result of `get` for the first item that it can get; undefined if none is available. With
   * `watches` the list watches for anything that may change that.
   */
  async first<Got>(
    get: (item: ItemName, look: Look) => Promise<Got | undefined>,
    signal: AbortSignal,
    watches: boolean,
  ): Promise<Got | undefined> {
    const { list } = this;
    const look: Look = { signal, watches, claimed: undefined, isLate: false };
    let isListed = false;
    for (let isNeeded = !list.isUsable; ; isNeeded = true) {
      if (isNeeded) {
        if (list.isCurrent || (isListed && !look.isLate)) return undefined;
        look.isLate = false;
        // The new list makes claims that were read before it out of date: their ends may have been
        // reported before.
        look.claimed = undefined;
        await list.refresh(watches, signal);
        isListed = true;
      }
      const got = await this.#firstOfList(get, look);
      if (got !== undefined) return got;
    }
  }

  async #firstOfList<Got>(get: (item: ItemName, look: Look) => Promise<Got | undefined>, look: Look): Promise<Got | undefined> {
    const { signal } = look;
    for (;;) {
      const rankMax = this.#options.isTimed ? await this.#dueMs(signal) : Infinity;
      // Another call waits for events of this list, maybe since a moment ago: it does not see the
      // items that this pass skips.
      if (this.list.isCurrent && !look.watches) {
        look.watches = true;
        look.claimed = undefined;
      }
      const item = this.list.next(rankMax);
      if (item === undefined) return undefined;
      if (look.claimed?.has(item.name) === true) continue;
      try {
        const got = await get(item, look);
        if (got !== undefined) return got;
      } catch (error) {
        // It may still exist.
        this.list.drop();
        throw error;
      }
    }
  }

  /**
   * Up to which time items are available. If none is due by the last known leader's time, that is
   * enough; that one is due must be known exactly.
   */
  async #dueMs(signal: AbortSignal): Promise<number> {
    const { guessedMs } = this.marks;
    const { nextRank = Infinity } = this.list;
    return guessedMs !== undefined && nextRank > guessedMs ? guessedMs : await this.marks.nowMs(signal);
  }

  /**
   * The time until the next item is available, in ms; undefined if none is known to wait for its
   * time.
   */
  get untilNextMs(): number | undefined {
    const { nextRank } = this.list;
    const { guessedMs } = this.marks;
    return this.#options.isTimed && nextRank !== undefined && guessedMs !== undefined ? nextRank - guessedMs : undefined;
  }

  /** Deletes it; undefined if another consumer has it. */
  readonly take = async (name: ItemName, look: Look): Promise<ReadItem | undefined> => {
    for (;;) {
      const item = await this.#readFree(name, look);
      if (item === undefined) return undefined;
      try {
        await this.marks.write([op.delete(item.path, { version: item.version })], look.signal);
        return item;
      } catch (error) {
        if (!isAt(error, 0, 'NoNode', 'BadVersion')) throw error;
        look.isLate = true;
        if (error.code === 'NoNode') return undefined;
      }
    }
  };

  /** Claims it; undefined if another consumer has it. */
  readonly claim = async (name: ItemName, look: Look): Promise<MadeClaim | undefined> => {
    const { signal } = look;
    for (;;) {
      const item = await this.#readFree(name, look);
      if (item === undefined) return undefined;
      try {
        const made = await this.#makeClaim(item, signal);
        if (made !== undefined) return made;
      } catch (error) {
        if (isAt(error, 1, 'NodeExists')) {
          // The claim of another kind of consumer, or of one that has a deleted item of the same
          // name.
          if (await this.#isClaimed(item.name, item.version + 1, look)) return undefined;
          continue;
        }
        if (isAt(error, 0, 'NoNode', 'BadVersion')) {
          look.isLate = true;
          if (error.code === 'NoNode') return undefined;
          // Another consumer has claimed it since, and may still have it.
          continue;
        }
        if (!isAt(error, 1, 'NoNode')) throw error;
        const { claimsPath, acl } = this.#options;
        await this.zk.ensurePath(claimsPath, { ...untilTheEnd, mode: 'container', acl, signal });
      }
    }
  };

  /** undefined if the claim was created, and is gone already. */
  async #makeClaim(item: ReadItem, signal: AbortSignal): Promise<MadeClaim | undefined> {
    const { acl } = this.#options;
    const path = this.#claimPathOf(item.name, item.version + 1);
    const { results } = await this.marks.write(
      [
        op.setData(item.path, item.data, { version: item.version }),
        op.create(path, null, acl === undefined ? { mode: 'ephemeral' } : { mode: 'ephemeral', acl }),
      ],
      signal,
    );
    // Servers before ZooKeeper 3.8.2 omit the Stat.
    const told = (results?.[1] as { readonly stat: Stat | undefined } | undefined)?.stat;
    const stat = told ?? (await this.zk.exists(path, untilTheEnd));
    if (stat === null || stat.ephemeralOwner !== this.zk.sessionId) return undefined;
    return { item: { ...item, version: item.version + 1 }, path, czxid: stat.czxid };
  }

  /** undefined if it is gone, or claimed. */
  async #readFree(name: ItemName, look: Look): Promise<ReadItem | undefined> {
    const item = await this.#read(name, look.signal);
    if (item === undefined) look.isLate = true;
    if (item === undefined || (item.version === 0 && !this.#options.sharesClaims)) return item;
    return (await this.#isClaimed(item.name, item.version, look)) ? undefined : item;
  }

  /**
   * Whether this claim exists. The first one found leads to a list of all claims: it serves for the
   * other items, and one watch reports the end of each.
   */
  async #isClaimed(item: string, version: number, look: Look): Promise<boolean> {
    const { signal } = look;
    const isThere = async () => (await this.zk.exists(this.#claimPathOf(item, version), { ...untilTheEnd, signal })) !== null;
    if (!(await isThere())) return false;
    if (look.claimed !== undefined) return true;
    look.claimed = await this.claimed(signal, look.watches);
    // It may have ended just before the list.
    return look.claimed.has(item) || (await isThere());
  }

  async #read(name: ItemName, signal: AbortSignal): Promise<ReadItem | undefined> {
    const path = childPath(this.path, name.name);
    const found = await unlessGone(this.zk.getData(path, { ...untilTheEnd, signal }));
    return found && { ...name, path, data: found.data, version: found.stat.version };
  }

  #claimPathOf(item: string, version: number): string {
    const { claimsPath, sharesClaims } = this.#options;
    return childPath(claimsPath, sharesClaims ? item : `${item}-${version}`);
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
  async contents(signal: AbortSignal): Promise<readonly ItemName[]> {
    return (await this.#childrenOf(this.path, signal, {}))
      .map((name) => this.#options.names.read(name))
      .filter((item) => item !== undefined)
      .sort(inOrder);
  }

  /** Names of items with a claim. With `watches` the list is notified of changes. */
  async claimed(signal: AbortSignal, watches: boolean): Promise<ReadonlySet<string>> {
    const { claimsPath, sharesClaims } = this.#options;
    const claims = await this.#childrenOf(claimsPath, signal, this.list.watching(claimsPath, watches));
    return new Set(sharesClaims ? claims : claims.map((name) => name.replace(/-\d+$/, '')));
  }

  async #childrenOf(path: string, signal: AbortSignal, options: ReadOptions): Promise<readonly string[]> {
    return (await unlessGone(this.zk.getChildren(path, { ...untilTheEnd, ...options, signal })))?.children ?? [];
  }

  /** How many children the znode has. */
  async size(signal: AbortSignal): Promise<number> {
    return (await this.zk.exists(this.path, { ...untilTheEnd, signal }))?.numChildren ?? 0;
  }
}

/** Whether operation `index` of a multi was rejected with one of these codes. */
export function isAt(error: unknown, index: number, ...codes: readonly ('NoNode' | 'BadVersion' | 'NodeExists')[]): error is KeeperError {
  return KeeperError.is(error, ...codes) && error.failedIndex === index;
}
