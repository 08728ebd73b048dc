/** Waits for the next event of a znode that belongs to another client. */
import type { ClientView, ReadOptions } from '@tskeeper/client';
import { WatchedRead } from './watched-read.ts';

/**
 * Retry options for requests that have to be answered: as long as the session lives and the signal
 * is not aborted, at another server if the client leaves one that does not answer.
 */
export const retryForever = { retry: { maxAttempts: Infinity, maxElapsedMs: Infinity } } as const;

/**
 * Resolves with true after any event of the znode, or after the end of the session, which the next
 * request reports; with false at once if the znode does not exist. Rejects as `exists` does, and
 * with the signal's reason. Leaves no watch behind.
 */
export function waitForEvent(zk: ClientView, path: string, signal: AbortSignal): Promise<boolean> {
  return waitForEventUnless(
    zk,
    path,
    (options) => zk.exists(path, options),
    (stat) => stat === null,
    signal,
  );
}

/**
 * Reads once, with a watch on `path`. Resolves with false at once if the result is enough;
 * otherwise with true, after an event of the watch, or after the end of the session, which the next
 * request reports. Rejects as `ask` does, and with the signal's reason. Leaves no watch behind.
 */
export async function waitForEventUnless<Answer>(
  zk: ClientView,
  path: string,
  read: (options: ReadOptions) => Promise<Answer>,
  isEnough: (answer: Answer) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const watchedRead = await WatchedRead.start(zk, path, (watch) => read({ ...retryForever, watch, signal }));
  if (isEnough(watchedRead.result)) {
    watchedRead.cancel();
    return false;
  }
  await watchedRead.nextEvent(signal);
  return true;
}
