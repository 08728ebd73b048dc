/**
 * The last vote of each voter, and what these votes have in common.
 *
 * An election keeps two sets: the votes of its own round, and those of servers that have settled.
 * ZooKeeper calls them recvset and outofelection.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import { agree, type AnnouncedVote, isBetterVote, type Vote } from './vote.ts';

export class VoteSet {
  readonly #votes = new Map<Sid, AnnouncedVote>();

  get(sid: Sid): AnnouncedVote | undefined {
    return this.#votes.get(sid);
  }

  set(sid: Sid, vote: AnnouncedVote): void {
    this.#votes.set(sid, vote);
  }

  clear(): void {
    this.#votes.clear();
  }

  values(): IterableIterator<AnnouncedVote> {
    return this.#votes.values();
  }

  /** Whether a quorum has announced this vote. */
  hasQuorum(vote: AnnouncedVote, verifier: QuorumVerifier): boolean {
    return verifier.containsQuorum({
      has: (sid) => {
        const other = this.#votes.get(sid);
        return other !== undefined && agree(vote, other);
      },
    });
  }

  /** Whether a quorum votes for this server, whatever else is in its votes. */
  hasQuorumFor(leader: Sid, verifier: QuorumVerifier): boolean {
    return verifier.containsQuorum({ has: (sid) => this.#votes.get(sid)?.leader === leader });
  }

  /**
   * A quorum has voted, and too many of it vote for less than the proposal. They have received it
   * and do not adopt it: they cannot reach its leader. Voters for more are not counted as opposed,
   * since they will have to give up for the same reason. This half of a quorum waits for a leader
   * that the other half cannot reach; so the next best gets the vote.
   */
  isHopeless(proposal: Vote, verifier: QuorumVerifier): boolean {
    const supportsProposal = (sid: Sid): boolean => {
      const vote = this.#votes.get(sid);
      return vote !== undefined && !isBetterVote(proposal, vote, verifier);
    };
    return verifier.containsQuorum(this.#votes) && !verifier.containsQuorum({ has: supportsProposal });
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#votes.size);
    for (const sid of [...this.#votes.keys()].sort((a, b) => a - b)) {
      const vote = this.#votes.get(sid)!;
      to.number(sid);
      fingerprintVote(to, vote);
      to.text(vote.state);
      to.number(vote.version);
    }
  }
}

export function fingerprintVote(to: Fingerprint, { leader, zxid, electionEpoch, peerEpoch }: Vote): void {
  for (const number of [leader, zxid, electionEpoch, peerEpoch]) to.number(number);
}
