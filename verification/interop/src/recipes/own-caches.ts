/** Our caches with the verbs of java/CuratorCaches.java. */
import type { Client } from '@tskeeper/client';
import { ChildrenCache, TreeCache } from '@tskeeper/recipes';

import { textOf, type Verbs } from './verbs.ts';

export function cacheVerbs(zk: Client, path: string, kind: 'children' | 'tree'): Verbs {
  const cache = kind === 'children' ? new ChildrenCache(zk, path) : new TreeCache(zk, path);
  return {
    async shown() {
      return [...cache]
        .sort((one, other) => (one.path < other.path ? -1 : 1))
        .map(({ path: each, data, stat }) => `${each}=${textOf(data ?? null)}@${stat.version}`)
        .join(' ');
    },
  };
}
