/**
 * What all queues have in common. consumers.ts waits for items, room.ts for room.
 *
 *     /jobs                               stays when it is empty, so that no name is used twice
 *       ├─ queue-0000000007               items; nothing else, as other clients expect
 *       └─ queue-0000000008
 *     /jobs-aside                         containers
 *       ├─ claims/queue-0000000007-1      a consumer works on 7: its ephemeral
 *       ├─ consumers/_c_2b7e...-lock-...  the queue of those that wait for an item
 *       ├─ producers/_c_91aa...-lock-...  the queue of those that wait for room (`maxItems`)
 *       └─ marks/_c_4d0c...-mark-...      versions show what was applied (marks/marks.ts)
 */
import type { Acl, Data } from '@tskeeper/client';
import { childPath, onAbort } from '@tskeeper/client/internal';
import { callOptions, checkArray, checkCallOptions, checkCount, checkData, checkFunction, checkPath, checkPlace } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { clientOf, inSessions, PerSession, isSessions, type SessionSource } from '../sessions/session-source.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import { bothSettled } from '../waiting/both.ts';
import { isUnsettled } from '../waiting/unanswered.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { ClaimedItem } from './claimed-item.ts';
import type { ItemName, ItemNames } from './item-names.ts';
import { itemOf, type QueueItem, type RankKind } from './queue-item.ts';
import { QueueSession } from './queue-session.ts';
import type { Look, QueueZnode } from './queue-znode.ts';
import { checkMaxItems, checkRoom } from './room.ts';

/**
 * The options of all kinds of queues. All clients of a queue use the same, except `maxItems`, which
 * concerns producers only.
 */
export interface ItemQueueOptions {
  /**
   * The ACL of items, of the znodes beside them, and of the queue itself if it has to be created.
   * Default: all permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * `persistent`: items stay until they are taken (ZooKeeper's own implementation,
   * `DistributedQueue`). `ephemeral`: an item ends with the session of its producer, taken or not,
   * as on ZooKeeper's page. Default: `persistent`.
   */
  readonly items?: 'persistent' | 'ephemeral' | undefined;
  /**
   * Producers queue and wait while there are this many items. The limit is exact if all producers
   * have it: only the first in their queue puts. Costs four requests more for each put. Default: no
   * limit but that of the servers, whose reply with the list of items has to be shorter than
   * jute.maxbuffer.
   */
  readonly maxItems?: number | undefined;
  /**
   * The parent of the claims, which then have the names of their items: `/q/taken` for kazoo's
   * LockingQueue on `/q`, whose items are below `/q/entries`; the `lockPath` of Curator's queues.
   * If a claim is deleted by hand, a later claim on the same item may be taken for it. Default:
   * `<path>-aside/claims`, where no two claims have the same name.
   */
  readonly takenPath?: string | undefined;
}

/** An item that is in a queue. */
export interface QueuedItem extends Omit<QueueItem, 'data'> {
  /** Whether a consumer works on it. */
  readonly isClaimed: boolean;
}

/** What distinguishes one kind of queue. */
export interface QueueSetup<Label> {
  readonly path: string;
  /** The znodes below `path` that have the items; undefined if `path` itself has them. */
  readonly shards?: readonly string[];
  readonly names: ItemNames<Label>;
  readonly rankKind: RankKind;
}

/**
 * A queue of any order: what `Queue`, `PriorityQueue`, `DelayQueue`, `IdQueue` and `ShardedQueue`
 * have in common.
 */
export abstract class ItemQueue<Label> implements AsyncDisposable {
  /** The znode of the queue. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #rankKind: RankKind;
  readonly #names: ItemNames<Label>;
  readonly #maxItems: number | undefined;
  readonly #sessions: PerSession<QueueSession<Label>>;
  readonly #closing = new AbortController();
  /** Puts are applied in the order of their calls. */
  #putting: Promise<unknown> = Promise.resolve();
  /**
   * Fills several znodes evenly. Clients that start one after the other do not all begin with the
   * same one.
   */
  #puts: number;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, { path, shards, names, rankKind }: QueueSetup<Label>, options: ItemQueueOptions) {
    checkPlace(source, path);
    const { acl, items = 'persistent', maxItems, takenPath } = options;
    if (items !== 'persistent' && items !== 'ephemeral')
      throw new TypeError(`items are "persistent" or "ephemeral", not "${String(items)}"`);
    if (takenPath !== undefined) checkPath(takenPath);
    checkMaxItems(maxItems);
    this.path = path;
    this.#source = source;
    this.#rankKind = rankKind;
    this.#names = names;
    this.#maxItems = maxItems;
    this.#puts = Number(BigInt.asUintN(31, clientOf(source).sessionId));
    this.#sessions = new PerSession((zk) => new QueueSession(zk, { path, shards, names, rankKind, acl, items, maxItems, takenPath }));
  }

  /** Puts as `put` of each kind of queue does, and rejects as that does. */
  protected async putItems(
    items: readonly Data[],
    labelOf: (signal: AbortSignal) => Label | Promise<Label>,
    options: WaitOptions,
  ): Promise<void> {
    checkArray(items, 'items are');
    for (const item of items) checkData(item);
    if (this.#maxItems !== undefined) checkRoom(items.length, this.#maxItems);
    const ahead = this.#putting;
    const own = this.#within(options, `room in ${this.path}`, async (signal) => {
      const prefix = this.#names.prefixOf(await labelOf(signal));
      await unlessAborted(ahead, signal);
      const turn = this.#puts++;
      await this.#inSessions(signal, async ({ znodes, room }) => {
        const znode = znodes[turn % znodes.length]!;
        if (room === undefined) await znode.put(items, prefix, [], signal);
        else await room.put(items.length, (checks) => znode.put(items, prefix, checks, signal), signal);
      });
    });
    this.#putting = bothSettled(ahead, own);
    await own;
  }

  /** The time of the ensemble, in ms since 1970. Rejects as `putItems` does. */
  protected ensembleTimeMs(signal: AbortSignal): Promise<number> {
    return this.#inSessions(signal, ({ marks }) => marks.nowMs(signal));
  }

  /**
   * Waits for an item, and resolves with it: it is deleted by then, and no other consumer gets it,
   * whatever replies were lost. If this process dies or the session ends before the work is done,
   * the item is lost: at most once. If every item has to be worked on, use `claim`. Skips items in
   * process.
   *
   * Neither `signal` nor `timeoutMs` ends it while it waits for the reply to the delete, so that an
   * item that was taken is always delivered. Rejects with a RecipeError: TimedOut; Closed; Lost,
   * when another client deletes the znode of the wait; with the signal's reason; with
   * SessionExpired and the like, and if their outcome is `unknown`, an item may have been taken;
   * and with NoAuth.
   */
  async take(options: WaitOptions = {}): Promise<QueueItem> {
    checkCount(arguments.length, 1, 'take(options)');
    const item = await this.#within(options, this.#what, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.wait(takeOf, signal)),
    );
    return itemOf(item, this.#rankKind);
  }

  /** The first item that is available now; undefined if there is none. Rejects as `take` does. */
  async tryTake(options: WaitOptions = {}): Promise<QueueItem | undefined> {
    checkCount(arguments.length, 1, 'tryTake(options)');
    const item = await this.#within(options, this.#what, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.first(takeOf, signal)),
    );
    return item && itemOf(item, this.#rankKind);
  }

  /**
   * Takes one item after the other: `for await (const item of queue.items())`. Ends when the queue
   * is closed, and throws as `take` rejects; with `Sessions` it continues when a session ends
   * during a take, and an item that may have been taken then is lost.
   */
  items(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<QueueItem, void, undefined> {
    checkCount(arguments.length, 1, 'items(options)');
    checkCallOptions(options, callOptions.loop, 'items');
    return this.#items(options);
  }

  async *#items(options: Pick<WaitOptions, 'signal'>): AsyncGenerator<QueueItem, void, undefined> {
    while (!this.#closing.signal.aborted) {
      const item = await this.take(options).catch((error: unknown) => {
        if (this.#closing.signal.aborted) return undefined;
        // An item that may have been taken is lost, as when a process ends: the loop continues.
        if (isSessions(this.#source) && isUnsettled(error)) return undefined;
        throw error;
      });
      if (item !== undefined) yield item;
    }
  }

  /**
   * Waits for an item, and resolves with a claim on it. The item stays in the queue until it is
   * `done`; when it is released or the session of the claim ends, another consumer gets it: at
   * least once. Waits and rejects as `take` does.
   */
  async claim(options: WaitOptions = {}): Promise<ClaimedItem> {
    checkCount(arguments.length, 1, 'claim(options)');
    return await this.#within(options, this.#what, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.wait(this.#claimOf, signal), mayClaimAgain),
    );
  }

  /**
   * A claim on the first item that is available now; undefined if there is none. Rejects as `claim`
   * does.
   */
  async tryClaim(options: WaitOptions = {}): Promise<ClaimedItem | undefined> {
    checkCount(arguments.length, 1, 'tryClaim(options)');
    return await this.#within(options, this.#what, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.first(this.#claimOf, signal), mayClaimAgain),
    );
  }

  /**
   * Claims an item, calls `work` with it, and acknowledges it, unless `work` has acknowledged or
   * released it; if `work` fails the item is released. Resolves as `work` does, and rejects as
   * that, as `claim` or as `ClaimedItem.done`.
   */
  async process<Result>(work: (item: ClaimedItem) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'process(work, options)');
    checkFunction(work, 'work');
    await using item = await this.claim(options);
    const result = await work(item);
    if (item.state !== 'released') await item.done();
    return result;
  }

  /**
   * The first item, which stays in the queue, whether or not it is in process; undefined if there
   * is none. Rejects as `Client.getData` does, except with NoNode.
   */
  async peek(options: WaitOptions = {}): Promise<QueueItem | undefined> {
    checkCount(arguments.length, 1, 'peek(options)');
    return await this.#within(options, this.#what, (signal) =>
      this.#inSessions(signal, async ({ znodes }) => {
        for (const znode of znodes) {
          const item = await znode.peek(signal);
          if (item !== undefined) return itemOf(item, this.#rankKind);
        }
        return undefined;
      }),
    );
  }

  /**
   * The items in the queue, in their order, and which of them are in process. Rejects as
   * `Client.getChildren` does, except with NoNode.
   */
  async contents(options: WaitOptions = {}): Promise<readonly QueuedItem[]> {
    checkCount(arguments.length, 1, 'contents(options)');
    return await this.#within(options, `the contents of ${this.path}`, async (signal) => {
      const of = async (znode: QueueZnode<Label>): Promise<QueuedItem[]> => {
        const [items, claimed] = await Promise.all([znode.contents(signal), znode.claimed(signal, false)]);
        return items.map((name) => {
          const { data: _data, ...item } = itemOf(
            { ...name, path: childPath(znode.path, name.name), data: null, version: 0 },
            this.#rankKind,
          );
          return { ...item, isClaimed: claimed.has(name.name) };
        });
      };
      return await this.#inSessions(signal, async ({ znodes }) => (await Promise.all(znodes.map(of))).flat());
    });
  }

  /**
   * How many items there are, including those in process; one cheap request, however many there
   * are. Rejects as `Client.exists` does.
   */
  async size(options: WaitOptions = {}): Promise<number> {
    checkCount(arguments.length, 1, 'size(options)');
    return await this.#within(options, `the size of ${this.path}`, async (signal) => {
      const sizes = await this.#inSessions(signal, ({ znodes }) => Promise.all(znodes.map((znode) => znode.size(signal))));
      return sizes.reduce((sum, each) => sum + each, 0);
    });
  }

  /**
   * Ends all waits, with a RecipeError, Closed, and deletes the marks of this queue, which would
   * otherwise stay as long as the session lives. Items and claims stay. Never rejects.
   */
  async close(): Promise<void> {
    checkCount(arguments.length, 0, 'close()');
    this.#closing.abort(new RecipeError('Closed', `queue ${this.path} is closed`));
    await this.#sessions.latest?.marks.close();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // --- Taking and claiming

  get #what(): string {
    return `an item of ${this.path}`;
  }

  readonly #claimOf = async (znode: QueueZnode<Label>, item: ItemName, look: Look): Promise<ClaimedItem | undefined> => {
    const claim = await znode.claim(item, look);
    return claim && new ClaimedItem(znode, claim, this.#rankKind);
  };

  /**
   * Takes the items that `isMeant` selects, for `remove` of an IdQueue; resolves with how many it
   * has taken. Rejects as `take` does.
   */
  protected async takeAll(isMeant: (item: { readonly id: string | undefined }) => boolean, options: WaitOptions): Promise<number> {
    return await this.#within(options, `the contents of ${this.path}`, async (signal) => {
      let taken = 0;
      await this.#inSessions(signal, async ({ znodes }) => {
        for (const znode of znodes) {
          const look: Look = { signal, watches: false, claimed: undefined, isLate: false };
          for (const item of await znode.contents(signal)) {
            if (isMeant(item) && (await znode.take(item, look)) !== undefined) taken++;
          }
        }
      });
      return taken;
    });
  }

  /** Within the limits of the call, and until the queue is closed. */
  async #within<Result>(options: WaitOptions, what: string, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const closing = this.#closing.signal;
    closing.throwIfAborted();
    using limit = new Limit(this.#source, options, what);
    const forget = onAbort(closing, () => limit.end(closing.reason));
    try {
      return await work(limit.signal);
    } finally {
      forget();
    }
  }

  /**
   * `work` in the current session, and again in the next one if that ends, unless something may
   * have been put or taken by then.
   */
  #inSessions<Result>(
    signal: AbortSignal,
    work: (session: QueueSession<Label>) => Promise<Result>,
    isFinal: (error: unknown) => boolean = isUnsettled,
  ): Promise<Result> {
    return inSessions(this.#source, signal, (zk) => work(this.#sessions.of(zk)), isFinal);
  }
}

/** A claim ends with its session, whether or not its creation is known. */
const mayClaimAgain = () => false;

function takeOf<Label>(znode: QueueZnode<Label>, item: ItemName, look: Look) {
  return znode.take(item, look);
}
