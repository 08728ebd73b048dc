/**
 * Which servers are enough.
 *
 * A quorum is a set of voters that shares a member with every other quorum, so that no two of them can decide differently without one server
 * knowing of both. Elections, epochs and commits each ask for one. Observers are never part of it, whatever they send (ZOOKEEPER-764, 2959).
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';

/**
 * Some servers. A `Set` is one; so is an object that works out the answer, such as "has acknowledged this zxid", which is how the leader
 * asks at each ACK without building a set.
 */
export interface Sids {
  has(sid: Sid): boolean;
}

export interface QuorumVerifier {
  /** Ascending, without doubles. */
  readonly voters: readonly Sid[];
  isVoter(sid: Sid): boolean;
  /** What its voice counts: 0 for whoever is no voter. A voter of weight 0 cannot lead. */
  weight(sid: Sid): number;
  /** Whether these are enough. Servers in it that are no voters do not count. Allocates nothing: it is asked at each ACK. */
  containsQuorum(sids: Sids): boolean;
  /** Whether an oracle decides here and has said that this server may not go on alone: then it follows whoever says it leads. */
  deniedByOracle(): boolean;
  fingerprint(to: Fingerprint): void;
}

/** Voters in the order in which a verifier keeps them. */
export function inOrder(sids: Iterable<Sid>): readonly Sid[] {
  return [...new Set(sids)].sort((a, b) => a - b);
}
