/**
 * Two voters and an oracle (`oraclePath` in zoo.cfg).
 *
 * A majority of two voters is both, so the loss of either stops the ensemble. An external oracle,
 * which allows at most one of them to continue alone, breaks the tie. Its answer is an input; the
 * owner of this object reads the file. The oracle itself must guarantee that it never allows both
 * at once: nothing here could detect it.
 *
 * The answer concerns the server that reads it. So it makes a quorum of this server alone, and of
 * no set without it: neither of the other voter, nor of one voter in the view of a server that a
 * reconfiguration has removed, or of an observer. QuorumOracleMaj does not look at the set at all,
 * so that a leader outside the configuration, and one whose own log lacks the txn, commit alone.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { MajorityQuorum } from './majority-quorum.ts';
import type { QuorumVerifier, SidSet } from './quorum-verifier.ts';

export class OracleQuorum implements QuorumVerifier {
  readonly #own: Sid;
  readonly #majority: MajorityQuorum;
  /** False if the file is unreadable: a server must not continue alone by mistake. */
  #canServeAlone = false;
  /** While the other voter follows this server, its answer counts, not the oracle's. */
  #isFollowed = false;

  /** `own` is this server, which need not be one of the voters. */
  constructor(own: Sid, voters: Iterable<Sid>) {
    this.#own = own;
    this.#majority = new MajorityQuorum(voters);
  }

  get voters(): readonly Sid[] {
    return this.#majority.voters;
  }

  /**
   * Input: whether the first character of the oracle's file is `1`; false if the file cannot be
   * read.
   */
  oracleAnswered(canServeAlone: boolean): void {
    this.#canServeAlone = canServeAlone;
  }

  /**
   * Input: the servers that follow this one and are in step; none if it does not lead. Returns
   * whether the other of two voters was among them and is no longer: then the oracle decides again.
   */
  setFollowers(followers: SidSet): boolean {
    const wasFollowed = this.#isFollowed;
    // A voter of another configuration says nothing of the other of these two.
    this.#isFollowed = this.#canBeAlone() && this.voters.some((sid) => sid !== this.#own && followers.has(sid));
    return wasFollowed && !this.#isFollowed;
  }

  isVoter(sid: Sid): boolean {
    return this.#majority.isVoter(sid);
  }

  get active(): this {
    return this;
  }

  weight(sid: Sid): number {
    return this.#majority.weight(sid);
  }

  containsQuorum(sids: SidSet): boolean {
    if (this.#majority.containsQuorum(sids)) return true;
    return this.#canServeAlone && !this.#isFollowed && this.#canBeAlone() && sids.has(this.#own);
  }

  get mayLackMajority(): boolean {
    return this.voters.length === 2;
  }

  fingerprint(to: Fingerprint): void {
    to.text('oracle');
    to.number(this.#canServeAlone ? 1 : 0);
    to.number(this.#isFollowed ? 1 : 0);
    this.#majority.fingerprint(to);
  }

  /**
   * One voter needs no oracle; with three, an oracle could allow two quorums without a common
   * server.
   */
  #canBeAlone(): boolean {
    return this.voters.length === 2 && this.isVoter(this.#own);
  }
}
