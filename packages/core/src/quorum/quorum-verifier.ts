/**
 * Decides which sets of servers are a quorum.
 *
 * A quorum is a set of voters that shares a member with every other quorum, so that no two of them
 * can decide differently without one server knowing of both. Elections, epochs and commits each
 * need one. Observers never count, whatever they send (ZOOKEEPER-764, 2959).
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';

/**
 * A set of servers. A `Set` is one; so is an object that computes the answer, such as "has
 * acknowledged this zxid", which is how the leader asks at each ACK without building a set.
 */
export interface SidSet {
  has(sid: Sid): boolean;
}

export interface QuorumVerifier {
  /** Ascending, without duplicates. */
  readonly voters: readonly Sid[];
  isVoter(sid: Sid): boolean;
  /** The quorums of today, without those of a configuration that may become active next. */
  readonly active: QuorumVerifier;
  /**
   * The weight of its vote: 0 for a server that is not a voter. A voter of weight 0 cannot lead.
   */
  weight(sid: Sid): number;
  /**
   * Whether the set contains a quorum. Servers that are not voters do not count. Allocates nothing:
   * it is called at each ACK.
   */
  containsQuorum(sids: SidSet): boolean;
  /**
   * Whether one of two voters may lead alone, because an oracle allows it: then no majority confirms
   * to other servers that it leads.
   */
  readonly mayLackMajority: boolean;
  fingerprint(to: Fingerprint): void;
}

/** Voters in the order in which a verifier keeps them. */
export function sortedUniqueSids(sids: Iterable<Sid>): readonly Sid[] {
  return [...new Set(sids)].sort((a, b) => a - b);
}
