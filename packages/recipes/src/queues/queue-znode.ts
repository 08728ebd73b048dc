/**
 * The items below one znode: how they are put, taken and claimed.
 *
 *     put     multi: create path/queue- (SEQUENTIAL)
 *     take    the first of the list (item-list.ts)
 *             getData                                               gone: the next
 *             multi: delete, with the version that was read         gone, or claimed since: the next
 *     claim   the first of the list
 *             getData, and exists on the claim if there ever was one     somebody has it: getChildren of all claims, and the next without one
 *             multi: setData as it was, with the version that was read; create the claim (EPHEMERAL)
 *
 * Each multi has a mark in it (marks/marks.ts), and so is carried out once. Each claim takes the version of its item up by one: of two who have read the same only one
 * comes through, a claim bears a name that no other has, and the version says how often the item was claimed.
 */
import { type Acl, type CheckOp, type ClientView, type Data, KeeperError, op, type ReadOptions, type Stat } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import { ItemList } from './item-list.ts';
import { inOrder, type ItemName, type ItemNames } from './item-names.ts';
import type { Marks } from '../marks/marks.ts';

/** What is read of an item. */
export interface ReadItem extends ItemName {
  readonly path: string;
  readonly data: Uint8Array | null;
  /** How often it had been claimed. */
  readonly version: number;
}

/** One passage through the list, by one who wants an item. */
export interface Look {
  readonly signal: AbortSignal;
  /** Whether the list is to hear of what happens behind it. */
  watches: boolean;
  /** Items that somebody has a claim on; undefined until one was met. */
  claimed: ReadonlySet<string> | undefined;
  /** Somebody else was faster with an item, so others may have come as well since the list was made. */
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
  /** What comes later may be due earlier. */
  readonly drops: boolean;
  /** The rank of an item is the time from which on it may be had. */
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

  /** All of them, one behind the other, or none; and none unless `checks` hold. `prefix`: what stands ahead of the number. */
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
      // No container, which goes when it is empty: the numbers of the next would begin anew, and who is about to delete an item of the past would delete another
      // that has its name.
      await this.zk.ensurePath(this.path, { ...untilTheEnd, acl, signal });
    }
  }

  /**
   * What `get` makes of the first item that it can have; undefined when there is none to be had. With `watches` the list is told, from then on, of whatever may change
   * that.
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
        // What was told of their ends ahead of this list is forgotten with the one before.
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
      // Another call waits for what happens to this list, maybe only since a moment ago: what is passed over here, it does not see.
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
        // It may still be there.
        this.list.drop();
        throw error;
      }
    }
  }

  /** Up to which time items may be had. That nothing is due yet is good enough by what was heard of the leader's clock last; that something is has to be known. */
  async #dueMs(signal: AbortSignal): Promise<number> {
    const { guessedMs } = this.marks;
    const { nextRank = Infinity } = this.list;
    return guessedMs !== undefined && nextRank > guessedMs ? guessedMs : await this.marks.nowMs(signal);
  }

  /** How long until the next item may be had, in ms; undefined when none is waiting for its time, as far as was looked. */
  get untilNextMs(): number | undefined {
    const { nextRank } = this.list;
    const { guessedMs } = this.marks;
    return this.#options.isTimed && nextRank !== undefined && guessedMs !== undefined ? nextRank - guessedMs : undefined;
  }

  /** Deletes it; undefined when somebody else has it. */
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

  /** Makes a claim on it; undefined when somebody else has it. */
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
          // Of a consumer of another kind, or of one that has an item of this name that was deleted.
          if (await this.#isClaimed(item.name, item.version + 1, look)) return undefined;
          continue;
        }
        if (isAt(error, 0, 'NoNode', 'BadVersion')) {
          look.isLate = true;
          if (error.code === 'NoNode') return undefined;
          // Somebody has claimed it since, and may have it still.
          continue;
        }
        if (!isAt(error, 1, 'NoNode')) throw error;
        const { claimsPath, acl } = this.#options;
        await this.zk.ensurePath(claimsPath, { ...untilTheEnd, mode: 'container', acl, signal });
      }
    }
  };

  /** undefined when it was made, and is gone already. */
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
    // Servers before ZooKeeper 3.8.2 leave the Stat out.
    const told = (results?.[1] as { readonly stat: Stat | undefined } | undefined)?.stat;
    const stat = told ?? (await this.zk.exists(path, untilTheEnd));
    if (stat === null || stat.ephemeralOwner !== this.zk.sessionId) return undefined;
    return { item: { ...item, version: item.version + 1 }, path, czxid: stat.czxid };
  }

  /** undefined when it is gone, or somebody has a claim on it. */
  async #readFree(name: ItemName, look: Look): Promise<ReadItem | undefined> {
    const item = await this.#read(name, look.signal);
    if (item === undefined) look.isLate = true;
    if (item === undefined || (item.version === 0 && !this.#options.sharesClaims)) return item;
    return (await this.#isClaimed(item.name, item.version, look)) ? undefined : item;
  }

  /** Whether somebody has this claim. With the first that is met all are listed: the others are passed over by that, and one watch tells of the end of each. */
  async #isClaimed(item: string, version: number, look: Look): Promise<boolean> {
    const { signal } = look;
    const isThere = async () => (await this.zk.exists(this.#claimPathOf(item, version), { ...untilTheEnd, signal })) !== null;
    if (!(await isThere())) return false;
    if (look.claimed !== undefined) return true;
    look.claimed = await this.claimed(signal, look.watches);
    // It may have ended just ahead of that.
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

  /** The one that comes first, left where it is; undefined when there is none. */
  async peek(signal: AbortSignal): Promise<ReadItem | undefined> {
    for (const name of await this.contents(signal)) {
      const item = await this.#read(name, signal);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  /** Who is there now, in their order. */
  async contents(signal: AbortSignal): Promise<readonly ItemName[]> {
    return (await this.#childrenOf(this.path, signal, {}))
      .map((name) => this.#options.names.read(name))
      .filter((item) => item !== undefined)
      .sort(inOrder);
  }

  /** Names of items that somebody has a claim on. With `watches` the list is told when there are others. */
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

/** Whether operation `index` of a multi was refused, and so. */
export function isAt(error: unknown, index: number, ...codes: readonly ('NoNode' | 'BadVersion' | 'NodeExists')[]): error is KeeperError {
  return KeeperError.is(error, ...codes) && error.failedIndex === index;
}
