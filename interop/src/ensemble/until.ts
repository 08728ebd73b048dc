/** Waits for conditions: every wait has a time limit, and names what it waited for. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Polling interval: short compared with a server's actions, long compared with the cost of a look.
 */
const pollMs = 40;

/**
 * Polls until there is a value, and returns it. An error of `look` counts as no value yet. After
 * `timeoutMs` it throws an `Error` with `what` and the text of `evidence`.
 */
export async function until<T>(
  what: string,
  poll: () => Promise<T | undefined>,
  timeoutMs: number,
  evidence?: () => Promise<string>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastError = '';
  for (;;) {
    try {
      const seen = await poll();
      if (seen !== undefined) return seen;
      lastError = '';
    } catch (error) {
      lastError = `: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (performance.now() > deadline) {
      throw new Error(
        `timed out after ${timeoutMs} ms waiting for: ${what}${lastError}${evidence === undefined ? '' : `\n${await evidence()}`}`,
      );
    }
    await delay(pollMs);
  }
}
