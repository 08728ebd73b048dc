/**
 * The core of all caches: a copy of a znode, or of it and everything below, kept up to date by a
 * watch loop.
 *
 * An event shows which path to read. A `Reread` says that events may be missing: then everything is
 * read again, and compared with the copy. In both cases only a read changes the copy (except a
 * deletion whose txn is known). So each znode is shown as some reply had it, and, as replies arrive
 * in the order of the server's txns, never in an earlier state again:
 *
 *     Reread ──> survey the root ──reply──> survey its children ... ──all replies──> in step
 *     event  ──> look at its path ─reply──> created, changed, deleted ──> the listener
 *     connection lost ──> out of step: reads in flight fail; the next connection brings a Reread
 *
 * No polling, and no timer except the pause before a read that an overloaded server rejected.
 */
import { type ClientView, KeeperError, type Stat, type WatchLoop, type WatchLoopEvent } from '@tskeeper/client';
import { childPath, parentOf } from '@tskeeper/client/internal';
import { isRecipeError } from '../recipe-error.ts';
import { followSessions, isSessions, type SessionSource } from '../sessions/session-source.ts';
import { pause } from '../waiting/promises.ts';
import type { CacheChange } from './cached-znode.ts';
import { CacheContents, type CacheContentsOptions } from './cache-contents.ts';
import { ReadQueue, type ReadKind } from './read-queue.ts';

export interface CacheUpdaterOptions<Data> extends CacheContentsOptions<Data> {
  /**
   * How many levels below the root are shown; 0 for the root alone, and then only that is watched.
   */
  readonly maxDepth: number;
  readonly include: ((path: string) => boolean) | undefined;
  readonly concurrency: number;
}

export interface CacheUpdaterListener<Data> {
  onChange(change: CacheChange<Data>): void;
  /** Called once, as the last. undefined when the program has closed the cache or the client. */
  onEnd(failure: { readonly reason: unknown } | undefined): void;
}

/**
 * The pause before repeating a read that was rejected for a transient reason, such as ThrottledOp:
 * short enough to recover soon, long enough not to add to the load.
 */
const rereadPauseMs = 1000;

/**
 * The result of a visit. `lost`: nothing can be done about it before the next Reread. `busy`:
 * repeat it, but not at once.
 */
type ReadOutcome = 'done' | 'lost' | 'busy';

export class CacheUpdater<Data> {
  readonly contents: CacheContents<Data>;
  readonly #source: SessionSource;
  readonly #root: string;
  readonly #options: CacheUpdaterOptions<Data>;
  readonly #listener: CacheUpdaterListener<Data>;
  readonly #reads: ReadQueue;
  readonly #stopFollowing: () => void;
  /**
   * The part of the survey without a reply. Empty: everything has been read since the last Reread.
   */
  readonly #pendingResync = new Set<string>();
  /** The current session, or the last one; undefined until there is one. */
  #active: { readonly zk: ClientView; readonly loop: WatchLoop; readonly offState: () => void } | undefined;
  /** Aborted when the connection is lost, or the cache has ended. */
  #connection = new AbortController();
  #isSynced = false;
  #hasEnded = false;

  constructor(source: SessionSource, root: string, options: CacheUpdaterOptions<Data>, listener: CacheUpdaterListener<Data>) {
    this.#reads = new ReadQueue(options.concurrency, (path, kind) => this.#performRead(path, kind));
    this.#source = source;
    this.#root = root;
    this.#options = options;
    this.#listener = listener;
    this.contents = new CacheContents(root, options, (change) => listener.onChange(change));
    this.#stopFollowing = this.#followSessions();
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  close(): void {
    this.#end(undefined);
  }

  // --- Sessions

  #followSessions(): () => void {
    const source = this.#source;
    if (!isSessions(source)) {
      this.#attach(source);
      return () => undefined;
    }
    const onEnd = (reason: unknown) => {
      const { endReason } = source.client;
      const isFailure = endReason === 'authFailed' || endReason === 'moved';
      if (!isRecipeError(reason)) this.#end({ reason });
      else if (!isFailure) this.#end(undefined);
      // If there is a loop, it ends with the client's own error.
      else if (this.#active === undefined) this.#end({ reason });
    };
    return followSessions(source, { onSession: (zk) => this.#attach(zk), onEnd });
  }

  /**
   * The Reread with which the loop begins compares what is shown from the last session with the
   * tree.
   */
  #attach(zk: ClientView): void {
    const loop = zk.watch(this.#root, { recursive: this.#options.maxDepth > 0 });
    const offState = zk.on('state', ({ state }) => {
      if (state === 'Disconnected') this.#onDisconnected();
    });
    this.#active = { zk, loop, offState };
    void this.#run(zk, loop);
  }

  async #run(zk: ClientView, loop: WatchLoop): Promise<void> {
    try {
      for await (const event of loop) {
        if (this.#active?.zk === zk) this.#onEvent(event);
      }
      this.#end(undefined);
    } catch (reason) {
      if (isSessions(this.#source) && KeeperError.is(reason, 'SessionExpired')) this.#onExpired(zk);
      else this.#end({ reason });
    }
  }

  /** What is shown stays, and is compared in the next session, which may have begun already. */
  #onExpired(zk: ClientView): void {
    if (this.#active?.zk !== zk || this.#hasEnded) return;
    this.#active.offState();
    this.#onDisconnected();
  }

  /** For reads. There are no visits before the first session. */
  get #zk(): ClientView {
    return this.#active!.zk;
  }

  // --- Events

  #onEvent(event: WatchLoopEvent): void {
    switch (event.type) {
      case 'Reread':
        this.#markOutOfSync();
        this.#pendingResync.clear();
        this.#schedule(this.#root, 'survey');
        break;
      case 'NodeChildrenChanged':
        // Only a cache of one znode receives this, and does not need it.
        break;
      case 'NodeCreated':
      case 'NodeDataChanged':
        if (this.#isIncluded(event.path) && !this.#isKnown(event.path, event.type, event.zxid)) this.#scheduleRead(event.path);
        break;
      case 'NodeDeleted':
        if (this.#isIncluded(event.path)) this.#onDeleted(event.path, event.zxid);
        break;
      default:
        event satisfies never;
    }
  }

  #onDisconnected(): void {
    this.#connection.abort();
    this.#connection = new AbortController();
    this.#markOutOfSync();
    this.#reads.clear();
  }

  #markOutOfSync(): void {
    if (!this.#isSynced) return;
    this.#isSynced = false;
    this.#listener.onChange({ kind: 'outOfStep' });
  }

  #isIncluded(path: string): boolean {
    const { maxDepth, include } = this.#options;
    if (path === this.#root) return true;
    return depthOf(path) - depthOf(this.#root) <= maxDepth && include?.(path) !== false;
  }

  /**
   * Whether what is shown already includes the change. Servers before 3.9 do not send the txn of an
   * event.
   */
  #isKnown(path: string, type: 'NodeCreated' | 'NodeDataChanged', zxid: bigint | undefined): boolean {
    const stat = this.contents.get(path)?.stat;
    if (stat === undefined || zxid === undefined) return false;
    return (type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid;
  }

  #scheduleRead(path: string): void {
    // Its parent is not shown, so neither is this znode; if the parent were being read, it would be
    // pending.
    if (path !== this.#root && !this.#isShownOrPending(parentOf(path))) return;
    // A znode that becomes readable may have children for which no event was sent.
    if (this.contents.isUnreadable(path)) this.#schedule(path, 'survey');
    else this.#reads.enqueue(path, 'look');
  }

  #isShownOrPending(path: string): boolean {
    return this.contents.get(path) !== undefined || this.#reads.isPending(path);
  }

  #onDeleted(path: string, zxid: bigint | undefined): void {
    const shown = this.contents.get(path);
    if (this.#reads.isPending(path)) {
      this.#reads.enqueue(path, 'look');
    } else if (shown === undefined) {
      this.contents.removeSubtree(path);
    } else if (zxid === undefined || this.contents.znodes.childNames(path).size > 0) {
      // Its children were deleted before it, so those shown belong to a later znode of the same
      // name.
      this.#reads.enqueue(path, 'look');
    } else if (shown.stat.czxid < zxid) {
      this.contents.removeSubtree(path);
    }
    // Otherwise it was created later, or in the same txn after the deletion: the znode that is
    // shown is not the one that was deleted.
  }

  // --- Reads

  #schedule(path: string, kind: ReadKind): void {
    if (kind === 'survey') this.#pendingResync.add(path);
    this.#reads.enqueue(path, kind);
  }

  async #performRead(path: string, kind: ReadKind): Promise<void> {
    let outcome: ReadOutcome;
    try {
      outcome = await (kind === 'look' ? this.#readOne(path) : this.#resync(path));
    } catch (error) {
      outcome = this.#onReadError(path, error);
    }
    if (outcome === 'busy') {
      // After a reconnect a Reread starts the reads again.
      if (await this.#pauseUnlessDisconnected()) this.#reads.enqueue(path, kind);
    } else if (outcome === 'done' && kind === 'survey') {
      this.#onResynced(path);
    }
  }

  #onResynced(path: string): void {
    // Requested again meanwhile, for example by a Reread: then that one counts.
    if (this.#hasEnded || this.#reads.followUpOf(path) === 'survey') return;
    this.#pendingResync.delete(path);
    if (this.#pendingResync.size > 0 || this.#isSynced) return;
    this.#isSynced = true;
    this.#listener.onChange({ kind: 'inStep' });
  }

  /** In its current state. */
  async #readOne(path: string): Promise<ReadOutcome> {
    if (!this.contents.wantsData(path)) return this.#apply(path, await this.#statOf(path), undefined);
    const { data, stat } = await this.#zk.getData(path, noRetry);
    return this.#apply(path, stat, data);
  }

  /**
   * One request for each unchanged znode, and one more for a znode that is new, or has new data,
   * and has children.
   */
  #resync(path: string): Promise<ReadOutcome> {
    const isShown = this.contents.get(path) !== undefined;
    if (this.#isLeaf(path)) return isShown ? this.#readOneAgain(path) : this.#readOne(path);
    return isShown || !this.contents.wantsData(path) ? this.#resyncByChildren(path) : this.#resyncByData(path);
  }

  async #readOneAgain(path: string): Promise<ReadOutcome> {
    const stat = await this.#statOf(path);
    return this.contents.isUpToDate(path, stat) ? this.#apply(path, stat, undefined) : this.#readOne(path);
  }

  /** For a znode that is new: the reply with its data shows whether it has children. */
  async #resyncByData(path: string): Promise<ReadOutcome> {
    const { data, stat } = await this.#zk.getData(path, noRetry);
    const outcome = this.#apply(path, stat, data);
    if (outcome !== 'done' || stat.numChildren === 0) return outcome;
    const { children } = await this.#zk.getChildren(path, noRetry);
    return this.#applyChildren(path, children);
  }

  async #resyncByChildren(path: string): Promise<ReadOutcome> {
    const { children, stat } = await this.#zk.getChildren(path, noRetry);
    if (this.contents.isUpToDate(path, stat)) {
      const outcome = this.#apply(path, stat, undefined);
      return outcome === 'done' ? this.#applyChildren(path, children) : outcome;
    }
    this.#applyChildren(path, children);
    return this.#readOne(path);
  }

  #isLeaf(path: string): boolean {
    return depthOf(path) - depthOf(this.#root) >= this.#options.maxDepth;
  }

  #statOf(path: string): Promise<Stat | null> {
    return this.#zk.exists(path, noRetry);
  }

  #onReadError(path: string, error: unknown): ReadOutcome {
    if (this.#hasEnded) return 'lost';
    if (!KeeperError.is(error)) return this.#fail(error);
    switch (error.code) {
      case 'NoNode':
        return this.#apply(path, null, undefined);
      case 'NoAuth':
        this.contents.markUnreadable(path, error);
        return 'done';
      case 'ConnectionLoss':
      case 'RequestTimeout':
      // The loop receives these as well, and decides how it ends.
      case 'SessionExpired':
      case 'SessionMoved':
      case 'AuthFailed':
        return 'lost';
      default:
        return error.retryable ? 'busy' : this.#fail(error);
    }
  }

  /** Whether the visit can be repeated. */
  async #pauseUnlessDisconnected(): Promise<boolean> {
    try {
      await pause(this.#zk.clock, rereadPauseMs, this.#connection.signal);
      return true;
    } catch {
      return false;
    }
  }

  #fail(reason: unknown): ReadOutcome {
    this.#end({ reason });
    return 'lost';
  }

  // --- What is shown

  #apply(path: string, stat: Stat | null, data: Uint8Array | null | undefined): ReadOutcome {
    if (this.#hasEnded) return 'lost';
    // If its parent is still to be read, survey that, and so its children.
    if (!this.contents.apply(path, stat, data) && this.#reads.isPending(parentOf(path))) this.#schedule(parentOf(path), 'survey');
    return 'done';
  }

  #applyChildren(path: string, names: readonly string[]): ReadOutcome {
    if (this.#hasEnded) return 'lost';
    // Not shown, as its parent is not; or gone between two replies.
    if (this.contents.get(path) === undefined) return 'done';
    const children = new Set(names.map((name) => childPath(path, name)));
    this.contents.retainChildren(path, children);
    for (const child of children) if (this.#isIncluded(child)) this.#schedule(child, 'survey');
    return 'done';
  }

  // --- The end

  #end(failure: { readonly reason: unknown } | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#isSynced = false;
    this.#active?.offState();
    // The constructor may not have stored it yet.
    queueMicrotask(() => this.#stopFollowing());
    this.#reads.end();
    this.#connection.abort();
    void this.#active?.loop.return();
    this.#listener.onEnd(failure);
  }
}

/** Failures are handled here. The client's own retries would delay the requests after them. */
const noRetry = { retry: false } as const;

function depthOf(path: string): number {
  if (path === '/') return 0;
  let depth = 0;
  for (let at = 0; at < path.length; at++) if (path.charCodeAt(at) === 0x2f) depth++;
  return depth;
}
