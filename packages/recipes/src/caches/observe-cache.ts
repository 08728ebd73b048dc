/** Yields what a cache shows, after each change. */
import type { Cache } from './cache.ts';

/** Whether the two are the same to the consumer; the second is shown now. */
export type IsSame<Shown> = (one: Shown, other: Shown) => boolean;

/**
 * Yields what the cache shows when it is in step for the first time, then after each change, when
 * everything that has changed is read; and when it is out of step. Ends and throws as
 * `Cache.changes` does.
 */
export async function* observeCache<Data, Shown>(
  cache: Cache<Data>,
  signal: AbortSignal | undefined,
  snapshot: () => Shown,
  isSame: IsSame<Shown>,
): AsyncGenerator<Shown, void, undefined> {
  // Only the current state matters, not how it came about: one queued change stands for all until
  // it is taken.
  await using changes = cache.changes({ signal, maxQueuedChanges: 1 });
  let last: { readonly shown: Shown } | undefined;
  let wasInStep = false;
  if (cache.isSynced) {
    last = { shown: snapshot() };
    wasInStep = true;
    yield last.shown;
  }
  for await (const _change of changes) {
    const { isSynced } = cache;
    // While the cache reads, it shows parts of the new state.
    if (!isSynced && !wasInStep) continue;
    wasInStep = isSynced;
    const shown = snapshot();
    if (last !== undefined && isSame(last.shown, shown)) continue;
    last = { shown };
    yield shown;
  }
}
