/** Waits for what happens next to a znode of others. */
import type { ClientView, KeeperState, ReadOptions, WatchListener } from '@tskeeper/client';
import { unlessAborted } from './limit.ts';

/** For what has to be found out, for as long as the session lives and the signal lets it, however long the client lets a request take otherwise. */
export const untilTheEnd = { retry: { attempts: Infinity, maxElapsedMs: Infinity }, timeoutMs: Infinity } as const;

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
  let listener!: WatchListener;
  const heard = new Promise<void>((resolve) => {
    listener = ({ type, state }) => {
      // The loss of a connection says nothing of the znode: what is missed by it is told by the next one.
      if (type !== 'None' || isEnd(state)) resolve();
    };
  });
  const forget = () => void zk.removeWatches(path, { watch: listener, local: true }).catch(() => undefined);
  let isHeard = false;
  try {
    if (isEnough(await ask({ ...untilTheEnd, watch: listener, signal }))) return false;
    await unlessAborted(heard, signal);
    isHeard = true;
    return true;
  } finally {
    if (!isHeard) forget();
  }
}

/** Of the session. */
export function isEnd(state: KeeperState): boolean {
  return state === 'Expired' || state === 'AuthFailed' || state === 'Closed';
}
