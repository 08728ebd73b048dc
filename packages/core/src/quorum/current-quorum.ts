/**
 * The quorums that count at this moment. Leader and election keep this object, and a
 * reconfiguration changes what it answers, so that no part of them can count by a configuration
 * that has been replaced.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { QuorumVerifier, SidSet } from './quorum-verifier.ts';

export class CurrentQuorum implements QuorumVerifier {
  #verifier: QuorumVerifier;

  constructor(verifier: QuorumVerifier) {
    this.#verifier = verifier;
  }

  replace(verifier: QuorumVerifier): void {
    this.#verifier = verifier;
  }

  get voters(): readonly Sid[] {
    return this.#verifier.voters;
  }

  isVoter(sid: Sid): boolean {
    return this.#verifier.isVoter(sid);
  }

  get active(): QuorumVerifier {
    return this.#verifier.active;
  }

  weight(sid: Sid): number {
    return this.#verifier.weight(sid);
  }

  containsQuorum(sids: SidSet): boolean {
    return this.#verifier.containsQuorum(sids);
  }

  get mayLackMajority(): boolean {
    return this.#verifier.mayLackMajority;
  }

  fingerprint(to: Fingerprint): void {
    this.#verifier.fingerprint(to);
  }
}
