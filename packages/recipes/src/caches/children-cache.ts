/** The children of a znode and their data in memory; lookups send no request. */
import { childPath, nameOf } from '@tskeeper/client/internal';
import { checkArgumentCount, checkFunction, checkConstructorOptions, checkString } from '../validation.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, MultiZnodeCacheOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** Which children a cache has, and what of them. */
export interface ChildrenCacheOptions<Data = Uint8Array | null> extends MultiZnodeCacheOptions<Data> {
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
    checkConstructorOptions(options, 'ChildrenCache', arguments.length);
    const { include, ...others } = options;
    if (include !== undefined) checkFunction(include, 'include');
    const includesPath = include && ((child: string) => include(nameOf(child)));
    super(source, path, { ...others, include: includesPath, maxDepth: 1, rootData: false, includesRootChanges: false });
  }

  /** undefined if the child does not exist, or is not shown. */
  get(name: string): CachedZnode<Data> | undefined {
    checkArgumentCount(arguments.length, 1, 'get(name)');
    checkString(name, 'the name of a znode');
    return this.znodes.get(childPath(this.path, name));
  }

  /** The names of the children that are shown, in no defined order. */
  get names(): readonly string[] {
    return [...this.znodes.childNames(this.path)];
  }

  /** How many children are shown: a number of znodes, not of bytes. */
  get size(): number {
    return this.znodes.childNames(this.path).size;
  }

  /** Whether the parent exists. */
  get exists(): boolean {
    return this.znodes.get(this.path) !== undefined;
  }

  /** In no defined order. */
  *[Symbol.iterator](): IterableIterator<CachedZnode<Data>> {
    for (const name of this.znodes.childNames(this.path)) yield this.znodes.get(childPath(this.path, name))!;
  }
}
