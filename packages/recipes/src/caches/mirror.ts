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
import { eachSession, isSessions, type SessionSource } from '../sessions/session-source.ts';
import { pause } from '../waiting/pause.ts';
import type { CacheChange } from './cached-znode.ts';
import { Shown, type ShownOptions } from './shown.ts';
import { Visits, type VisitKind } from './visits.ts';

export interface MirrorOptions<Data> extends ShownOptions<Data> {
  /**
   * How many levels below the root are shown; 0 for the root alone, and then only that is watched.
   */
  readonly maxDepth: number;
  readonly include: ((path: string) => boolean) | undefined;
  readonly concurrency: number;
}

export interface MirrorListener<Data> {
  tell(change: CacheChange<Data>): void;
  /** Called once, as the last. undefined when the program has closed the cache or the client. */
  ended(failure: { readonly reason: unknown } | undefined): void;
}

/**
 * The pause before repeating a read that was rejected for a transient reason, such as ThrottledOp:
 * short enough to recover soon, long enough not to add to the load.
 */
const busyPauseMs = 1000;

/**
 * The result of a visit. `lost`: nothing can be done about it before the next Reread. `busy`:
 * repeat it, but not at once.
 */
type Visited = 'done' | 'lost' | 'busy';

export class Mirror<Data> {
  readonly shown: Shown<Data>;
  readonly #source: SessionSource;
  readonly #root: string;
  readonly #options: MirrorOptions<Data>;
  readonly #listener: MirrorListener<Data>;
  readonly #visits: Visits;
  readonly #unfollow: () => void;
  /**
   * The part of the survey without a reply. Empty: everything has been read since the last Reread.
   */
  readonly #toSurvey = new Set<string>();
  /** The current session, or the last one; undefined until there is one. */
  #serving: { readonly zk: ClientView; readonly loop: WatchLoop; readonly offState: () => void } | undefined;
  /** Aborted when the connection is lost, or the cache has ended. */
  #connection = new AbortController();
  #isInStep = false;
  #isOver = false;

  constructor(source: SessionSource, root: string, options: MirrorOptions<Data>, listener: MirrorListener<Data>) {
    this.#visits = new Visits(options.concurrency, (path, kind) => this.#visit(path, kind));
    this.#source = source;
    this.#root = root;
    this.#options = options;
    this.#listener = listener;
    this.shown = new Shown(root, options, (change) => listener.tell(change));
    this.#unfollow = this.#follow();
  }

  get isInStep(): boolean {
    return this.#isInStep;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  close(): void {
    this.#end(undefined);
  }

  // --- Sessions

  #follow(): () => void {
    const source = this.#source;
    if (!isSessions(source)) {
      this.#serve(source);
      return () => undefined;
    }
    const ended = (reason: unknown) => {
      const { closedBecause } = source.client;
      const isFailure = closedBecause === 'authFailed' || closedBecause === 'moved';
      if (!isRecipeError(reason)) this.#end({ reason });
      else if (!isFailure) this.#end(undefined);
      // If there is a loop, it ends with the client's own error.
      else if (this.#serving === undefined) this.#end({ reason });
    };
    return eachSession(source, { begin: (zk) => this.#serve(zk), ended });
  }

  /**
   * The Reread with which the loop begins compares what is shown from the last session with the
   * tree.
   */
  #serve(zk: ClientView): void {
    const loop = zk.watch(this.#root, { recursive: this.#options.maxDepth > 0 });
    const offState = zk.on('state', ({ state }) => {
      if (state === 'Disconnected') this.#lost();
    });
    this.#serving = { zk, loop, offState };
    void this.#run(zk, loop);
  }

  async #run(zk: ClientView, loop: WatchLoop): Promise<void> {
    try {
      for await (const event of loop) {
        if (this.#serving?.zk === zk) this.#heed(event);
      }
      this.#end(undefined);
    } catch (reason) {
      if (isSessions(this.#source) && KeeperError.is(reason, 'SessionExpired')) this.#onExpired(zk);
      else this.#end({ reason });
    }
  }

  /** What is shown stays, and is compared in the next session, which may have begun already. */
  #onExpired(zk: ClientView): void {
    if (this.#serving?.zk !== zk || this.#isOver) return;
    this.#serving.offState();
    this.#lost();
  }

  /** For reads. There are no visits before the first session. */
  get #zk(): ClientView {
    return this.#serving!.zk;
  }

  // --- Events

  #heed(event: WatchLoopEvent): void {
    switch (event.type) {
      case 'Reread':
        this.#fallOutOfStep();
        this.#toSurvey.clear();
        this.#ask(this.#root, 'survey');
        break;
      case 'NodeChildrenChanged':
        // Only a cache of one znode receives this, and does not need it.
        break;
      case 'NodeCreated':
      case 'NodeDataChanged':
        if (this.#isWanted(event.path) && !this.#isKnown(event.path, event.type, event.zxid)) this.#lookAt(event.path);
        break;
      case 'NodeDeleted':
        if (this.#isWanted(event.path)) this.#onDeleted(event.path, event.zxid);
        break;
      default:
        event satisfies never;
    }
  }

  #lost(): void {
    this.#connection.abort();
    this.#connection = new AbortController();
    this.#fallOutOfStep();
    this.#visits.clear();
  }

  #fallOutOfStep(): void {
    if (!this.#isInStep) return;
    this.#isInStep = false;
    this.#listener.tell({ kind: 'outOfStep' });
  }

  #isWanted(path: string): boolean {
    const { maxDepth, include } = this.#options;
    if (path === this.#root) return true;
    return depthOf(path) - depthOf(this.#root) <= maxDepth && include?.(path) !== false;
  }

  /**
   * Whether what is shown already includes the change. Servers before 3.9 do not send the txn of an
   * event.
   */
  #isKnown(path: string, type: 'NodeCreated' | 'NodeDataChanged', zxid: bigint | undefined): boolean {
    const stat = this.shown.get(path)?.stat;
    if (stat === undefined || zxid === undefined) return false;
    return (type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid;
  }

  #lookAt(path: string): void {
    // Its parent is not shown, so neither is this znode; if the parent were being read, it would be
    // pending.
    if (path !== this.#root && !this.#isShownOrPending(parentOf(path))) return;
    // A znode that becomes readable may have children for which no event was sent.
    if (this.shown.isUnreadable(path)) this.#ask(path, 'survey');
    else this.#visits.ask(path, 'look');
  }

  #isShownOrPending(path: string): boolean {
    return this.shown.get(path) !== undefined || this.#visits.isPending(path);
  }

  #onDeleted(path: string, zxid: bigint | undefined): void {
    const shown = this.shown.get(path);
    if (this.#visits.isPending(path)) {
      this.#visits.ask(path, 'look');
    } else if (shown === undefined) {
      this.shown.forget(path);
    } else if (zxid === undefined || this.shown.znodes.namesBelow(path).size > 0) {
      // Its children were deleted before it, so those shown belong to a later znode of the same
      // name.
      this.#visits.ask(path, 'look');
    } else if (shown.stat.czxid < zxid) {
      this.shown.forget(path);
    }
    // Otherwise it was created later, or in the same txn after the deletion: the znode that is
    // shown is not the one that was deleted.
  }

  // --- Reads

  #ask(path: string, kind: VisitKind): void {
    if (kind === 'survey') this.#toSurvey.add(path);
    this.#visits.ask(path, kind);
  }

  async #visit(path: string, kind: VisitKind): Promise<void> {
    let visited: Visited;
    try {
      visited = await (kind === 'look' ? this.#readOne(path) : this.#survey(path));
    } catch (error) {
      visited = this.#onRefusal(path, error);
    }
    if (visited === 'busy') {
      // After a reconnect a Reread starts the reads again.
      if (await this.#hasPaused()) this.#visits.ask(path, kind);
    } else if (visited === 'done' && kind === 'survey') {
      this.#onSurveyed(path);
    }
  }

  #onSurveyed(path: string): void {
    // Requested again meanwhile, for example by a Reread: then that one counts.
    if (this.#isOver || this.#visits.following(path) === 'survey') return;
    this.#toSurvey.delete(path);
    if (this.#toSurvey.size > 0 || this.#isInStep) return;
    this.#isInStep = true;
    this.#listener.tell({ kind: 'inStep' });
  }

  /** In its current state. */
  async #readOne(path: string): Promise<Visited> {
    if (!this.shown.wantsData(path)) return this.#take(path, await this.#statOf(path), undefined);
    const { data, stat } = await this.#zk.getData(path, once);
    return this.#take(path, stat, data);
  }

  /**
   * One request for each unchanged znode, and one more for a znode that is new, or has new data,
   * and has children.
   */
  #survey(path: string): Promise<Visited> {
    const isShown = this.shown.get(path) !== undefined;
    if (this.#isLeaf(path)) return isShown ? this.#readOneAgain(path) : this.#readOne(path);
    return isShown || !this.shown.wantsData(path) ? this.#surveyByNames(path) : this.#surveyByData(path);
  }

  async #readOneAgain(path: string): Promise<Visited> {
    const stat = await this.#statOf(path);
    return this.shown.isAs(path, stat) ? this.#take(path, stat, undefined) : this.#readOne(path);
  }

  /** For a znode that is new: the reply with its data shows whether it has children. */
  async #surveyByData(path: string): Promise<Visited> {
    const { data, stat } = await this.#zk.getData(path, once);
    const taken = this.#take(path, stat, data);
    if (taken !== 'done' || stat.numChildren === 0) return taken;
    const { children } = await this.#zk.getChildren(path, once);
    return this.#takeNames(path, children);
  }

  async #surveyByNames(path: string): Promise<Visited> {
    const { children, stat } = await this.#zk.getChildren(path, once);
    if (this.shown.isAs(path, stat)) {
      const taken = this.#take(path, stat, undefined);
      return taken === 'done' ? this.#takeNames(path, children) : taken;
    }
    this.#takeNames(path, children);
    return this.#readOne(path);
  }

  #isLeaf(path: string): boolean {
    return depthOf(path) - depthOf(this.#root) >= this.#options.maxDepth;
  }

  #statOf(path: string): Promise<Stat | null> {
    return this.#zk.exists(path, once);
  }

  #onRefusal(path: string, error: unknown): Visited {
    if (this.#isOver) return 'lost';
    if (!KeeperError.is(error)) return this.#fail(error);
    switch (error.code) {
      case 'NoNode':
        return this.#take(path, null, undefined);
      case 'NoAuth':
        this.shown.seal(path, error);
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
  async #hasPaused(): Promise<boolean> {
    try {
      await pause(this.#zk.clock, busyPauseMs, this.#connection.signal);
      return true;
    } catch {
      return false;
    }
  }

  #fail(reason: unknown): Visited {
    this.#end({ reason });
    return 'lost';
  }

  // --- What is shown

  #take(path: string, stat: Stat | null, data: Uint8Array | null | undefined): Visited {
    if (this.#isOver) return 'lost';
    // If its parent is still to be read, survey that, and so its children.
    if (!this.shown.take(path, stat, data) && this.#visits.isPending(parentOf(path))) this.#ask(parentOf(path), 'survey');
    return 'done';
  }

  #takeNames(path: string, names: readonly string[]): Visited {
    if (this.#isOver) return 'lost';
    // Not shown, as its parent is not; or gone between two replies.
    if (this.shown.get(path) === undefined) return 'done';
    const children = new Set(names.map((name) => childPath(path, name)));
    this.shown.keepChildren(path, children);
    for (const child of children) if (this.#isWanted(child)) this.#ask(child, 'survey');
    return 'done';
  }

  // --- The end

  #end(failure: { readonly reason: unknown } | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isInStep = false;
    this.#serving?.offState();
    // The constructor may not have stored it yet.
    queueMicrotask(() => this.#unfollow());
    this.#visits.end();
    this.#connection.abort();
    void this.#serving?.loop.return();
    this.#listener.ended(failure);
  }
}

/** Failures are handled here. The client's own retries would delay the requests after them. */
const once = { retry: false } as const;

function depthOf(path: string): number {
  if (path === '/') return 0;
  let depth = 0;
  for (let at = 0; at < path.length; at++) if (path.charCodeAt(at) === 0x2f) depth++;
  return depth;
}
