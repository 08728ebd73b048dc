/** One znode and its data, at hand without asking a server. */
import { checkSettings } from '../given.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, CacheOptions } from './cached-znode.ts';
import type { SessionSource } from '../sessions/session-source.ts';

/** What to make of the data. */
export type NodeCacheOptions<Data = Uint8Array | null> = CacheOptions<Data>;

/**
 * Begins when it is made; `ready` resolves when it has read the znode. That need not exist, and may come and go. Needs ZooKeeper 3.6; on
 * servers before 3.9, see the README about other watches on the same path. Throws a TypeError for what is no client or no path.
 */
export class NodeCache<Data = Uint8Array | null> extends Cache<Data> {
  constructor(source: SessionSource, path: string, options: NodeCacheOptions<Data> = {}) {
    checkSettings(options, 'NodeCache', arguments.length);
    super(source, path, { ...options, maxDepth: 0, tellsRoot: true });
  }

  /** undefined when there is none, or when it is not shown. */
  get znode(): CachedZnode<Data> | undefined {
    return this.znodes.get(this.path);
  }
}
