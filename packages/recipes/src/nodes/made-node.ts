/** A znode that a keeper has made, and what it does with it for as long as it is that very znode: the name may be another's by now. */
import { type CallOptions, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { unlessGone } from '../waiting/unless-gone.ts';

export interface Made {
  readonly zk: ClientView;
  readonly path: string;
  readonly czxid: bigint;
  /** As far as is known: others may have written to it since. */
  version: number;
  /** What it was made with. */
  readonly data: Data;
}

/** The child that is written to in place of a znode with a TTL. */
export function touchOf({ path }: Made): string {
  return childPath(path, 'touch');
}

/**
 * Whether it has these data; not if it is gone. One that somebody else has made in its place is overwritten only if that has the version which ours had, and it is
 * not taken for ours then either.
 */
export async function write(made: Made, data: Data, options: CallOptions = {}): Promise<boolean> {
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

/** Deletes it, as it is now. */
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
      if (!isStill) return;
    }
  }
}
