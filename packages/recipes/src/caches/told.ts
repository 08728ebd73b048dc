/** What a cache shows, told whenever it is something else. */
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
