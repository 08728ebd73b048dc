/**
 * A znode that a PersistentNode has created, and operations on it that apply only while it is that
 * very znode: another client may have created a new one of the same name.
 */
import { type CallOptions, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { unlessGone } from '../waiting/unless-gone.ts';

/**
 * The data that a znode shall have. Compared by identity: data that were set later are different,
 * even with the same bytes.
 */
export interface Content {
  readonly data: Data;
}

export interface Made {
  readonly zk: ClientView;
  readonly path: string;
  readonly czxid: bigint;
  /** As far as this client knows: another client may have written since. */
  version: number;
  /** The content with which it was created. */
  readonly content: Content;
}

/** The child that is written to instead of a znode with a TTL. */
export function touchOf({ path }: Made): string {
  return childPath(path, 'touch');
}

/**
 * Whether the znode now has these data; false if it is gone. A znode that another client has
 * created in its place is overwritten only if it has the version that ours had, and is not taken
 * for ours then either.
 */
export async function write(made: Made, { data }: Content, options: CallOptions = {}): Promise<boolean> {
  const { zk, path, czxid } = made;
  for (;;) {
    try {
      const stat = await zk.setData(path, data, { ...untilTheEnd, ...options, idempotent: true, version: made.version });
      made.version = stat.version;
      return stat.czxid === czxid;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return false;
      if (!KeeperError.is(error, 'BadVersion')) throw error;
    }
    const now = await zk.exists(path, { ...untilTheEnd, ...options });
    if (now?.czxid !== czxid) return false;
    made.version = now.version;
  }
}

/**
 * Deletes it in its present version; it stays if this client may not delete it. Rejects with the
 * end of the session, and then it may still exist.
 */
export async function remove(made: Made): Promise<void> {
  const { zk, path, czxid } = made;
  for (;;) {
    const stat = await zk.exists(path, untilTheEnd);
    if (stat === null || stat.czxid !== czxid) return;
    try {
      if (stat.numChildren > 0) await unlessGone(zk.delete(touchOf(made), { ...untilTheEnd, idempotent: true }));
      await zk.delete(path, { ...untilTheEnd, version: stat.version });
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
export async function removeInAny(source: SessionSource, made: Made): Promise<void> {
  try {
    for await (const zk of sessionsOf(source, undefined)) {
      try {
        await remove({ ...made, zk });
        return;
      } catch (error) {
        if (!isEndOfSession(error)) throw error;
      }
    }
  } catch {
    // There is no further session, or the client is closed.
  }
}
