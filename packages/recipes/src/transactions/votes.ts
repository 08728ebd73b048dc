/**
 * The vote of a site: a znode that is written once.
 *
 * Whoever votes writes with the version at which the znode was seen without a vote, so of several who write one wins, and the others find what it has
 * written: a vote never changes. That is so for the vote of a site that is gone as well, in whose place another votes `abort`: either that comes first, or
 * the site's own.
 */
import { type ClientView, type GetDataResult, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { untilTheEnd } from '../waiting/next-event.ts';
import { ChangeWatch } from './change-watch.ts';
import { lossCodes } from '../waiting/unanswered.ts';

/** What a site says, having found out whether it can do its part: ZooKeeper's recipe has these two words. */
export type Vote = 'commit' | 'abort';

/** What is in a znode that holds one of the two words. Anything else is no vote yet. */
export function wordIn(data: Uint8Array | null): Vote | undefined {
  const text = data === null ? '' : new TextDecoder().decode(data);
  return text === 'commit' || text === 'abort' ? text : undefined;
}

/** The ephemeral of a site that is at work, below the znode of its vote. */
export function presencePath(sitePath: string): string {
  return childPath(sitePath, 'present');
}

/** What a read of the znode of a vote has shown. */
export interface Ballot {
  /** The vote, which stands; undefined if there was none yet. */
  readonly vote: Vote | undefined;
  /** Of the znode. */
  readonly version: number;
}

export function ballotOf({ data, stat }: GetDataResult): Ballot {
  return { vote: wordIn(data), version: stat.version };
}

/**
 * Votes, unless there is a vote already, and resolves with the vote that stands. Rejects as `getData` and `setData` do, but for lost answers and for
 * versions, and with the signal's reason.
 */
export async function cast(zk: ClientView, path: string, vote: Vote, seen: Ballot, signal: AbortSignal): Promise<Vote> {
  for (let ballot = seen; ; ballot = ballotOf(await zk.getData(path, { ...untilTheEnd, signal }))) {
    if (ballot.vote !== undefined) return ballot.vote;
    try {
      await zk.setData(path, vote, { ...untilTheEnd, version: ballot.version, signal });
      return vote;
    } catch (error) {
      if (!KeeperError.is(error, 'BadVersion', ...lossCodes)) throw error;
    }
  }
}

/**
 * Resolves with the vote of a site as soon as there is one. With `presence` a site that has come, and has gone without a vote, gets one: `abort`. Rejects
 * with NoNode when the znode of the vote is gone.
 */
export async function voteOf(zk: ClientView, path: string, presence: boolean, signal: AbortSignal): Promise<Vote> {
  for (;;) {
    using watch = new ChangeWatch(zk, path);
    const options = { ...untilTheEnd, watch: watch.listener, signal };
    const ballot = ballotOf(await zk.getData(path, options));
    if (ballot.vote !== undefined) return ballot.vote;
    if (presence) {
      const { children, stat } = await zk.getChildren(path, options);
      // The number of changes of the children tells one that is gone from one that has not come yet.
      if (children.length === 0 && stat.cversion > 0) return cast(zk, path, 'abort', ballot, signal);
    }
    const { type } = await watch.next(signal);
    if (type !== 'NodeDataChanged') continue;
    // No watch is needed on what never changes again.
    const written = wordIn((await zk.getData(path, { ...untilTheEnd, signal })).data);
    if (written !== undefined) return written;
  }
}
