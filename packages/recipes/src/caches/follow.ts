/** What a cache shows, told whenever it is something else, through as many sessions as there are. */
import type { ClientView } from '@tskeeper/client';
import { isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { Sessions } from '../sessions/sessions.ts';
import type { Cache } from './cache.ts';

/**
 * Tells what the cache shows when it is in step first, and what it shows then, once all that has changed is read; and when it is out of step. `same` says of two that
 * there is nothing to tell. Ends and throws as `Cache.changes` does; with Sessions the end of one is not the end.
 */
export async function* follow<Data, Shown>(
  source: SessionSource,
  signal: AbortSignal | undefined,
  open: (zk: ClientView) => { readonly cache: Cache<Data>; readonly show: () => Shown },
  same: (one: Shown, other: Shown) => boolean,
): AsyncGenerator<Shown, void, undefined> {
  let last: { readonly shown: Shown } | undefined;
  for await (const zk of sessionsOf(source, signal)) {
    const { cache, show } = open(zk);
    await using _cache = cache;
    try {
      for await (const { kind } of cache.changes({ signal })) {
        // What is being read is shown piece by piece until then.
        if (!cache.inStep && (kind !== 'outOfStep' || last === undefined)) continue;
        const shown = show();
        if (last !== undefined && same(last.shown, shown)) continue;
        last = { shown };
        yield shown;
      }
    } catch (error) {
      if (!(source instanceof Sessions) || !isEndOfSession(error)) throw error;
    }
  }
}
