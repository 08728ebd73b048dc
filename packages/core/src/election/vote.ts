/**
 * Votes: which of two is better, and which two are the same.
 *
 * A vote names a server and how far its history goes, as of when it entered the election. The best history wins because a leader never
 * takes a txn back: everything that was ever acknowledged is in the log of some server of every quorum, and whoever has the longest log of a
 * quorum has it all. The sid decides between equal histories, so that everybody comes to the same choice without talking about it.
 */
import type { Notification, ServerState, Sid, Zxid } from '@tskeeper/protocol';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';

export interface Vote {
  readonly leader: Sid;
  /** Last zxid in the log of `leader`. */
  readonly zxid: Zxid;
  /** The round in which the vote was given. It says how recent a vote is and nothing of how good. */
  readonly electionEpoch: number;
  /** currentEpoch of `leader`. Higher than the epoch of `zxid` when nothing has been written since the epoch began. */
  readonly peerEpoch: number;
}

/** A vote as a server has announced it, with what its announcement says of the server. */
export interface AnnouncedVote extends Vote {
  readonly state: ServerState;
  /** Of the notification; see `agree`. */
  readonly version: number;
}

/**
 * Whether `a` is better than `b`: the later epoch, then the later zxid, then the larger sid. The epoch comes first because a log that was
 * cut off from the ensemble may have grown longer than one that has been through a later epoch (ZOOKEEPER-335).
 *
 * A server of weight 0 cannot lead, so a vote for one never wins, and loses against any vote for a server that can. The latter is not so in
 * ZooKeeper, where a server of weight 0 with the longest log goes on voting for itself; since its voice counts nothing, only that
 * server notices.
 */
export function beats(a: Vote, b: Vote, verifier: QuorumVerifier): boolean {
  if (verifier.weight(a.leader) === 0) return false;
  if (verifier.weight(b.leader) === 0) return true;
  if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;
  if (a.zxid !== b.zxid) return a.zxid > b.zxid;
  return a.leader > b.leader;
}

export function sameVote(a: Vote, b: Vote): boolean {
  return a.leader === b.leader && a.zxid === b.zxid && a.electionEpoch === b.electionEpoch && a.peerEpoch === b.peerEpoch;
}

/**
 * Whether two announced votes count together.
 *
 * In the election itself all of a vote has to agree. Of servers that have settled zxid and round may differ although they follow the same leader,
 * depending on how each came to it (ZOOKEEPER-1805); a leader and an epoch belong together once only, so these two are enough. Servers before
 * 3.4.6 (version 0) do not raise the epoch of their vote after synchronising, so between one of them and a later one the leader alone
 * has to do (ZOOKEEPER-1732).
 */
export function agree(a: AnnouncedVote, b: AnnouncedVote): boolean {
  if (a.state === 'looking' || b.state === 'looking') return sameVote(a, b);
  return a.leader === b.leader && (a.peerEpoch === b.peerEpoch || a.version > 0 !== b.version > 0);
}

export function voteOf({ leader, zxid, electionEpoch, peerEpoch }: Notification): Vote {
  return { leader, zxid, electionEpoch, peerEpoch };
}
