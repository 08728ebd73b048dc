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
import type { QuorumVerifier, Sids } from './quorum-verifier.ts';

export class OracleQuorum implements QuorumVerifier {
  readonly #majority: MajorityQuorum;
  /** False if the file is unreadable: a server must not continue alone by mistake. */
  #mayGoAlone = false;
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
  oracleSaid(mayGoAlone: boolean): void {
    this.#mayGoAlone = mayGoAlone;
  }

  /**
   * Input: whether a voter follows this server, which leads. False for a server that does not lead.
   */
  followed(hasFollower: boolean): void {
    this.#hasFollower = hasFollower;
  }

  isVoter(sid: Sid): boolean {
    return this.#majority.isVoter(sid);
  }

  weight(sid: Sid): number {
    return this.#majority.weight(sid);
  }

  containsQuorum(sids: Sids): boolean {
    return this.#majority.containsQuorum(sids) || (this.#mayGoAlone && this.#isAsked() && this.#hasOne(sids));
  }

  deniedByOracle(): boolean {
    return this.#isAsked() && !this.#mayGoAlone;
  }

  fingerprint(to: Fingerprint): void {
    to.text('oracle');
    to.number(this.#mayGoAlone ? 1 : 0);
    to.number(this.#hasFollower ? 1 : 0);
    this.#majority.fingerprint(to);
  }

  #hasOne(sids: Sids): boolean {
    return sids.has(this.voters[0]!) || sids.has(this.voters[1]!);
  }

  /**
   * One voter needs no oracle; with three, an oracle could allow two quorums without a common
   * server.
   */
  #isAsked(): boolean {
    return this.voters.length === 2 && !this.#hasFollower;
  }
}
