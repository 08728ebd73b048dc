/**
 * Keepers that are closed and not done yet: what they have asked of a lost connection is asked again over the next one. The znode is theirs by session and name,
 * just as it is that of a keeper that comes behind them with the same client. It waits for them, or they would overwrite its data, and delete its znode.
 */
import type { ClientView } from '@tskeeper/client';

const departing = new WeakMap<ClientView, Map<string, Promise<void>>>();

/** The keeper of this name is done when `work` is, which never rejects. */
export function depart(zk: ClientView, path: string, work: Promise<void>): void {
  const works = departing.get(zk) ?? new Map<string, Promise<void>>();
  departing.set(zk, works);
  works.set(path, work);
  void work.then(() => works.get(path) === work && works.delete(path));
}

/** Resolves when those before it are done; undefined when there are none. */
export function departed(zk: ClientView, path: string): Promise<void> | undefined {
  return departing.get(zk)?.get(path);
}
