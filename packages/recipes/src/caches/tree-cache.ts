/** A znode and everything below it in memory; lookups send no request. */
import { checkArgumentCount, checkConstructorOptions, checkString } from '../validation.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, MultiZnodeCacheOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** Which part of a tree a cache has, and what of it. */
export interface TreeCacheOptions<Data = Uint8Array | null> extends MultiZnodeCacheOptions<Data> {
  /**
   * How many levels below the root, from 1. A server sends deeper changes as well, which the cache
   * ignores. Default: all.
   */
  readonly maxDepth?: number | undefined;
  /**
   * Whether a znode below the root belongs to the cache; others, and znodes below them, are neither
   * read nor shown. Must always return the same for a path. Default: all do.
   */
  readonly include?: ((path: string) => boolean) | undefined;
}

/**
 * Begins when it is created; `ready` resolves when it has read everything. The root need not exist,
 * and may be created and deleted. Needs ZooKeeper 3.6; for servers before 3.9, see the README about
 * other watches on the root's own path. Throws a TypeError if `source` is not a client or `path` is
 * not a path.
 */
export class TreeCache<Data = Uint8Array | null> extends Cache<Data> implements Iterable<CachedZnode<Data>> {
  constructor(source: SessionSource, path: string, options: TreeCacheOptions<Data> = {}) {
    checkConstructorOptions(options, 'TreeCache', arguments.length);
    const { maxDepth = Infinity } = options;
    if (maxDepth !== Infinity && (!Number.isInteger(maxDepth) || maxDepth < 1))
      throw new RangeError(
        `maxDepth must be a whole number from 1, or left out for all levels, not ${maxDepth}; a NodeCache has the root alone`,
      );
    super(source, path, { ...options, maxDepth, includesRootChanges: true });
  }

  /** undefined if it does not exist, or is not shown. */
  get(path: string): CachedZnode<Data> | undefined {
    checkArgumentCount(arguments.length, 1, 'get(path)');
    checkString(path, 'the path of a znode');
    return this.znodes.get(path);
  }

  /**
   * Names of the children that are shown, in no defined order; undefined if the znode itself is not
   * shown.
   */
  children(path: string): readonly string[] | undefined {
    checkArgumentCount(arguments.length, 1, 'children(path)');
    checkString(path, 'the path of a znode');
    return this.znodes.get(path) === undefined ? undefined : [...this.znodes.childNames(path)];
  }

  /** How many znodes are shown, including the root; a number, not bytes. */
  get size(): number {
    return this.znodes.size;
  }

  /** In no defined order. */
  [Symbol.iterator](): IterableIterator<CachedZnode<Data>> {
    return this.znodes.values();
  }
}
