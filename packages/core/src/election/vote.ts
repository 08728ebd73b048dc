/**
 * Compares votes: which of two is better, and which two are the same.
 *
 * A vote names a server and the end of its history when it entered the election. The best history
 * wins because a leader never takes back a txn: every acknowledged txn is in the log of some server
 * of every quorum, so the server with the longest log of a quorum has all of them. The sid decides
 * between equal histories, so that all servers choose the same one without further messages.
 */
import type { Notification, ServerState, Sid, Zxid } from '@tskeeper/protocol';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';

export interface Vote {
  readonly leader: Sid;
  /** Last zxid in the log of `leader`. */
  readonly zxid: Zxid;
  /** The round of the vote: how recent it is, not how good. */
  readonly electionEpoch: number;
  /**
   * currentEpoch of `leader`. Higher than the epoch of `zxid` if nothing was written since the
   * epoch began.
   */
  readonly peerEpoch: number;
}

/** A vote as a server has announced it, with the state of that server. */
export interface AnnouncedVote extends Vote {
  readonly state: ServerState;
  /** Of the notification; see `agree`. */
  readonly version: number;
}

/**
 * Whether `a` is better than `b`: the later epoch, then the later zxid, then the larger sid. The
 * epoch comes first because a log that was cut off from the ensemble may be longer than one that
 * has been through a later epoch (ZOOKEEPER-335).
 *
 * A server of weight 0 cannot lead, so a vote for one never wins, and loses against any vote for a
 * server that can. The latter differs from ZooKeeper, where a server of weight 0 with the longest
 * log keeps voting for itself; since its vote counts nothing, only that server notices.
 *
 * While a configuration is pending, a server that has a weight in it alone loses against an equal
 * history: servers that have not received that configuration do not vote for it yet. With the latest
 * history it wins, since the others may need its vote and it would follow none of them. In ZooKeeper
 * only the sid counts, and a server without a weight in the active configuration never leads.
 */
export function isBetterVote(a: Vote, b: Vote, verifier: QuorumVerifier): boolean {
  if (verifier.weight(a.leader) === 0) return false;
  if (verifier.weight(b.leader) === 0) return true;
  if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch > b.peerEpoch;
  if (a.zxid !== b.zxid) return a.zxid > b.zxid;
  const isActive = verifier.active.weight(a.leader) > 0;
  if (isActive !== verifier.active.weight(b.leader) > 0) return isActive;
  return a.leader > b.leader;
}

export function sameVote(a: Vote, b: Vote): boolean {
  return a.leader === b.leader && a.zxid === b.zxid && a.electionEpoch === b.electionEpoch && a.peerEpoch === b.peerEpoch;
}

/**
 * Whether two announced votes count together.
 *
 * In the election itself all fields must agree. Between settled servers, zxid and round may differ
 * although they follow the same leader, depending on how each joined (ZOOKEEPER-1805); a leader and
 * an epoch belong together only once, so these two are enough. Servers before 3.4.6 (version 0) do
 * not raise the epoch of their vote after synchronising, so between one of them and a later one
 * only the leader is compared (ZOOKEEPER-1732).
 */
export function agree(a: AnnouncedVote, b: AnnouncedVote): boolean {
  if (a.state === 'looking' || b.state === 'looking') return sameVote(a, b);
  return a.leader === b.leader && (a.peerEpoch === b.peerEpoch || a.version > 0 !== b.version > 0);
}

export function voteOf({ leader, zxid, electionEpoch, peerEpoch }: Notification): Vote {
  return { leader, zxid, electionEpoch, peerEpoch };
}
