/** Waiting for something to be so: every wait has an end, and says what it waited for. */
import { setTimeout as delay } from 'node:timers/promises';

/** Between two looks. Small beside what servers take for anything, large beside what a look costs. */
const pollMs = 40;

/**
 * Looks until there is a value, and gives it. A look that throws has seen nothing yet. After `timeoutMs` it throws an `Error` with `what`,
 * and with what `evidence` tells.
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined>,
  timeoutMs: number,
  evidence?: () => Promise<string>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let trouble = '';
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      trouble = '';
    } catch (error) {
      trouble = `: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}${trouble}${evidence === undefined ? '' : `\n${await evidence()}`}`);
    }
    await delay(pollMs);
  }
}
