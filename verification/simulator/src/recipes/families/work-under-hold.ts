/**
 * What a process does with a hold of any kind: it writes to its store, slowly at times, and
 * sometimes although it should not.
 */
import type { ObservedHold, MutualExclusionChecker } from '../mutual-exclusion.ts';
import { KeeperError } from '@tskeeper/client';
import { type Hold, RecipeError } from '@tskeeper/recipes';
import type { RecipeProcess } from '../recipe-process.ts';

/** How long processes wait: forever, for a while, or until their program aborts. */
export function drawWaitOptions(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  if (process.isHealed) return {};
  switch (process.below(5)) {
    case 0:
      return { timeoutMs: process.below(2500) };
    case 1: {
      const abort = new AbortController();
      process.clock.after(process.below(2500), () => abort.abort(new RecipeError('TimedOut', 'the program has aborted the wait')));
      return { signal: abort.signal };
    }
    default:
      return {};
  }
}

/**
 * One of so many processes pauses for longer than its session timeout, in the middle of what it is
 * about to begin.
 */
export function maybeFreeze(process: RecipeProcess, oneIn: number): void {
  if (process.isHealed || process.below(oneIn) > 0) return;
  process.clock.after(process.below(15), () => {
    if (!process.isHealed) process.freeze(process.timeoutMs + process.below(process.timeoutMs));
  });
}

/** When asked to release, it takes its time; after it has agreed it must no longer hold. */
export function drawRevocationHandler(process: RecipeProcess): ((held: Hold) => Promise<void>) | undefined {
  if (process.below(2) === 0) return undefined;
  return async (held) => {
    await process.sleep(process.below(300));
    process.clock.after(1, () => {
      if (held.state === 'held' || held.state === 'suspended')
        process.reportViolation(`${held.path} is still held after its holder agreed to release it`);
      else process.hitMark('a hold was released on revocation');
    });
  };
}

/** Works with several holds that other processes may share. */
export async function workUnderSharedHolds(process: RecipeProcess, holds: readonly ObservedHold[], store: string): Promise<void> {
  if (process.below(8) === 0) {
    const endMs = process.nowMs + process.below(3000);
    while (!process.isHealed && !holds.some(({ isLost }) => isLost) && process.nowMs < endMs) await process.sleep(250);
  }
  await process.sleep(process.below(200));
  for (const hold of holds) {
    while (hold.isSuspended) await process.sleep(100);
    if (!hold.isLost) await hold.write(store);
  }
}

/** Works with a hold that is exclusive. */
export async function workUnderHold(
  process: RecipeProcess,
  holds: MutualExclusionChecker,
  hold: ObservedHold,
  store: string,
): Promise<void> {
  // Some work for long before they send the next request, and stop when the hold is lost.
  if (process.below(8) === 0) {
    const endMs = process.nowMs + process.below(process.below(2) === 0 ? 2000 : 10_000);
    while (!process.isHealed && !hold.isLost && process.nowMs < endMs) await process.sleep(250);
  }
  for (let writes = 1 + process.below(3); writes > 0; writes--) {
    await process.sleep(process.below(120));
    // Most start nothing new while the hold is suspended.
    if (process.below(3) > 0) while (hold.isSuspended) await process.sleep(100);
    if (hold.isLost) break;
    holds.fencedStore.write(hold);
    await hold.write(store);
  }
  if (!hold.isLost) return;
  // Some continue although they know.
  process.hitMark('a write was attempted with a lost hold');
  holds.fencedStore.write(hold);
  try {
    await hold.write(store);
  } catch (error) {
    if (!(error instanceof RecipeError && error.code === 'Lost') && !KeeperError.is(error)) throw error;
    return;
  }
  process.reportViolation(`${hold.path} is lost, but its write succeeded`);
}
