/**
 * What a cache shows: how replies change it, and which changes it reports. Replies arrive here in
 * the order of the server's txns, so none is older than what is shown.
 */
import type { KeeperError, Stat } from '@tskeeper/client';
import { childPath, parentOf } from '@tskeeper/client/internal';
import type { CacheChange, CachedZnode, Decode } from './cached-znode.ts';
import { ZnodeStore } from './znode-store.ts';

export interface ShownOptions<Data> {
  /** Whether to read the data of the root, and those of the znodes below. */
  readonly rootData: boolean;
  readonly data: boolean;
  readonly decode: Decode<Data> | undefined;
}

export class Shown<Data> {
  readonly znodes = new ZnodeStore<Data>();
  readonly #root: string;
  readonly #options: ShownOptions<Data>;
  readonly #tell: (change: CacheChange<Data>) => void;
  readonly #unreadable = new Map<string, KeeperError>();

  constructor(root: string, options: ShownOptions<Data>, tell: (change: CacheChange<Data>) => void) {
    this.#root = root;
    this.#options = options;
    this.#tell = tell;
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
  isAs(path: string, stat: Stat | null): boolean {
    return stat === null || !this.wantsData(path) || this.znodes.get(path)?.stat.mzxid === stat.mzxid;
  }

  /**
   * `stat` is null if the znode does not exist; `data` are undefined if they were not read. Returns
   * false if its parent is not shown, and then it is not shown either.
   */
  take(path: string, stat: Stat | null, data: Uint8Array | null | undefined): boolean {
    if (stat === null) {
      this.forget(path);
      return true;
    }
    this.#unreadable.delete(path);
    const shown = this.znodes.get(path);
    if (shown !== undefined && shown.stat.czxid === stat.czxid) {
      this.#takeSame(shown, stat, data);
      return true;
    }
    if (path !== this.#root && this.znodes.get(parentOf(path)) === undefined) return false;
    if (shown !== undefined) this.#removeFormer(shown, stat.czxid);
    const after = this.#znode(path, stat, data);
    this.znodes.set(after);
    this.#tell({ kind: 'created', path, before: undefined, after });
    return true;
  }

  #takeSame(before: CachedZnode<Data>, stat: Stat, data: Uint8Array | null | undefined): void {
    const { path } = before;
    if (before.stat.mzxid === stat.mzxid) {
      this.znodes.set({ ...before, stat });
      return;
    }
    const after = this.#znode(path, stat, data);
    this.znodes.set(after);
    this.#tell({ kind: 'changed', path, before, after });
  }

  /** Removes all children that are not among these. */
  keepChildren(path: string, children: ReadonlySet<string>): void {
    for (const name of this.znodes.namesBelow(path)) {
      const child = childPath(path, name);
      if (!children.has(child)) this.forget(child);
    }
    for (const each of this.#unreadable.keys())
      if (each !== path && parentOf(each) === path && !children.has(each)) this.#unreadable.delete(each);
  }

  /** It is gone, with everything below it. */
  forget(path: string): void {
    const shown = this.znodes.get(path);
    this.#unreadable.delete(path);
    this.#forgetUnreadableBelow(path);
    if (shown === undefined) return;
    for (const each of this.znodes.below(path)) this.#remove(each);
    this.#remove(shown);
  }

  /** It may not be READ; then znodes below it cannot be found either. */
  seal(path: string, error: KeeperError): void {
    const shown = this.znodes.get(path);
    const isKnown = this.#unreadable.has(path);
    this.#forgetUnreadableBelow(path);
    const hidden = shown === undefined ? [] : [...this.znodes.below(path), shown];
    for (const before of hidden) {
      this.znodes.delete(before.path);
      this.#tell({ kind: 'unreadable', path: before.path, before, after: undefined, error });
    }
    this.#unreadable.set(path, error);
    if (shown === undefined && !isKnown) this.#tell({ kind: 'unreadable', path, before: undefined, after: undefined, error });
  }

  /**
   * The znode of this name is a new one. Znodes that are as new as it, or have such a znode below
   * them, are below the new one, or will be.
   */
  #removeFormer(former: CachedZnode<Data>, bornAt: bigint): void {
    for (const each of this.znodes.below(former.path)) {
      if (each.stat.czxid < bornAt && this.znodes.namesBelow(each.path).size === 0) this.#remove(each);
    }
    this.#forgetUnreadableBelow(former.path);
    this.#remove(former);
  }

  #remove(before: CachedZnode<Data>): void {
    const { path } = before;
    this.znodes.delete(path);
    this.#tell({ kind: 'deleted', path, before, after: undefined });
  }

  #forgetUnreadableBelow(path: string): void {
    const prefix = path === '/' ? '/' : `${path}/`;
    for (const each of this.#unreadable.keys()) if (each.startsWith(prefix)) this.#unreadable.delete(each);
  }

  #znode(path: string, stat: Stat, data: Uint8Array | null | undefined): CachedZnode<Data> {
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
