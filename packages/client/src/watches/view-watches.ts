/**
 * The watches that were set through one view of the tree: which listener stands for which watcher, and how a watch is taken away again, here
 * and at the server.
 */
import { ErrorCode, WatcherType } from '@tskeeper/protocol';
import type { Limits } from '../calls/bounds.ts';
import type { Chroot } from '../chroot.ts';
import { Refusal } from '../keeper-error.ts';
import type { Session } from '../session/session.ts';
import type { NodeEventType, WatchListener } from '../watched-event.ts';
import { removeWatchesOperation } from './watch-operations.ts';
import type { WatchKind, Watcher } from './watch-table.ts';

/** ZooKeeper's words for the watches that a removal is about (Watcher.WatcherType). */
type RemovedType = keyof typeof WatcherType;

export interface Removal {
  readonly type: RemovedType;
  /** Whose; undefined: everybody's. */
  readonly watch: WatchListener | true | undefined;
  /** Here, even when no server can be reached. */
  readonly local: boolean;
}

/** Listens to nothing: what `watch: true` stands for. */
const unheard: WatchListener = () => {};

const kindsOf: Readonly<Record<RemovedType, readonly WatchKind[]>> = {
  children: ['child'],
  data: ['data', 'exist'],
  persistent: ['persistent'],
  persistentRecursive: ['persistentRecursive'],
  any: ['data', 'exist', 'child', 'persistent', 'persistentRecursive'],
};

const removedEvent: Readonly<Record<WatchKind, NodeEventType>> = {
  data: 'DataWatchRemoved',
  exist: 'DataWatchRemoved',
  child: 'ChildWatchRemoved',
  persistent: 'PersistentWatchRemoved',
  persistentRecursive: 'PersistentWatchRemoved',
};

export class ViewWatches {
  readonly #session: Session;
  readonly #chroot: Chroot;
  readonly #watchers = new WeakMap<WatchListener, Watcher>();

  constructor(session: Session, chroot: Chroot) {
    this.#session = session;
    this.#chroot = chroot;
  }

  /** Notes down that the server has this watch. `outer` is the path it knows. */
  add(kind: WatchKind, outer: string, watch: WatchListener | true): void {
    this.#session.watches.add(kind, outer, this.#watcherOf(watch));
  }

  async remove(outer: string, { type, watch, local }: Removal, limits: Limits): Promise<void> {
    if (!Object.hasOwn(kindsOf, type))
      throw new TypeError(`there is no type of watch "${type}"; types are ${Object.keys(WatcherType).join(', ')}`);
    const kinds = kindsOf[type];
    const watcher = watch === undefined ? undefined : this.#watcherOf(watch);
    const { watches } = this.#session;
    if (watcher !== undefined && !kinds.some((kind) => watches.has(kind, outer, watcher))) {
      throw new Refusal(ErrorCode.NoWatcher, 'notSent', 'this client has set no such watch');
    }
    const take = (gone: readonly WatchKind[]) => {
      for (const kind of gone) {
        for (const each of watches.remove(kind, outer, watcher)) this.#session.tellWatcher(each, removedEvent[kind], outer, undefined);
      }
    };
    // Without a connection there is no watch on any server, and one that is gone from here is not set anew.
    const asks = !local || this.#session.isConnected;
    const types = asks ? this.#serverTypes(outer, type, watcher) : [];
    const asked = new Set(types.flatMap((each) => kindsOf[each]));
    const unasked = kinds.filter((kind) => !asked.has(kind));
    try {
      // One by one in the order of the tables, but all under way at once. What a server has taken away goes from here in the order of its
      // answers: a watch that is set behind this call, while it is under way, stays.
      const removals = types.map((each, at) => {
        const removed = () => take(at < types.length - 1 ? kindsOf[each] : [...kindsOf[each], ...unasked]);
        return this.#session.perform(removeWatchesOperation(each, outer, removed), limits);
      });
      await Promise.all(removals);
      if (types.length === 0) take(kinds);
    } catch (error) {
      if (!local || !(error instanceof Refusal) || error.errno === ErrorCode.NoWatcher) throw error;
      take(kinds);
    }
  }

  #watcherOf(watch: WatchListener | true): Watcher {
    const listener = watch === true ? unheard : watch;
    const known = this.#watchers.get(listener);
    if (known !== undefined) return known;
    const watcher: Watcher = { listener, chroot: this.#chroot };
    this.#watchers.set(listener, watcher);
    return watcher;
  }

  /**
   * What the server has to be asked. It keeps one watch for all listeners of a path, so that watch goes only with the last of them.
   */
  #serverTypes(outer: string, type: RemovedType, watcher: Watcher | undefined): RemovedType[] {
    if (watcher === undefined) return [type];
    const { watches } = this.#session;
    const isNeeded = (kind: WatchKind) => watches.isNeeded(kind, outer, watcher);
    const isWatched = (kind: WatchKind) => watches.watches(kind, outer);
    if (!kindsOf[type].some(isNeeded)) return [type];
    if (type !== 'any') return [];
    const types = ['children', 'data', 'persistent', 'persistentRecursive'] as const;
    return types.filter((each) => kindsOf[each].some(isWatched) && !kindsOf[each].some(isNeeded));
  }
}
