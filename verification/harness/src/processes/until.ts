/** Waits. Each has a time limit, since a server that hangs must not hang the tests. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Polling interval: short compared with a server's actions, long compared with the cost of a look.
 */
const pollMs = 40;

/**
 * Polls until there is a value, and returns it. An error of `poll` counts as no value yet. After
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

/** Polls until the condition holds; false after the time limit. */
export async function eventually(condition: () => boolean | Promise<boolean>, atMostMs: number, everyMs = 20): Promise<boolean> {
  const deadline = performance.now() + atMostMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await delay(everyMs);
  }
  return true;
}

/** Waits with a time limit: a server that hangs must not hang the tests. */
export async function within<T>(limitMs: number, what: string, wait: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${limitMs} ms waiting for ${what}`)), limitMs);
  });
  try {
    return await Promise.race([wait, late]);
  } finally {
    clearTimeout(timer);
  }
}
