/**
 * What all queues have in common. consumers.ts waits for items, capacity.ts for room.
 *
 *     /jobs                               stays when it is empty, so that no name is used twice
 *       ├─ queue-0000000007               items; nothing else, as other clients expect
 *       └─ queue-0000000008
 *     /jobs-aside                         containers
 *       ├─ claims/queue-0000000007-1      a consumer works on 7: its ephemeral
 *       ├─ consumers/_c_2b7e...-lock-...  the queue of those that wait for an item
 *       ├─ producers/_c_91aa...-lock-...  the queue of those that wait for room (`maxItems`)
 *       └─ marks/_c_4d0c...-mark-...      versions show what was applied (markers/idempotency-markers.ts)
 */
import type { Acl, Data } from '@tskeeper/client';
import { childPath, onAbort } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkArray,
  checkCallOptions,
  checkArgumentCount,
  checkData,
  checkFunction,
  checkPath,
  checkSourceAndPath,
} from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { currentClient, runAcrossSessions, PerSession, isSessions, type SessionSource } from '../sessions/session-source.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import { isUnsettled } from '../waiting/own-znode.ts';
import { bothSettled } from '../waiting/promises.ts';
import type { WaitOptions } from '../wait-options.ts';
import { ClaimedItem } from './claimed-item.ts';
import type { ParsedItemName, ItemNaming } from './item-names.ts';
import { toQueueItem, type QueueItem, type RankKind } from './queue-item.ts';
import { QueueSession } from './queue-session.ts';
import type { ItemSearch, QueueShard } from './queue-shard.ts';
import { checkMaxItems, checkPutCount } from './capacity.ts';

/**
 * The options of all kinds of queues. All clients of a queue use the same, except `maxItems`, which
 * concerns producers only.
 */
export interface BaseQueueOptions {
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
  readonly claimsPath?: string | undefined;
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
  readonly naming: ItemNaming<Label>;
  readonly rankKind: RankKind;
}

/**
 * A queue of any order: what `Queue`, `PriorityQueue`, `DelayQueue`, `IdQueue` and `ShardedQueue`
 * have in common.
 */
export abstract class BaseQueue<Label> implements AsyncDisposable {
  /** The znode of the queue. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #rankKind: RankKind;
  readonly #naming: ItemNaming<Label>;
  readonly #maxItems: number | undefined;
  readonly #sessions: PerSession<QueueSession<Label>>;
  readonly #closing = new AbortController();
  /** Puts are applied in the order of their calls. */
  #lastPut: Promise<unknown> = Promise.resolve();
  /**
   * Fills several znodes evenly. Clients that start one after the other do not all begin with the
   * same one.
   */
  #nextPutShard: number;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, { path, shards, naming, rankKind }: QueueSetup<Label>, options: BaseQueueOptions) {
    checkSourceAndPath(source, path);
    const { acl, items = 'persistent', maxItems, claimsPath } = options;
    if (items !== 'persistent' && items !== 'ephemeral')
      throw new TypeError(`items must be "persistent" or "ephemeral", not "${String(items)}"`);
    if (claimsPath !== undefined) checkPath(claimsPath);
    checkMaxItems(maxItems);
    this.path = path;
    this.#source = source;
    this.#rankKind = rankKind;
    this.#naming = naming;
    this.#maxItems = maxItems;
    this.#nextPutShard = Number(BigInt.asUintN(31, currentClient(source).sessionId));
    this.#sessions = new PerSession((zk) => new QueueSession(zk, { path, shards, naming, rankKind, acl, items, maxItems, claimsPath }));
  }

  /** Puts as `put` of each kind of queue does, and rejects as that does. */
  protected async putItems(
    items: readonly Data[],
    labelOf: (signal: AbortSignal) => Label | Promise<Label>,
    options: WaitOptions,
  ): Promise<void> {
    checkArray(items, 'items');
    for (const item of items) checkData(item);
    if (this.#maxItems !== undefined) checkPutCount(items.length, this.#maxItems);
    const previousPut = this.#lastPut;
    const own = this.#withDeadline(options, `room in ${this.path}`, async (signal) => {
      const prefix = this.#naming.prefixOf(await labelOf(signal));
      await unlessAborted(previousPut, signal);
      const turn = this.#nextPutShard++;
      await this.#inSessions(signal, async ({ shards, capacity }) => {
        const znode = shards[turn % shards.length]!;
        if (capacity === undefined) await znode.put(items, prefix, [], signal);
        else await capacity.put(items.length, (checks) => znode.put(items, prefix, checks, signal), signal);
      });
    });
    this.#lastPut = bothSettled(previousPut, own);
    await own;
  }

  /** The time of the ensemble, in ms since 1970. Rejects as `putItems` does. */
  protected ensembleTimeMs(signal: AbortSignal): Promise<number> {
    return this.#inSessions(signal, ({ markers }) => markers.leaderNowMs(signal));
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
    checkArgumentCount(arguments.length, 1, 'take(options)');
    const item = await this.#withDeadline(options, this.#itemText, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.wait(takeItem, signal)),
    );
    return toQueueItem(item, this.#rankKind);
  }

  /** The first item that is available now; undefined if there is none. Rejects as `take` does. */
  async tryTake(options: WaitOptions = {}): Promise<QueueItem | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryTake(options)');
    const item = await this.#withDeadline(options, this.#itemText, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.first(takeItem, signal)),
    );
    return item && toQueueItem(item, this.#rankKind);
  }

  /**
   * Takes one item after the other: `for await (const item of queue.items())`. Ends when the queue
   * is closed, and throws as `take` rejects; with `Sessions` it continues when a session ends
   * during a take, and an item that may have been taken then is lost.
   */
  items(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<QueueItem, void, undefined> {
    checkArgumentCount(arguments.length, 1, 'items(options)');
    checkCallOptions(options, callOptionTypes.loop, 'items');
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
   * acknowledged; when it is released or the session of the claim ends, another consumer gets it:
   * at least once. Waits and rejects as `take` does.
   */
  async claim(options: WaitOptions = {}): Promise<ClaimedItem> {
    checkArgumentCount(arguments.length, 1, 'claim(options)');
    return await this.#withDeadline(options, this.#itemText, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.wait(this.#claimOf, signal), neverFinal),
    );
  }

  /**
   * A claim on the first item that is available now; undefined if there is none. Rejects as `claim`
   * does.
   */
  async tryClaim(options: WaitOptions = {}): Promise<ClaimedItem | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryClaim(options)');
    return await this.#withDeadline(options, this.#itemText, (signal) =>
      this.#inSessions(signal, ({ consumers }) => consumers.first(this.#claimOf, signal), neverFinal),
    );
  }

  /**
   * Claims an item, calls `work` with it, and acknowledges it, unless `work` has acknowledged or
   * released it; if `work` fails the item is released. Resolves as `work` does, and rejects as
   * that, as `claim` or as `ClaimedItem.acknowledge`.
   */
  async process<Result>(work: (item: ClaimedItem) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'process(work, options)');
    checkFunction(work, 'work');
    await using item = await this.claim(options);
    const result = await work(item);
    if (item.state !== 'released') await item.acknowledge();
    return result;
  }

  /**
   * The first item, which stays in the queue, whether or not it is in process; undefined if there
   * is none. Rejects as `Client.getData` does, except with NoNode.
   */
  async peek(options: WaitOptions = {}): Promise<QueueItem | undefined> {
    checkArgumentCount(arguments.length, 1, 'peek(options)');
    return await this.#withDeadline(options, this.#itemText, (signal) =>
      this.#inSessions(signal, async ({ shards }) => {
        for (const znode of shards) {
          const item = await znode.peek(signal);
          if (item !== undefined) return toQueueItem(item, this.#rankKind);
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
    checkArgumentCount(arguments.length, 1, 'contents(options)');
    return await this.#withDeadline(options, `the contents of ${this.path}`, async (signal) => {
      const contentsOf = async (znode: QueueShard<Label>): Promise<QueuedItem[]> => {
        const [items, claimed] = await Promise.all([znode.contents(signal), znode.claimed(signal, false)]);
        return items.map((name) => {
          const { data: _data, ...item } = toQueueItem(
            { ...name, path: childPath(znode.path, name.name), data: null, version: 0 },
            this.#rankKind,
          );
          return { ...item, isClaimed: claimed.has(name.name) };
        });
      };
      return await this.#inSessions(signal, async ({ shards }) => (await Promise.all(shards.map(contentsOf))).flat());
    });
  }

  /**
   * How many items there are, including those in process; one cheap request, however many there
   * are. Rejects as `Client.exists` does.
   */
  async size(options: WaitOptions = {}): Promise<number> {
    checkArgumentCount(arguments.length, 1, 'size(options)');
    return await this.#withDeadline(options, `the size of ${this.path}`, async (signal) => {
      const sizes = await this.#inSessions(signal, ({ shards }) => Promise.all(shards.map((znode) => znode.size(signal))));
      return sizes.reduce((sum, each) => sum + each, 0);
    });
  }

  /**
   * Ends all waits, with a RecipeError, Closed, and deletes the marks of this queue, which would
   * otherwise stay as long as the session lives. Items and claims stay. Never rejects.
   */
  async close(): Promise<void> {
    checkArgumentCount(arguments.length, 0, 'close()');
    this.#closing.abort(new RecipeError('Closed', `queue ${this.path} is closed`));
    await this.#sessions.latest?.markers.close();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // --- Taking and claiming

  get #itemText(): string {
    return `an item of ${this.path}`;
  }

  readonly #claimOf = async (znode: QueueShard<Label>, item: ParsedItemName, search: ItemSearch): Promise<ClaimedItem | undefined> => {
    const claim = await znode.claim(item, search);
    return claim && new ClaimedItem(znode, claim, this.#rankKind);
  };

  /**
   * Takes the items that `matches` selects, for `remove` of an IdQueue; resolves with how many it
   * has taken. Rejects as `take` does.
   */
  protected async takeAll(matches: (item: { readonly id: string | undefined }) => boolean, options: WaitOptions): Promise<number> {
    return await this.#withDeadline(options, `the contents of ${this.path}`, async (signal) => {
      let taken = 0;
      await this.#inSessions(signal, async ({ shards }) => {
        for (const znode of shards) {
          const search: ItemSearch = { signal, watches: false, claimed: undefined, isListStale: false };
          for (const item of await znode.contents(signal)) {
            if (matches(item) && (await znode.take(item, search)) !== undefined) taken++;
          }
        }
      });
      return taken;
    });
  }

  /** Within the limits of the call, and until the queue is closed. */
  async #withDeadline<Result>(options: WaitOptions, what: string, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const closing = this.#closing.signal;
    closing.throwIfAborted();
    using deadline = new Deadline(this.#source, options, what);
    const removeCloseListener = onAbort(closing, () => deadline.abort(closing.reason));
    try {
      return await work(deadline.signal);
    } finally {
      removeCloseListener();
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
    return runAcrossSessions(this.#source, signal, (zk) => work(this.#sessions.get(zk)), isFinal);
  }
}

/** A claim ends with its session, whether or not its creation is known. */
const neverFinal = () => false;

function takeItem<Label>(znode: QueueShard<Label>, item: ParsedItemName, search: ItemSearch) {
  return znode.take(item, search);
}
