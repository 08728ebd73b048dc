/** What a cache shows, told whenever it is something else, through as many sessions as there are. */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { Sessions } from '../sessions/sessions.ts';
import type { Cache } from './cache.ts';

/** Whether there is nothing to tell of two, the latter of which is shown now. */
export type IsSame<Shown> = (one: Shown, other: Shown) => boolean;

/**
 * Tells what the cache shows when it is in step first, and what it shows then, once all that has changed is read; and when it is out of step. Ends and throws as
 * `Cache.changes` does.
 */
export async function* told<Data, Shown>(
  cache: Cache<Data>,
  signal: AbortSignal | undefined,
  show: () => Shown,
  isSame: IsSame<Shown>,
): AsyncGenerator<Shown, void, undefined> {
  // What is shown is looked at, and not what has led there: one change stands for all that come before it is taken.
  await using changes = cache.changes({ signal, maxQueuedChanges: 1 });
  let last: { readonly shown: Shown } | undefined;
  let wasInStep = false;
  if (cache.inStep) {
    last = { shown: show() };
    wasInStep = true;
    yield last.shown;
  }
  for await (const _change of changes) {
    const { inStep } = cache;
    // What is being read is shown piece by piece until then.
    if (!inStep && !wasInStep) continue;
    wasInStep = inStep;
    const shown = show();
    if (last !== undefined && isSame(last.shown, shown)) continue;
    last = { shown };
    yield shown;
  }
}

/** The same of a cache for each session: with `Sessions` the end of one is not the end. */
export async function* follow<Data, Shown>(
  source: SessionSource,
  signal: AbortSignal | undefined,
  open: (zk: ClientView) => { readonly cache: Cache<Data>; readonly show: () => Shown },
  isSame: IsSame<Shown>,
): AsyncGenerator<Shown, void, undefined> {
  let last: { readonly shown: Shown } | undefined;
  for await (const zk of sessionsOf(source, signal)) {
    const { cache, show } = open(zk);
    await using _cache = cache;
    try {
      for await (const shown of told(cache, signal, show, isSame)) {
        if (last !== undefined && isSame(last.shown, shown)) continue;
        last = { shown };
        yield shown;
      }
    } catch (error) {
      // No other follows on a session that has ended in another way.
      if (!(source instanceof Sessions) || !KeeperError.is(error, 'SessionExpired')) throw error;
    }
  }
}
