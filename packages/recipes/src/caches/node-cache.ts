/** One znode and its data in memory; lookups send no request. */
import { checkConstructorOptions } from '../validation.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, CacheOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** How to decode the data. */
export type NodeCacheOptions<Data = Uint8Array | null> = CacheOptions<Data>;

/**
 * Begins when it is created; `ready` resolves when it has read the znode. The znode need not exist,
 * and may be created and deleted. Needs ZooKeeper 3.6; for servers before 3.9, see the README about
 * other watches on the same path. Throws a TypeError if `source` is not a client or `path` is not a
 * path.
 */
export class NodeCache<Data = Uint8Array | null> extends Cache<Data> {
  constructor(source: SessionSource, path: string, options: NodeCacheOptions<Data> = {}) {
    checkConstructorOptions(options, 'NodeCache', arguments.length);
    super(source, path, { ...options, maxDepth: 0, includesRootChanges: true });
  }

  /** undefined if it does not exist, or is not shown. */
  get znode(): CachedZnode<Data> | undefined {
    return this.znodes.get(this.path);
  }
}
