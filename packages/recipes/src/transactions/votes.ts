/**
 * The vote of a site: a znode that is written once.
 *
 * A client votes with the version that the znode had without a vote, so of several writers one
 * wins, and the others read its vote: a vote never changes. The same holds for a site that is gone,
 * in whose place another client votes `abort`: either that vote comes first, or the site's own.
 */
import { type ClientView, type GetDataResult, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { connectionLossCodes, retryForever } from '../waiting/own-znode.ts';
import { ChangeWatch } from './change-watch.ts';

/**
 * A site's vote, after it has found out whether it can do its part: ZooKeeper's recipe has these
 * two words.
 */
export type Vote = 'commit' | 'abort';

/** The vote in a znode, which is one of the two words. Other data are not a vote yet. */
export function parseVote(data: Uint8Array | null): Vote | undefined {
  const text = data === null ? '' : new TextDecoder().decode(data);
  return text === 'commit' || text === 'abort' ? text : undefined;
}

/** The ephemeral of a site that is at work, below the znode of its vote. */
export function presencePath(sitePath: string): string {
  return childPath(sitePath, 'present');
}

/** The znode of a vote as read. */
export interface Ballot {
  /** The vote, which is final; undefined if there was none yet. */
  readonly vote: Vote | undefined;
  /** Of the znode. */
  readonly version: number;
}

export function ballotOf({ data, stat }: GetDataResult): Ballot {
  return { vote: parseVote(data), version: stat.version };
}

/**
 * Votes, unless there is a vote already, and resolves with the vote that counts. Rejects as
 * `getData` and `setData` do, except for lost replies and versions, and with the signal's reason.
 */
export async function castVote(zk: ClientView, path: string, vote: Vote, firstBallot: Ballot, signal: AbortSignal): Promise<Vote> {
  for (let ballot = firstBallot; ; ballot = ballotOf(await zk.getData(path, { ...retryForever, signal }))) {
    if (ballot.vote !== undefined) return ballot.vote;
    try {
      await zk.setData(path, vote, { ...retryForever, version: ballot.version, signal });
      return vote;
    } catch (error) {
      if (!KeeperError.is(error, 'BadVersion', ...connectionLossCodes)) throw error;
    }
  }
}

/**
 * Resolves with the vote of a site as soon as there is one. With `presence`, a site that has
 * joined, and is gone without a vote, gets one: `abort`. Rejects with NoNode when the znode of the
 * vote is gone.
 */
export async function waitForVote(zk: ClientView, path: string, presence: boolean, signal: AbortSignal): Promise<Vote> {
  for (;;) {
    using watch = new ChangeWatch(zk, path);
    const options = { ...retryForever, watch: watch.listener, signal };
    const ballot = ballotOf(await zk.getData(path, options));
    if (ballot.vote !== undefined) return ballot.vote;
    if (presence) {
      const { children, stat } = await zk.getChildren(path, options);
      // The number of changes of the children distinguishes a site that is gone from one that has
      // not joined yet.
      if (children.length === 0 && stat.cversion > 0) return castVote(zk, path, 'abort', ballot, signal);
    }
    const { type } = await watch.next(signal);
    if (type !== 'NodeDataChanged') continue;
    // A vote never changes again, so it needs no watch.
    const written = parseVote((await zk.getData(path, { ...retryForever, signal })).data);
    if (written !== undefined) return written;
  }
}
