/**
 * Two voters and an oracle (`oraclePath` in zoo.cfg).
 *
 * Of two voters a majority is both, so the loss of either stops the ensemble. An oracle outside, which tells one of them at most that it may
 * go on alone, breaks the tie. What it says comes in as an input; whoever owns this reads the file. That no two servers are told so at once is
 * the oracle's duty: nothing here could notice.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { MajorityQuorum } from './majority-quorum.ts';
import type { QuorumVerifier, Sids } from './quorum-verifier.ts';

export class OracleQuorum implements QuorumVerifier {
  readonly #majority: MajorityQuorum;
  /** Unreadable is no: a server must not go on alone by mistake. */
  #mayGoAlone = false;
  /** While there is a follower its answer counts, not the oracle's. */
  #hasFollower = false;

  constructor(voters: Iterable<Sid>) {
    this.#majority = new MajorityQuorum(voters);
  }

  get voters(): readonly Sid[] {
    return this.#majority.voters;
  }

  /** Input: the first character of the oracle's file is `1`, or it is something else, or cannot be read. */
  oracleSaid(mayGoAlone: boolean): void {
    this.#mayGoAlone = mayGoAlone;
  }

  /** Input: whether a voter follows this server, which leads. False for a server that does not lead. */
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

  /** With one voter nobody needs an oracle, with three it could make two quorums that have no server in common. */
  #isAsked(): boolean {
    return this.voters.length === 2 && !this.#hasFollower;
  }
}
