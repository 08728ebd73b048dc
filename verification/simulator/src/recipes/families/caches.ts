/** A small tree that every process writes to and caches: one znode, the children, or all of it. */
import { type Client, KeeperError } from '@tskeeper/client';
import { type CachedZnode, ChildrenCache, NodeCache, TreeCache } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import { parentOf } from '../../record/parent-of.ts';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { checkEntriesShown, checkContentsShown, type CacheEntryShown, type CacheContentsShown } from './cache-rules.ts';

export const caches: Family = {
  description: 'processes write to a tree, and read it from caches',
  marks: [
    'a cache was up to date',
    'a cache was stale',
    'a cache showed a change',
    'a cache showed a deletion',
    'a cache was up to date at the end',
  ],
  drawRun: (random) => new CacheRun(random),
};

const root = '/tree';
const paths = ['a', 'b', 'a/x', 'a/y', 'b/x'].map((name) => `${root}/${name}`);

type AnyCache = NodeCache<string> | ChildrenCache<string> | TreeCache<string>;

/** A cache, which znodes it covers, and what it shows of them. */
interface OpenCache {
  readonly process: RecipeProcess;
  readonly zk: Client;
  readonly cache: AnyCache;
  readonly covers: (path: string) => boolean;
  readonly shown: () => readonly CachedZnode<string>[];
}

class CacheRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #caches = new Map<Client, OpenCache>();
  readonly #entriesShown: CacheEntryShown[] = [];
  readonly #contentsShown: CacheContentsShown[] = [];
  #writes = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(200);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const kept = this.#caches.get(zk) ?? this.#open(process, zk);
    for (let writes = process.below(4); writes > 0; writes--) await this.#write(process, zk);
    if (!process.isHealed && process.below(3) > 0) return true;
    await kept.cache.ready(process.isHealed ? { signal: process.stopping } : { timeoutMs: process.below(2000) });
    process.hitMark('a cache was up to date');
    const seenZxid = zk.lastZxid;
    // Wait for the requests that the cache may have to send by then: an event after a read in
    // progress leads to another read when that is answered.
    for (let answers = 4; answers > 0; answers--) await zk.exists(root);
    if (!kept.cache.isSynced) return true;
    for (const { path, data, stat } of kept.shown())
      this.#entriesShown.push({ process: process.name, path, data, czxid: stat.czxid, mzxid: stat.mzxid, seenZxid });
    return true;
  }

  /** One cache per session. */
  #open(process: RecipeProcess, zk: Client): OpenCache {
    const fromZxid = zk.lastZxid;
    const kept = { process, zk, ...this.#cacheOf(process, zk) };
    this.#caches.set(zk, kept);
    void this.#checkChanges(kept, fromZxid).catch((error: unknown) => process.handleError(error));
    return kept;
  }

  #cacheOf(process: RecipeProcess, zk: Client): Omit<OpenCache, 'process' | 'zk'> {
    const decode = (data: Uint8Array | null) => new TextDecoder().decode(data ?? undefined);
    switch (process.below(3)) {
      case 0: {
        const path = paths[process.below(paths.length)]!;
        const cache = new NodeCache(zk, path, { decode });
        return { cache, covers: (each) => each === path, shown: () => (cache.znode === undefined ? [] : [cache.znode]) };
      }
      case 1: {
        const cache = new ChildrenCache(zk, root, { decode });
        return { cache, covers: (each) => parentOf(each) === root, shown: () => [...cache] };
      }
      default: {
        const cache = new TreeCache(zk, root, { decode });
        return { cache, covers: (each) => each.startsWith(`${root}/`), shown: () => [...cache].filter(({ path }) => path !== root) };
      }
    }
  }

  /** Each change must start from the state that was shown, and lead to a later one. */
  async #checkChanges({ process, zk, cache, covers, shown }: OpenCache, openedZxid: bigint): Promise<void> {
    const last = new Map<string, bigint>();
    let fromZxid = openedZxid;
    for await (const change of cache.changes()) {
      if (change.kind === 'outOfStep') {
        process.hitMark('a cache was stale');
        fromZxid = zk.lastZxid;
      }
      if (change.kind === 'inStep' && cache.isSynced) {
        const all = new Map(shown().map(({ path, stat }) => [path, stat.mzxid]));
        this.#contentsShown.push({ process: process.name, covers, fromZxid, toZxid: zk.lastZxid, shown: all });
      }
      if (!('path' in change) || change.path === root) continue;
      const { path, before, after } = change;
      if (change.kind === 'deleted') process.hitMark('a cache showed a deletion');
      if (before?.stat.mzxid !== last.get(path))
        process.reportViolation(`its cache reports a change of ${path} from ${before?.stat.mzxid}, but showed ${last.get(path)}`);
      if (after === undefined) {
        last.delete(path);
        continue;
      }
      process.hitMark('a cache showed a change');
      const { czxid, mzxid } = after.stat;
      if (before !== undefined && mzxid <= before.stat.mzxid)
        process.reportViolation(`its cache went back from ${before.stat.mzxid} to ${mzxid} at ${path}`);
      last.set(path, mzxid);
      this.#entriesShown.push({ process: process.name, path, data: after.data, czxid, mzxid, seenZxid: undefined });
    }
  }

  async #write(process: RecipeProcess, zk: Client): Promise<void> {
    const path = paths[process.below(paths.length)]!;
    const data = `text-${++this.#writes}`;
    try {
      switch (process.below(4)) {
        case 0:
          return await zk.delete(path);
        case 1:
          return void (await zk.create(path, data, { parents: true }));
        default:
          return void (await zk.setData(path, data));
      }
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode', 'NodeExists', 'NotEmpty')) throw error;
    }
  }

  /** All processes have stopped writing: by now each cache must show what exists. */
  async leftovers(zk: Client): Promise<readonly string[]> {
    const there = new Map<string, bigint>();
    if ((await zk.exists(root)) !== null) for await (const { path, stat } of zk.walk(root)) if (path !== root) there.set(path, stat.mzxid);
    for (const { process, zk: own, cache, covers, shown } of this.#caches.values()) {
      if (process.isDead || own.endReason !== undefined) continue;
      if (cache.isSynced) process.hitMark('a cache was up to date at the end');
      else process.reportViolation('its cache is not complete, though all faults have ceased');
      const shows = textOf(shown().map(({ path, stat }) => [path, stat.mzxid]));
      const is = textOf([...there].filter(([path]) => covers(path)));
      if (shows !== is) process.reportViolation(`its cache shows ${shows}, but there is ${is}`);
    }
    return [];
  }

  check({ history }: Evidence): readonly string[] {
    return [...checkEntriesShown(this.#entriesShown, history), ...checkContentsShown(this.#contentsShown, history)];
  }
}

function textOf(znodes: readonly (readonly [string, bigint])[]): string {
  return znodes
    .map(([path, mzxid]) => `${path} of ${mzxid}`)
    .sort()
    .join(', ');
}
