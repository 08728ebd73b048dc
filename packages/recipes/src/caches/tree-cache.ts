/** A znode and everything below it, at hand without asking a server. */
import { checkCount, checkSettings, checkText } from '../given.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, ManyZnodesOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** Which part of a tree a cache has, and what of it. */
export interface TreeCacheOptions<Data = Uint8Array | null> extends ManyZnodesOptions<Data> {
  /** How many levels below the root, from 1. A server tells of deeper changes all the same, and they are passed over. Default: all. */
  readonly maxDepth?: number | undefined;
  /**
   * Whether a znode below the root belongs to the cache; one that does not, and what is below it, is neither read nor shown. Must always give the
   * same answer for a path. Default: all do.
   */
  readonly include?: ((path: string) => boolean) | undefined;
}

/**
 * Begins when it is made; `ready` resolves when it has read everything. The root need not exist, and may come and go. Needs ZooKeeper 3.6; on servers
 * before 3.9, see the README about other watches on the root's own path. Throws a TypeError for what is no client or no path.
 */
export class TreeCache<Data = Uint8Array | null> extends Cache<Data> implements Iterable<CachedZnode<Data>> {
  constructor(source: SessionSource, path: string, options: TreeCacheOptions<Data> = {}) {
    checkSettings(options, 'TreeCache', arguments.length);
    const { maxDepth = Infinity } = options;
    if (maxDepth !== Infinity && (!Number.isInteger(maxDepth) || maxDepth < 1))
      throw new RangeError(
        `maxDepth is a whole number from 1, or left out for all levels, not ${maxDepth}; a NodeCache has the root alone`,
      );
    super(source, path, { ...options, maxDepth, tellsRoot: true });
  }

  /** undefined when there is none, or when it is not shown. */
  get(path: string): CachedZnode<Data> | undefined {
    checkCount(arguments.length, 1, 'get(path)');
    checkText(path, 'the path of a znode');
    return this.znodes.get(path);
  }

  /** Names of the children that are shown, in no defined order; undefined when the znode itself is not. */
  children(path: string): readonly string[] | undefined {
    checkCount(arguments.length, 1, 'children(path)');
    checkText(path, 'the path of a znode');
    return this.znodes.get(path) === undefined ? undefined : [...this.znodes.namesBelow(path)];
  }

  /** How many znodes are shown, the root included; a number, not bytes. */
  get size(): number {
    return this.znodes.size;
  }

  /** In no defined order. */
  [Symbol.iterator](): IterableIterator<CachedZnode<Data>> {
    return this.znodes.values();
  }
}
