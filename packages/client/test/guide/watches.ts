/** The code in docs/guides/watches.md. */
import { type Client, KeeperError, type NodeEvent, type WatchedEvent } from '@tskeeper/client';

/**
 * Keeps a copy of everything below a znode, until the signal is aborted. Calls `tell` when the copy
 * may have changed.
 */
export async function mirror(
  zk: Client,
  root: string,
  tell: (copy: ReadonlyMap<string, string>) => void,
  signal: AbortSignal,
): Promise<never> {
  const text = (data: Uint8Array | null | undefined) => new TextDecoder().decode(data ?? undefined);
  const copy = new Map<string, string>();
  for await (const event of zk.watch(root, { recursive: true, signal })) {
    try {
      switch (event.type) {
        case 'Reread':
          copy.clear();
          for await (const { path, data } of zk.walk(root, { data: true })) copy.set(path, text(data));
          break;
        case 'NodeCreated':
        case 'NodeDataChanged':
          copy.set(event.path, text((await zk.getData(event.path)).data));
          break;
        case 'NodeDeleted':
          copy.delete(event.path);
          break;
      }
    } catch (error) {
      // The connection is lost: a Reread will follow, and the copy is incomplete until then.
      if (KeeperError.is(error, 'ConnectionLoss')) continue;
      // The znode was deleted meanwhile. If it was a single znode, its NodeDeleted will follow.
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
    tell(copy);
  }
  throw new Error('the client has been closed');
}

/** Resolves when a znode does not exist; at once if that is so already. */
export async function untilGone(zk: Client, path: string, signal?: AbortSignal): Promise<void> {
  for await (const event of zk.watch(path, { signal })) {
    if (event.type === 'NodeDeleted') return;
    if (event.type === 'Reread' && (await zk.exists(path, { retry: true })) === null) return;
  }
  throw new Error('the client has been closed');
}

/** The next change of a znode, by a one-shot watch: creation, deletion or new data. */
export function nextChange(zk: Client, path: string): Promise<NodeEvent> {
  return new Promise((resolve, reject) => {
    const watch = (event: WatchedEvent) => {
      if (event.type !== 'None') resolve(event);
      else if (zk.endReason !== undefined) reject(new Error(`the session has ended: ${event.state}`));
    };
    zk.exists(path, { watch, retry: true }).catch(reject);
  });
}

/**
 * Logs every change below a znode, except changes while the connection is lost. Resolves with a
 * function that ends the watch.
 */
export async function report(zk: Client, path: string, log: (line: string) => void): Promise<() => Promise<void>> {
  const watch = (event: WatchedEvent) => {
    if (event.type !== 'None') log(`${event.type} ${event.path}`);
    else if (event.state === 'Disconnected') log('from here on changes may be missing');
  };
  await zk.addWatch(path, { mode: 'persistentRecursive', watch });
  return () => zk.removeWatches(path, { watch, local: true });
}
