/** Waits for the next event of a znode that belongs to another client. */
import type { ClientView, ReadOptions } from '@tskeeper/client';
import { Look } from './look.ts';

/**
 * Retry options for requests that have to be answered: as long as the session lives and the signal
 * is not aborted, at another server if the client leaves one that does not answer.
 */
export const untilTheEnd = { retry: { attempts: Infinity, maxElapsedMs: Infinity } } as const;

/**
 * Resolves with true after any event of the znode, or after the end of the session, which the next
 * request reports; with false at once if the znode does not exist. Rejects as `exists` does, and
 * with the signal's reason. Leaves no watch behind.
 */
export function nextEvent(zk: ClientView, path: string, signal: AbortSignal): Promise<boolean> {
  return eventUnless(
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
export async function eventUnless<Answer>(
  zk: ClientView,
  path: string,
  ask: (options: ReadOptions) => Promise<Answer>,
  isEnough: (answer: Answer) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const look = await Look.take(zk, path, (watch) => ask({ ...untilTheEnd, watch, signal }));
  if (isEnough(look.answer)) {
    look.forget();
    return false;
  }
  await look.next(signal);
  return true;
}
