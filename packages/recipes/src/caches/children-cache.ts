/** The children of a znode and their data in memory; lookups send no request. */
import { childPath, nameOf } from '@tskeeper/client/internal';
import { checkCount, checkFunction, checkSettings, checkText } from '../given.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, ManyZnodesOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** Which children a cache has, and what of them. */
export interface ChildrenCacheOptions<Data = Uint8Array | null> extends ManyZnodesOptions<Data> {
  /**
   * Whether a child belongs to the cache; others are neither read nor shown. Must always return the
   * same for a name. Default: all do.
   */
  readonly include?: ((name: string) => boolean) | undefined;
}

/**
 * Begins when it is created; `ready` resolves when it has read everything. The parent need not
 * exist, may be created and deleted, and is not reported itself. Uses a recursive watch, so the
 * server also sends deeper changes, which the cache ignores. Needs ZooKeeper 3.6; for servers
 * before 3.9, see the README about other watches on the parent's own path. Throws a TypeError if
 * `source` is not a client or `path` is not a path.
 */
export class ChildrenCache<Data = Uint8Array | null> extends Cache<Data> implements Iterable<CachedZnode<Data>> {
  constructor(source: SessionSource, path: string, options: ChildrenCacheOptions<Data> = {}) {
    checkSettings(options, 'ChildrenCache', arguments.length);
    const { include, ...others } = options;
    if (include !== undefined) checkFunction(include, 'include');
    const includes = include && ((child: string) => include(nameOf(child)));
    super(source, path, { ...others, include: includes, maxDepth: 1, rootData: false, tellsRoot: false });
  }

  /** undefined if the child does not exist, or is not shown. */
  get(name: string): CachedZnode<Data> | undefined {
    checkCount(arguments.length, 1, 'get(name)');
    checkText(name, 'the name of a znode');
    return this.znodes.get(childPath(this.path, name));
  }

  /** The names of the children that are shown, in no defined order. */
  get names(): readonly string[] {
    return [...this.znodes.namesBelow(this.path)];
  }

  /** How many children are shown: a number of znodes, not of bytes. */
  get size(): number {
    return this.znodes.namesBelow(this.path).size;
  }

  /** Whether the parent exists. */
  get exists(): boolean {
    return this.znodes.get(this.path) !== undefined;
  }

  /** In no defined order. */
  *[Symbol.iterator](): IterableIterator<CachedZnode<Data>> {
    for (const name of this.znodes.namesBelow(this.path)) yield this.znodes.get(childPath(this.path, name))!;
  }
}
