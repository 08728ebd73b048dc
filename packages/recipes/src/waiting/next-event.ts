/** Waits for what happens next to a znode of others. */
import type { ClientView, KeeperState, WatchListener } from '@tskeeper/client';
import { unlessAborted } from './limit.ts';

/** For what has to be found out, for as long as the session lives and the signal lets it, however long the client lets a request take otherwise. */
export const untilTheEnd = { retry: { attempts: Infinity, maxElapsedMs: Infinity }, timeoutMs: Infinity } as const;

/**
 * Resolves with true when anything has happened to the znode, or the session has ended, which the next request tells; with false at once if it is not
 * there. Rejects as `exists` does, and with the signal's reason. Leaves no watch behind.
 */
export async function nextEvent(zk: ClientView, path: string, signal: AbortSignal): Promise<boolean> {
  let listener!: WatchListener;
  const heard = new Promise<void>((resolve) => {
    listener = ({ type, state }) => {
      // The loss of a connection says nothing of the znode: what is missed by it is told by the next one.
      if (type !== 'None' || isEnd(state)) resolve();
    };
  });
  const forget = () => void zk.removeWatches(path, { watch: listener, local: true }).catch(() => undefined);
  if ((await zk.exists(path, { ...untilTheEnd, watch: listener, signal })) === null) {
    forget();
    return false;
  }
  try {
    await unlessAborted(heard, signal);
    return true;
  } catch (reason) {
    forget();
    throw reason;
  }
}

/** Of the session. */
export function isEnd(state: KeeperState): boolean {
  return state === 'Expired' || state === 'AuthFailed' || state === 'Closed';
}
