/**
 * What all caches are made of: a copy of a znode, or of it and what is below, kept by a watch loop.
 *
 * An event says where to look. A `Reread` says that events may be missing: then everything is surveyed, and compared with what is shown. Either way it
 * is a read that changes the copy (a deletion whose txn is known apart), so a znode is shown only as some answer has had it, and as
 * answers come in the order of the server's txns, never as it was before:
 *
 *     Reread ──> survey the root ──answered──> survey its children ... ──all answered──> in step
 *     event  ──> look at its path ─answered──> created, changed, deleted ──> those who listen
 *     connection lost ──> out of step: what is under way fails, and a Reread comes with the next connection
 *
 * No polling, and no timer but the pause before a read that a server was too busy for.
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
  /** How many levels below the root are shown; 0 for the root alone, and then only that is watched. */
  readonly maxDepth: number;
  readonly include: ((path: string) => boolean) | undefined;
  readonly concurrency: number;
}

export interface MirrorListener<Data> {
  tell(change: CacheChange<Data>): void;
  /** Once, and the last that is heard. undefined when the program has closed the cache or the client. */
  ended(failure: { readonly reason: unknown } | undefined): void;
}

/** Before a read is made again that was refused for a cause that may pass, as ThrottledOp: often enough, and no burden. */
const busyPauseMs = 1000;

/** What became of a visit. `lost`: nothing can be done about it before the next Reread. `busy`: it is to be made again, but not at once. */
type Visited = 'done' | 'lost' | 'busy';

export class Mirror<Data> {
  readonly shown: Shown<Data>;
  readonly #source: SessionSource;
  readonly #root: string;
  readonly #options: MirrorOptions<Data>;
  readonly #listener: MirrorListener<Data>;
  readonly #visits: Visits;
  readonly #unfollow: () => void;
  /** What the survey has not answered yet. Empty: everything has been read since the last Reread. */
  readonly #toSurvey = new Set<string>();
  /** Of the session that is mirrored now, or was last; undefined until there is one. */
  #serving: { readonly zk: ClientView; readonly loop: WatchLoop; readonly offState: () => void } | undefined;
  /** Aborted when it is lost, or the cache has ended. */
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
      // Where there is a loop it ends with what the client has failed with.
      else if (this.#serving === undefined) this.#end({ reason });
    };
    return eachSession(source, { begin: (zk) => this.#serve(zk), ended });
  }

  /** The Reread with which the loop begins compares what the last session has left with what is there. */
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

  /** What is shown stays, and is compared in the next session. That may have begun already. */
  #onExpired(zk: ClientView): void {
    if (this.#serving?.zk !== zk || this.#isOver) return;
    this.#serving.offState();
    this.#lost();
  }

  /** For what is read. Visits begin with the first session. */
  get #zk(): ClientView {
    return this.#serving!.zk;
  }

  // --- What is heard

  #heed(event: WatchLoopEvent): void {
    switch (event.type) {
      case 'Reread':
        this.#fallOutOfStep();
        this.#toSurvey.clear();
        this.#ask(this.#root, 'survey');
        break;
      case 'NodeChildrenChanged':
        // Told to a cache of one znode, which has no use for it.
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

  /** Whether what is shown has the change in it already. Servers before 3.9 do not say which txn an event is of. */
  #isKnown(path: string, type: 'NodeCreated' | 'NodeDataChanged', zxid: bigint | undefined): boolean {
    const stat = this.shown.get(path)?.stat;
    if (stat === undefined || zxid === undefined) return false;
    return (type === 'NodeCreated' ? stat.czxid : stat.mzxid) >= zxid;
  }

  #lookAt(path: string): void {
    // What hangs on nothing is below a znode that is not shown; were it on its way to be, it would be pending.
    if (path !== this.#root && !this.#isShownOrPending(parentOf(path))) return;
    // What becomes readable may have children nobody has told of.
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
      // Its children were deleted before it, so these are of another of the same name.
      this.#visits.ask(path, 'look');
    } else if (shown.stat.czxid < zxid) {
      this.shown.forget(path);
    }
    // Otherwise it was made later, or in the same txn behind the deletion: what is shown is not what was deleted.
  }

  // --- What is read

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
      // Over the next connection a Reread says what is to be read.
      if (await this.#hasPaused()) this.#visits.ask(path, kind);
    } else if (visited === 'done' && kind === 'survey') {
      this.#onSurveyed(path);
    }
  }

  #onSurveyed(path: string): void {
    // Asked for anew meanwhile, as by a Reread: then that one counts.
    if (this.#isOver || this.#visits.following(path) === 'survey') return;
    this.#toSurvey.delete(path);
    if (this.#toSurvey.size > 0 || this.#isInStep) return;
    this.#isInStep = true;
    this.#listener.tell({ kind: 'inStep' });
  }

  /** As it is now. */
  async #readOne(path: string): Promise<Visited> {
    if (!this.shown.wantsData(path)) return this.#take(path, await this.#statOf(path), undefined);
    const { data, stat } = await this.#zk.getData(path, once);
    return this.#take(path, stat, data);
  }

  /** One request for each znode that is as it was, and one more for one that is new, or has other data, and has children. */
  #survey(path: string): Promise<Visited> {
    const isShown = this.shown.get(path) !== undefined;
    if (this.#isLeaf(path)) return isShown ? this.#readOneAgain(path) : this.#readOne(path);
    return isShown || !this.shown.wantsData(path) ? this.#surveyByNames(path) : this.#surveyByData(path);
  }

  async #readOneAgain(path: string): Promise<Visited> {
    const stat = await this.#statOf(path);
    return this.shown.isAs(path, stat) ? this.#take(path, stat, undefined) : this.#readOne(path);
  }

  /** Of what is there for the first time: whether it has children comes with its data. */
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
      // The loop hears of these as well, and says how it ends.
      case 'SessionExpired':
      case 'SessionMoved':
      case 'AuthFailed':
        return 'lost';
      default:
        return error.retryable ? 'busy' : this.#fail(error);
    }
  }

  /** Whether there is reason to go on. */
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
    // If what it hangs on is still to be read, its children will be with it.
    if (!this.shown.take(path, stat, data) && this.#visits.isPending(parentOf(path))) this.#ask(parentOf(path), 'survey');
    return 'done';
  }

  #takeNames(path: string, names: readonly string[]): Visited {
    if (this.#isOver) return 'lost';
    // Not shown, as its parent is not; or gone between two answers.
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
    // The constructor may not have got it yet.
    queueMicrotask(() => this.#unfollow());
    this.#visits.end();
    this.#connection.abort();
    void this.#serving?.loop.return();
    this.#listener.ended(failure);
  }
}

/** What fails is judged here. The client's own repetitions would hold up what comes behind them. */
const once = { retry: false } as const;

function depthOf(path: string): number {
  if (path === '/') return 0;
  let depth = 0;
  for (let at = 0; at < path.length; at++) if (path.charCodeAt(at) === 0x2f) depth++;
  return depth;
}
