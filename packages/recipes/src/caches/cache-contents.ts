/**
 * What a cache shows: how replies change it, and which changes it reports. Replies arrive here in
 * the order of the server's txns, so none is older than what is shown.
 */
import type { KeeperError, Stat } from '@tskeeper/client';
import { childPath, parentOf } from '@tskeeper/client/internal';
import type { CacheChange, CachedZnode, Decode } from './cached-znode.ts';
import { ZnodeStore } from './znode-store.ts';

export interface CacheContentsOptions<Data> {
  /** Whether to read the data of the root, and those of the znodes below. */
  readonly rootData: boolean;
  readonly data: boolean;
  readonly decode: Decode<Data> | undefined;
}

export class CacheContents<Data> {
  readonly znodes = new ZnodeStore<Data>();
  readonly #root: string;
  readonly #options: CacheContentsOptions<Data>;
  readonly #emit: (change: CacheChange<Data>) => void;
  readonly #unreadable = new Map<string, KeeperError>();

  constructor(root: string, options: CacheContentsOptions<Data>, emit: (change: CacheChange<Data>) => void) {
    this.#root = root;
    this.#options = options;
    this.#emit = emit;
  }

  get(path: string): CachedZnode<Data> | undefined {
    return this.znodes.get(path);
  }

  get unreadable(): readonly string[] {
    return [...this.#unreadable.keys()];
  }

  isUnreadable(path: string): boolean {
    return this.#unreadable.has(path);
  }

  wantsData(path: string): boolean {
    return path === this.#root ? this.#options.rootData : this.#options.data;
  }

  /** Whether a znode with this Stat can be shown without reading its data. */
  isUpToDate(path: string, stat: Stat | null): boolean {
    return stat === null || !this.wantsData(path) || this.znodes.get(path)?.stat.mzxid === stat.mzxid;
  }

  /**
   * `stat` is null if the znode does not exist; `data` are undefined if they were not read. Returns
   * false if its parent is not shown, and then it is not shown either.
   */
  apply(path: string, stat: Stat | null, data: Uint8Array | null | undefined): boolean {
    if (stat === null) {
      this.removeSubtree(path);
      return true;
    }
    this.#unreadable.delete(path);
    const shown = this.znodes.get(path);
    if (shown !== undefined && shown.stat.czxid === stat.czxid) {
      this.#applySameZnode(shown, stat, data);
      return true;
    }
    if (path !== this.#root && this.znodes.get(parentOf(path)) === undefined) return false;
    if (shown !== undefined) this.#removePrevious(shown, stat.czxid);
    const after = this.#cachedZnode(path, stat, data);
    this.znodes.set(after);
    this.#emit({ kind: 'created', path, before: undefined, after });
    return true;
  }

  #applySameZnode(before: CachedZnode<Data>, stat: Stat, data: Uint8Array | null | undefined): void {
    const { path } = before;
    if (before.stat.mzxid === stat.mzxid) {
      this.znodes.set({ ...before, stat });
      return;
    }
    const after = this.#cachedZnode(path, stat, data);
    this.znodes.set(after);
    this.#emit({ kind: 'changed', path, before, after });
  }

  /** Removes all children that are not among these. */
  retainChildren(path: string, children: ReadonlySet<string>): void {
    for (const name of this.znodes.childNames(path)) {
      const child = childPath(path, name);
      if (!children.has(child)) this.removeSubtree(child);
    }
    for (const each of this.#unreadable.keys())
      if (each !== path && parentOf(each) === path && !children.has(each)) this.#unreadable.delete(each);
  }

  /** It is gone, with everything below it. */
  removeSubtree(path: string): void {
    const shown = this.znodes.get(path);
    this.#unreadable.delete(path);
    this.#forgetUnreadableBelow(path);
    if (shown === undefined) return;
    for (const each of this.znodes.descendants(path)) this.#remove(each);
    this.#remove(shown);
  }

  /** It may not be READ; then znodes below it cannot be found either. */
  markUnreadable(path: string, error: KeeperError): void {
    const shown = this.znodes.get(path);
    const isKnown = this.#unreadable.has(path);
    this.#forgetUnreadableBelow(path);
    const hidden = shown === undefined ? [] : [...this.znodes.descendants(path), shown];
    for (const before of hidden) {
      this.znodes.delete(before.path);
      this.#emit({ kind: 'unreadable', path: before.path, before, after: undefined, error });
    }
    this.#unreadable.set(path, error);
    if (shown === undefined && !isKnown) this.#emit({ kind: 'unreadable', path, before: undefined, after: undefined, error });
  }

  /**
   * The znode of this name is a new one. Znodes that are as new as it, or have such a znode below
   * them, are below the new one, or will be.
   */
  #removePrevious(previous: CachedZnode<Data>, createdZxid: bigint): void {
    for (const each of this.znodes.descendants(previous.path)) {
      if (each.stat.czxid < createdZxid && this.znodes.childNames(each.path).size === 0) this.#remove(each);
    }
    this.#forgetUnreadableBelow(previous.path);
    this.#remove(previous);
  }

  #remove(before: CachedZnode<Data>): void {
    const { path } = before;
    this.znodes.delete(path);
    this.#emit({ kind: 'deleted', path, before, after: undefined });
  }

  #forgetUnreadableBelow(path: string): void {
    const prefix = path === '/' ? '/' : `${path}/`;
    for (const each of this.#unreadable.keys()) if (each.startsWith(prefix)) this.#unreadable.delete(each);
  }

  #cachedZnode(path: string, stat: Stat, data: Uint8Array | null | undefined): CachedZnode<Data> {
    const { decode } = this.#options;
    if (data === undefined || !this.wantsData(path)) return { path, data: undefined, decodeError: undefined, stat };
    if (decode === undefined) return { path, data: data as Data, decodeError: undefined, stat };
    try {
      return { path, data: decode(data, path, stat), decodeError: undefined, stat };
    } catch (decodeError) {
      return { path, data: undefined, decodeError, stat };
    }
  }
}
