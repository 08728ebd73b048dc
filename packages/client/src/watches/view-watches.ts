/**
 * The watches set through one view of the tree: maps listeners to watchers, and removes watches
 * from the client and the server.
 */
import { ErrorCode, WatcherType } from '@tskeeper/protocol';
import type { Limits } from '../calls/bounds.ts';
import type { Chroot } from '../chroot.ts';
import { Refusal } from '../keeper-error.ts';
import type { Session } from '../session/session.ts';
import type { NodeEventType, WatchListener } from '../watched-event.ts';
import { removeWatchesOperation } from './watch-operations.ts';
import type { WatchKind, Watcher } from './watch-table.ts';

/** ZooKeeper's names for the watches to remove (Watcher.WatcherType). */
type RemovedType = keyof typeof WatcherType;

export interface Removal {
  readonly type: RemovedType;
  /** The listener to remove; undefined: all. */
  readonly watch: WatchListener | true | undefined;
  /** Remove the watch in the client even if no server can be reached. */
  readonly local: boolean;
}

/** The listener for `watch: true`, which does nothing. */
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

  /** Registers a watch that the server has set. `outer` is the server's path. */
  add(kind: WatchKind, outer: string, watch: WatchListener | true): void {
    this.#session.watches.add(kind, outer, this.#watcherOf(watch));
  }

  async remove(outer: string, { type, watch, local }: Removal, limits: Limits): Promise<void> {
    if (!Object.hasOwn(kindsOf, type))
      throw new TypeError(`unknown watch type "${type}"; use one of ${Object.keys(WatcherType).join(', ')}`);
    const kinds = kindsOf[type];
    const watcher = watch === undefined ? undefined : this.#watcherOf(watch);
    const { watches } = this.#session;
    if (watcher !== undefined && !kinds.some((kind) => watches.has(kind, outer, watcher))) {
      throw new Refusal(ErrorCode.NoWatcher, 'notSent', 'this client has not set such a watch');
    }
    const take = (gone: readonly WatchKind[]) => {
      for (const kind of gone) {
        for (const each of watches.remove(kind, outer, watcher)) this.#session.tellWatcher(each, removedEvent[kind], outer, undefined);
      }
    };
    // Without a connection no server has the watch, and a watch removed here is not set again.
    const asks = !local || this.#session.isConnected;
    const types = asks ? this.#serverTypes(outer, type, watcher) : [];
    const asked = new Set(types.flatMap((each) => kindsOf[each]));
    const unasked = kinds.filter((kind) => !asked.has(kind));
    try {
      // Send the removals in the order of the tables, without waiting in between. Remove watches
      // here in the order of the answers: a watch that is set after this call and before the answer
      // stays.
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
   * The removals to send. The server keeps one watch for all listeners of a path, so it must be
   * removed only with the last of them.
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
