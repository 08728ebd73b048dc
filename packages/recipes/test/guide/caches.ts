/** What docs/guides/caches.md shows. */
import type { Client } from '@tskeeper/client';
import { type CacheChange, ChildrenCache, NodeCache, type Sessions, TreeCache } from '@tskeeper/recipes';

/** A setting that is always at hand. What cannot be read as one leaves the default in force. */
export async function openSettings(
  source: Client | Sessions,
): Promise<{ readonly current: () => Settings; readonly cache: NodeCache<Settings> }> {
  const cache = new NodeCache(source, '/app/settings', {
    decode: (data) => asSettings(JSON.parse(new TextDecoder().decode(data ?? undefined))),
  });
  await cache.ready({ timeoutMs: 10_000 });
  return { current: () => cache.znode?.data ?? defaults, cache };
}

/** What the settings are, and what they may be. */
export interface Settings {
  readonly colour: string;
}

const defaults: Settings = { colour: 'grey' };

function asSettings(value: unknown): Settings {
  if (typeof value === 'object' && value !== null && 'colour' in value && typeof value.colour === 'string') return { colour: value.colour };
  throw new TypeError('settings are {"colour": "..."}');
}

/** The workers that are there, and a turn for each. */
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

/** Everything that happens below a znode, for as long as the signal lets it. */
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
      return `${change.path} is none of our business`;
    case 'outOfStep':
      return 'what we know may be of the past';
    case 'inStep':
      return 'we know all there is';
    case 'overflowed':
      return `we did not listen, and missed ${change.dropped} changes; the cache has them all the same`;
    default:
      return change satisfies never;
  }
}
