/**
 * Persistent nodes that are closed but not done yet: requests that failed with a lost connection
 * are sent again over the next one. The znode belongs to them by session and name, and so it does
 * to a later PersistentNode with the same client. The later one waits for them; otherwise they
 * would overwrite its data, and delete its znode.
 *
 * PersistentNodes with different views of a client (`chroot`, a view of schemas) relate to each
 * other as those of two programs: a view does not show its session and full path.
 */
import { currentClient, type SessionSource } from '../sessions/session-source.ts';

const closingNodes = new WeakMap<SessionSource, Map<string, Promise<void>>>();

/** Registers a closed node of this name. It is done when `work` is, which never rejects. */
export function registerClosing(source: SessionSource, path: string, work: Promise<void>): void {
  // A node that is kept through all sessions, and one that is kept in the current session, have the
  // same znode.
  for (const each of new Set([source, currentClient(source)])) {
    const works = closingNodes.get(each) ?? new Map<string, Promise<void>>();
    closingNodes.set(each, works);
    works.set(path, work);
    void work.then(() => works.get(path) === work && works.delete(path));
  }
}

/** Resolves when the earlier ones are done; undefined if there are none. */
export function whenClosed(source: SessionSource, path: string): Promise<void> | undefined {
  return closingNodes.get(source)?.get(path) ?? closingNodes.get(currentClient(source))?.get(path);
}
