/**
 * A znode that a PersistentNode has created, and operations on it that apply only while it is that
 * very znode: another client may have created a new one of the same name.
 */
import { type CallOptions, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { isUnanswered, retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';

/**
 * The data that a znode shall have. Compared by identity: data that were set later are different,
 * even with the same bytes.
 */
export interface NodeContent {
  readonly data: Data;
}

export interface CreatedNode {
  readonly zk: ClientView;
  readonly path: string;
  readonly czxid: bigint;
  /** As far as this client knows: another client may have written since. */
  version: number;
  /** The content with which it was created. */
  readonly content: NodeContent;
}

/** The child that is written to instead of a znode with a TTL. */
export function touchPathOf({ path }: CreatedNode): string {
  return childPath(path, 'touch');
}

/**
 * Whether the znode now has these data; false if it is gone. A znode that another client has
 * created in its place is overwritten only if it has the version that ours had, and is not taken
 * for ours then either.
 */
export async function writeNode(node: CreatedNode, { data }: NodeContent, options: CallOptions = {}): Promise<boolean> {
  const { zk, path, czxid } = node;
  for (;;) {
    try {
      const stat = await zk.setData(path, data, { ...retryForever, ...options, idempotent: true, version: node.version });
      node.version = stat.version;
      return stat.czxid === czxid;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return false;
      if (!KeeperError.is(error, 'BadVersion')) throw error;
    }
    const now = await zk.exists(path, { ...retryForever, ...options });
    if (now?.czxid !== czxid) return false;
    node.version = now.version;
  }
}

/**
 * Deletes it in its present version; it stays if this client may not delete it. Rejects with the
 * end of the session, and then it may still exist.
 */
export async function deleteNode(node: CreatedNode): Promise<void> {
  const { zk, path, czxid } = node;
  for (;;) {
    const stat = await zk.exists(path, retryForever);
    if (stat === null || stat.czxid !== czxid) return;
    try {
      if (stat.numChildren > 0) await undefinedIfNoNode(zk.delete(touchPathOf(node), { ...retryForever, idempotent: true }));
      await zk.delete(path, { ...retryForever, version: stat.version });
      return;
    } catch (error) {
      // It was written to since, or the last beat arrived, or the reply was lost: the next read
      // shows it.
      const isStill =
        KeeperError.is(error, 'BadVersion') || (KeeperError.is(error, 'NotEmpty') && stat.numChildren === 0) || isUnanswered(error);
      if (isStill) continue;
      if (isEndOfSession(error)) throw error;
      return;
    }
  }
}

/**
 * Deletes it in the first session that lasts long enough. Never rejects; if there are no more
 * sessions it stays.
 */
export async function deleteNodeInAnySession(source: SessionSource, node: CreatedNode): Promise<void> {
  try {
    for await (const zk of sessionsOf(source, undefined)) {
      try {
        await deleteNode({ ...node, zk });
        return;
      } catch (error) {
        if (!isEndOfSession(error)) throw error;
      }
    }
  } catch {
    // There is no further session, or the client is closed.
  }
}
