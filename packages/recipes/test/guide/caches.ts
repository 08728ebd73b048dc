/** The code in docs/guides/caches.md. */
import type { Client } from '@tskeeper/client';
import { type CacheChange, ChildrenCache, NodeCache, type Sessions, TreeCache } from '@tskeeper/recipes';

/** Keeps the settings in memory. Invalid data leave the default in force. */
export async function openSettings(
  source: Client | Sessions,
): Promise<{ readonly current: () => Settings; readonly cache: NodeCache<Settings> }> {
  const cache = new NodeCache(source, '/app/settings', {
    decode: (data) => asSettings(JSON.parse(new TextDecoder().decode(data ?? undefined))),
  });
  await cache.ready({ timeoutMs: 10_000 });
  return { current: () => cache.znode?.data ?? defaults, cache };
}

/** Valid settings. */
export interface Settings {
  readonly colour: string;
}

const defaults: Settings = { colour: 'grey' };

function asSettings(value: unknown): Settings {
  if (typeof value === 'object' && value !== null && 'colour' in value && typeof value.colour === 'string') return { colour: value.colour };
  throw new TypeError('settings are {"colour": "..."}');
}

/** Keeps the list of workers, and returns one after another. */
export async function openWorkers(
  source: Client | Sessions,
): Promise<{ readonly next: () => string | undefined; readonly cache: ChildrenCache }> {
  const cache = new ChildrenCache(source, '/app/workers');
  await cache.ready();
  let turn = 0;
  const next = (): string | undefined => {
    const names = cache.names.toSorted();
    return names.length === 0 ? undefined : names[turn++ % names.length];
  };
  return { next, cache };
}

/** Reports everything that happens below a znode, until the signal is aborted. */
export async function follow(source: Client | Sessions, tell: (line: string) => void, signal: AbortSignal): Promise<void> {
  await using cache = new TreeCache(source, '/app', { maxDepth: 2 });
  const changes = cache.changes({ signal });
  await cache.ready({ signal });
  for await (const change of changes) tell(inWords(change));
}

/** One line for each change. */
function inWords(change: CacheChange): string {
  switch (change.kind) {
    case 'created':
    case 'changed':
      return `${change.path} is ${new TextDecoder().decode(change.after.data ?? undefined)}`;
    case 'deleted':
      return `${change.path} is gone`;
    case 'unreadable':
      return `${change.path} may not be read`;
    case 'outOfStep':
      return 'the state may be out of date';
    case 'inStep':
      return 'the state is complete';
    case 'overflowed':
      return `the queue was full: ${change.dropped} changes were not reported; the cache has them`;
    default:
      return change satisfies never;
  }
}
