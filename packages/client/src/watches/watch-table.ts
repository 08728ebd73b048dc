/**
 * The watches of a session, by the paths of the server.
 *
 * A server keeps watches per connection and drops them with it; this table outlives connections,
 * and is restored after a reconnect. A one-shot watch is removed when its event arrives, so no
 * event is delivered twice. Like ZooKeeper's ZKWatchManager, it keeps an `exists` watch on an
 * existing znode in `data` and one on a missing znode in `exist`, as they are restored differently.
 */
import { EventType } from '@tskeeper/protocol';
import type { Chroot } from '../chroot.ts';
import type { WatchListener } from '../watched-event.ts';

export type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'persistentRecursive';

export const watchKinds: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'persistentRecursive'];

/** A listener and its view of the tree. One object per pair, which identifies the pair. */
export interface Watcher {
  readonly listener: WatchListener;
  readonly chroot: Chroot;
}

/** The watches that a request sets if it succeeds. With several kinds, the answer says which. */
export interface PendingWatches {
  readonly path: string;
  readonly kinds: readonly WatchKind[];
}

type Paths = Map<string, Set<Watcher>>;

/**
 * For longer paths the table does not iterate over the ancestors: a path of a megabyte may have
 * half a million.
 */
const walkedPathLengthMax = 4096;

export class WatchTable {
  readonly #tables: Readonly<Record<WatchKind, Paths>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
    persistent: new Map(),
    persistentRecursive: new Map(),
  };

  /** Number of pending requests that set watches if they succeed, by kind and path. */
  readonly #pending: Readonly<Record<WatchKind, Map<string, number>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
    persistent: new Map(),
    persistentRecursive: new Map(),
  };

  /**
   * Announces a request for these watches. `removePending` must be called when it is answered or
   * cancelled.
   */
  addPending({ path, kinds }: PendingWatches): void {
    for (const kind of kinds) this.#pending[kind].set(path, (this.#pending[kind].get(path) ?? 0) + 1);
  }

  removePending({ path, kinds }: PendingWatches): void {
    for (const kind of kinds) {
      const left = (this.#pending[kind].get(path) ?? 1) - 1;
      if (left === 0) this.#pending[kind].delete(path);
      else this.#pending[kind].set(path, left);
    }
  }

  /**
   * Whether another watcher than `except` needs the watch that the server has, or is about to have.
   * A removal sent now arrives after the pending requests, and would remove what they set.
   */
  isNeeded(kind: WatchKind, path: string, except: Watcher): boolean {
    if (this.#pending[kind].has(path)) return true;
    const known = this.#tables[kind].get(path);
    return known !== undefined && known.size > (known.has(except) ? 1 : 0);
  }

  add(kind: WatchKind, path: string, watcher: Watcher): void {
    const table = this.#tables[kind];
    const known = table.get(path);
    if (known === undefined) table.set(path, new Set([watcher]));
    else known.add(watcher);
  }

  has(kind: WatchKind, path: string, watcher: Watcher): boolean {
    return this.#tables[kind].get(path)?.has(watcher) ?? false;
  }

  /** Whether the path has a watch of this kind. */
  isWatched(kind: WatchKind, path: string): boolean {
    return this.#tables[kind].has(path);
  }

  /** Removes one watcher, or all; returns the removed ones. */
  remove(kind: WatchKind, path: string, watcher: Watcher | undefined): readonly Watcher[] {
    const table = this.#tables[kind];
    const known = table.get(path);
    if (known === undefined) return [];
    if (watcher === undefined) {
      table.delete(path);
      return [...known];
    }
    if (!known.delete(watcher)) return [];
    if (known.size === 0) table.delete(path);
    return [watcher];
  }

  /**
   * Returns the watchers of an event from the server; its path starts with a slash. Removes
   * one-shot watches.
   */
  take(type: number, path: string): ReadonlySet<Watcher> {
    const matched = new Set<Watcher>();
    switch (type) {
      case EventType.nodeCreated:
      case EventType.nodeDataChanged:
        this.#takeOneShot('data', path, matched);
        this.#takeOneShot('exist', path, matched);
        this.#addPersistent(path, matched, true);
        break;
      case EventType.nodeDeleted:
        this.#takeOneShot('data', path, matched);
        this.#takeOneShot('exist', path, matched);
        this.#takeOneShot('child', path, matched);
        this.#addPersistent(path, matched, true);
        break;
      case EventType.nodeChildrenChanged:
        this.#takeOneShot('child', path, matched);
        // Recursive watches receive the events of the children instead.
        this.#addPersistent(path, matched, false);
        break;
      default:
        break;
    }
    return matched;
  }

  #takeOneShot(kind: WatchKind, path: string, matched: Set<Watcher>): void {
    const table = this.#tables[kind];
    const known = table.get(path);
    if (known === undefined) return;
    table.delete(path);
    for (const watcher of known) matched.add(watcher);
  }

  #addPersistent(path: string, matched: Set<Watcher>, recursive: boolean): void {
    for (const watcher of this.#tables.persistent.get(path) ?? []) matched.add(watcher);
    const table = this.#tables.persistentRecursive;
    if (!recursive || table.size === 0) return;
    if (path.length > walkedPathLengthMax) {
      for (const [root, watchers] of table) if (isAtOrBelow(path, root)) for (const watcher of watchers) matched.add(watcher);
      return;
    }
    for (let at = path; ; at = at.slice(0, Math.max(1, at.lastIndexOf('/')))) {
      for (const watcher of table.get(at) ?? []) matched.add(watcher);
      if (at === '/') break;
    }
  }

  /** All watchers of any kind, once each. */
  all(): ReadonlySet<Watcher> {
    const found = new Set<Watcher>();
    for (const kind of watchKinds) {
      for (const watchers of this.#tables[kind].values()) for (const watcher of watchers) found.add(watcher);
    }
    return found;
  }

  paths(kind: WatchKind): Iterable<string> {
    return this.#tables[kind].keys();
  }

  /** Number of watched paths of a kind. */
  count(kind: WatchKind): number {
    return this.#tables[kind].size;
  }

  clear(): void {
    for (const kind of watchKinds) this.#tables[kind].clear();
  }
}

function isAtOrBelow(path: string, root: string): boolean {
  return root === '/' || (path.startsWith(root) && (path.length === root.length || path.charCodeAt(root.length) === 0x2f));
}
