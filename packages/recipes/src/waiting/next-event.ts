/** Waits for what happens next to a znode of others. */
import type { ClientView, ReadOptions } from '@tskeeper/client';
import { Look } from './look.ts';

/** For what has to be found out, for as long as the session lives and the signal lets it; from one server or another, where the client leaves those that do not answer. */
export const untilTheEnd = { retry: { attempts: Infinity, maxElapsedMs: Infinity } } as const;

/**
 * Resolves with true when anything has happened to the znode, or the session has ended, which the next request tells; with false at once if it is not
 * there. Rejects as `exists` does, and with the signal's reason. Leaves no watch behind.
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
 * Asks once, with a watch on `path`. Resolves with false at once if the answer is enough; otherwise with true, when what is watched has changed, or the session
 * has ended, which the next request tells. Rejects as `ask` does, and with the signal's reason. Leaves no watch behind.
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
