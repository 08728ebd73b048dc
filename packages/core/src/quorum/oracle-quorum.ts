/**
 * Two voters and an oracle (`oraclePath` in zoo.cfg).
 *
 * A majority of two voters is both, so the loss of either stops the ensemble. An external oracle,
 * which allows at most one of them to continue alone, breaks the tie. Its answer is an input; the
 * owner of this object reads the file. The oracle itself must guarantee that it never allows both
 * at once: nothing here could detect it.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { MajorityQuorum } from './majority-quorum.ts';
import type { QuorumVerifier, SidSet } from './quorum-verifier.ts';

export class OracleQuorum implements QuorumVerifier {
  readonly #majority: MajorityQuorum;
  /** False if the file is unreadable: a server must not continue alone by mistake. */
  #canServeAlone = false;
  /** While there is a follower, its answer counts, not the oracle's. */
  #hasFollower = false;

  constructor(voters: Iterable<Sid>) {
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
   * Input: whether a voter follows this server, which leads. False for a server that does not lead.
   */
  setHasFollower(hasFollower: boolean): void {
    this.#hasFollower = hasFollower;
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
    return this.#majority.containsQuorum(sids) || (this.#canServeAlone && this.#needsOracle() && this.#hasOneVoter(sids));
  }

  deniedByOracle(): boolean {
    return this.#needsOracle() && !this.#canServeAlone;
  }

  fingerprint(to: Fingerprint): void {
    to.text('oracle');
    to.number(this.#canServeAlone ? 1 : 0);
    to.number(this.#hasFollower ? 1 : 0);
    this.#majority.fingerprint(to);
  }

  #hasOneVoter(sids: SidSet): boolean {
    return sids.has(this.voters[0]!) || sids.has(this.voters[1]!);
  }

  /**
   * One voter needs no oracle; with three, an oracle could allow two quorums without a common
   * server.
   */
  #needsOracle(): boolean {
    return this.voters.length === 2 && !this.#hasFollower;
  }
}
