/**
 * The quorums of this server, while another server reports a pending configuration that this one does
 * not have in its log.
 *
 * The report gives votes to the servers of that configuration, and lets them lead. If one of them has
 * the latest history, and its quorum needs the vote of this server, no other server can lead: it must
 * be possible to vote for it. A report is the word of one server, so it does not change the quorums: a
 * server that could not learn that the change was taken back would wait for strangers. The elected
 * leader has the configuration in its log, and counts by both.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { sortedUniqueSids, type QuorumVerifier, type SidSet } from './quorum-verifier.ts';

export class ReportedQuorum implements QuorumVerifier {
  readonly voters: readonly Sid[];
  readonly #own: QuorumVerifier;
  readonly #reported: QuorumVerifier;

  /** `own`: what this server counts by without the report. */
  constructor(own: QuorumVerifier, reported: QuorumVerifier) {
    this.#own = own;
    this.#reported = reported;
    this.voters = sortedUniqueSids([...own.voters, ...reported.voters]);
  }

  isVoter(sid: Sid): boolean {
    return this.#own.isVoter(sid) || this.#reported.isVoter(sid);
  }

  get active(): QuorumVerifier {
    return this.#own.active;
  }

  weight(sid: Sid): number {
    return this.#own.weight(sid) || this.#reported.weight(sid);
  }

  containsQuorum(sids: SidSet): boolean {
    return this.#own.containsQuorum(sids);
  }

  get mayLackMajority(): boolean {
    return this.#own.mayLackMajority;
  }

  fingerprint(to: Fingerprint): void {
    to.text('reported');
    this.#own.fingerprint(to);
    this.#reported.fingerprint(to);
  }
}
