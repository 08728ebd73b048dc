/**
 * The watches set through one view of the tree: maps listeners to watchers, and removes watches
 * from the client and the server.
 */
import { ErrorCode, WatcherType } from '@tskeeper/protocol';
import type { RequestLimits } from '../session/request-limits.ts';
import type { Chroot } from '../chroot.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { Session } from '../session/session.ts';
import type { NodeEventType, WatchListener } from '../watched-event.ts';
import { removeWatchesOperation } from '../operations/watches.ts';
import type { WatchKind, Watcher } from '../watches/watch-table.ts';

/** ZooKeeper's names for the watches to remove (Watcher.WatcherType). */
type WatcherTypeName = keyof typeof WatcherType;

export interface WatchRemoval {
  readonly type: WatcherTypeName;
  /** The listener to remove; undefined: all. */
  readonly watch: WatchListener | true | undefined;
  /** Remove the watch in the client even if no server can be reached. */
  readonly local: boolean;
}

/** The listener for `watch: true`, which does nothing. */
const ignoreEvent: WatchListener = () => {};

const kindsOf: Readonly<Record<WatcherTypeName, readonly WatchKind[]>> = {
  children: ['child'],
  data: ['data', 'exist'],
  persistent: ['persistent'],
  persistentRecursive: ['persistentRecursive'],
  any: ['data', 'exist', 'child', 'persistent', 'persistentRecursive'],
};

const removedEventOf: Readonly<Record<WatchKind, NodeEventType>> = {
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

  /** Registers a watch that the server has set. `serverPath` is the server's path. */
  add(kind: WatchKind, serverPath: string, watch: WatchListener | true): void {
    this.#session.watches.add(kind, serverPath, this.#watcherOf(watch));
  }

  async remove(serverPath: string, { type, watch, local }: WatchRemoval, limits: RequestLimits): Promise<void> {
    if (!Object.hasOwn(kindsOf, type))
      throw new TypeError(`unknown watch type "${type}"; use one of ${Object.keys(WatcherType).join(', ')}`);
    const kinds = kindsOf[type];
    const watcher = watch === undefined ? undefined : this.#watcherOf(watch);
    const { watches } = this.#session;
    if (watcher !== undefined && !kinds.some((kind) => watches.has(kind, serverPath, watcher))) {
      throw new RequestFailure(ErrorCode.NoWatcher, 'notSent', 'this client has not set such a watch');
    }
    const removeLocally = (removedKinds: readonly WatchKind[]) => {
      for (const kind of removedKinds) {
        for (const each of watches.remove(kind, serverPath, watcher))
          this.#session.events.toWatcher(each, removedEventOf[kind], serverPath, undefined);
      }
    };
    // Without a connection no server has the watch, and a watch removed here is not set again.
    const asksServer = !local || this.#session.isConnected;
    const types = asksServer ? this.#serverTypes(serverPath, type, watcher) : [];
    const askedKinds = new Set(types.flatMap((each) => kindsOf[each]));
    const localKinds = kinds.filter((kind) => !askedKinds.has(kind));
    try {
      // Send the removals in the order of the tables, without waiting in between. Remove watches
      // here in the order of the answers: a watch that is set after this call and before the answer
      // stays.
      const removals = types.map((each, at) => {
        const removed = () => removeLocally(at < types.length - 1 ? kindsOf[each] : [...kindsOf[each], ...localKinds]);
        return this.#session.calls.perform(removeWatchesOperation(each, serverPath, removed), limits);
      });
      await Promise.all(removals);
      if (types.length === 0) removeLocally(kinds);
    } catch (error) {
      if (!local || !(error instanceof RequestFailure) || error.errno === ErrorCode.NoWatcher) throw error;
      removeLocally(kinds);
    }
  }

  #watcherOf(watch: WatchListener | true): Watcher {
    const listener = watch === true ? ignoreEvent : watch;
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
  #serverTypes(serverPath: string, type: WatcherTypeName, watcher: Watcher | undefined): WatcherTypeName[] {
    if (watcher === undefined) return [type];
    const { watches } = this.#session;
    const isNeeded = (kind: WatchKind) => watches.isNeeded(kind, serverPath, watcher);
    const isWatched = (kind: WatchKind) => watches.isWatched(kind, serverPath);
    if (!kindsOf[type].some(isNeeded)) return [type];
    if (type !== 'any') return [];
    const types = ['children', 'data', 'persistent', 'persistentRecursive'] as const;
    return types.filter((each) => kindsOf[each].some(isWatched) && !kindsOf[each].some(isNeeded));
  }
}
