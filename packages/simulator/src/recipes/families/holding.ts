/** What a process does with what it holds, whatever that is: it writes, here and elsewhere, slowly at times, and even when it should know better. */
import type { Hold, Holds } from '../holds.ts';
import { KeeperError } from '@tskeeper/client';
import { type Held, RecipeError } from '@tskeeper/recipes';
import type { RecipeProcess } from '../recipe-process.ts';

/** How long processes wait for what they want: for ever, for a while, or until their program has another idea. */
export function drawWait(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  if (process.isHealed) return {};
  switch (process.below(5)) {
    case 0:
      return { timeoutMs: process.below(2500) };
    case 1: {
      const abort = new AbortController();
      process.clock.after(process.below(2500), () => abort.abort(new RecipeError('TimedOut', 'the program has another idea')));
      return { signal: abort.signal };
    }
    default:
      return {};
  }
}

/** One in so many stands still for longer than its session lives, in the middle of whatever it is about to begin. */
export function drawStandstill(process: RecipeProcess, oneIn: number): void {
  if (process.isHealed || process.below(oneIn) > 0) return;
  process.clock.after(process.below(15), () => {
    if (!process.isHealed) process.standStill(process.timeoutMs + process.below(process.timeoutMs));
  });
}

/** Asked to give it back, it takes its time; when it has consented it does not hold it any more. */
export function drawConsent(process: RecipeProcess): ((held: Held) => Promise<void>) | undefined {
  if (process.below(2) === 0) return undefined;
  return async (held) => {
    await process.pause(process.below(300));
    process.clock.after(1, () => {
      if (held.state === 'held' || held.state === 'suspended') process.complain(`${held.path} was to be given back, and is held still`);
      else process.note('a hold was given back as asked');
    });
  };
}

/** Works with several holds, of which others may have their share. */
export async function workTogether(process: RecipeProcess, holds: readonly Hold[], store: string): Promise<void> {
  if (process.below(8) === 0) {
    const endMs = process.nowMs + process.below(3000);
    while (!process.isHealed && !holds.some(({ isLost }) => isLost) && process.nowMs < endMs) await process.pause(250);
  }
  await process.pause(process.below(200));
  for (const hold of holds) {
    while (hold.isSuspended) await process.pause(100);
    if (!hold.isLost) await hold.write(store);
  }
}

/** Works with a hold of which nobody else has a share. */
export async function workWith(process: RecipeProcess, holds: Holds, hold: Hold, store: string): Promise<void> {
  // One that has much to do before it asks the ensemble for anything, and stops when it is told to.
  if (process.below(8) === 0) {
    const endMs = process.nowMs + process.below(process.below(2) === 0 ? 2000 : 10_000);
    while (!process.isHealed && !hold.isLost && process.nowMs < endMs) await process.pause(250);
  }
  for (let writes = 1 + process.below(3); writes > 0; writes--) {
    await process.pause(process.below(120));
    // Most begin nothing new while they do not know.
    if (process.below(3) > 0) while (hold.isSuspended) await process.pause(100);
    if (hold.isLost) break;
    holds.witness.write(hold);
    await hold.write(store);
  }
  if (!hold.isLost) return;
  // One that goes on although it has been told.
  process.note('a holder wrote although it was lost');
  holds.witness.write(hold);
  try {
    await hold.write(store);
  } catch (error) {
    if (!(error instanceof RecipeError && error.code === 'Lost') && !KeeperError.is(error)) throw error;
    return;
  }
  process.complain(`${hold.path} is lost, and has written all the same`);
}
