/** A znode that a keeper has made, and what it does with it for as long as it is that very znode: the name may be another's by now. */
import { type CallOptions, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { isEndOfSession, type SessionSource, sessionsOf } from '../sessions/session-source.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { unlessGone } from '../waiting/unless-gone.ts';

/** What a znode is to have. One that was set later is another, also with the same data. */
export interface Content {
  readonly data: Data;
}

export interface Made {
  readonly zk: ClientView;
  readonly path: string;
  readonly czxid: bigint;
  /** As far as is known: others may have written to it since. */
  version: number;
  /** What it was made with. */
  readonly content: Content;
}

/** The child that is written to in place of a znode with a TTL. */
export function touchOf({ path }: Made): string {
  return childPath(path, 'touch');
}

/**
 * Whether it has these data; not if it is gone. One that somebody else has made in its place is overwritten only if that has the version which ours had, and it is
 * not taken for ours then either.
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

/** Deletes it, as it is now; one that may not be deleted stays. Rejects with the end of the session, and then it may be there still. */
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
      // It has been written to since, the last beat has come, or there was no answer: the next look tells.
      const isStill =
        KeeperError.is(error, 'BadVersion') || (KeeperError.is(error, 'NotEmpty') && stat.numChildren === 0) || isUnanswered(error);
      if (isStill) continue;
      if (isEndOfSession(error)) throw error;
      return;
    }
  }
}

/** Deletes it in the first session that lasts long enough. Never rejects; when there are no more sessions it stays. */
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
    // There is no other session, or the client is over.
  }
}
