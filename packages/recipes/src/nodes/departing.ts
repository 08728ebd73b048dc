/**
 * Keepers that are closed and not done yet: what they have asked of a lost connection is asked again over the next one. The znode is theirs by session and name,
 * just as it is that of a keeper that comes behind them with the same client. It waits for them, or they would overwrite its data, and delete its znode.
 *
 * Keepers by different views of a client (`chroot`, a view of schemas) are to each other as those of two programs: a view does not tell which session and path it is of.
 */
import { clientOf, type SessionSource } from '../sessions/session-source.ts';

const departing = new WeakMap<SessionSource, Map<string, Promise<void>>>();

/** The keeper of this name is done when `work` is, which never rejects. */
export function depart(source: SessionSource, path: string, work: Promise<void>): void {
  // Who keeps a znode through all sessions, and who keeps one in the session of now, are after the same one.
  for (const each of new Set([source, clientOf(source)])) {
    const works = departing.get(each) ?? new Map<string, Promise<void>>();
    departing.set(each, works);
    works.set(path, work);
    void work.then(() => works.get(path) === work && works.delete(path));
  }
}

/** Resolves when those before it are done; undefined when there are none. */
export function departed(source: SessionSource, path: string): Promise<void> | undefined {
  return departing.get(source)?.get(path) ?? departing.get(clientOf(source))?.get(path);
}
