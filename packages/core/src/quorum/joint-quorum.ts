/**
 * A quorum of the configuration in force and one of the configuration that was seen last and is to follow it.
 *
 * While a reconfiguration is under way some servers go by the old configuration and some by the new one. Whoever knows of both asks for
 * both, so that what it decides is known to every quorum of either.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { inOrder, type QuorumVerifier, type Sids } from './quorum-verifier.ts';

export class JointQuorum implements QuorumVerifier {
  readonly voters: readonly Sid[];
  readonly #current: QuorumVerifier;
  readonly #lastSeen: QuorumVerifier;

  /** `lastSeen` is to have a higher version than `current`; with an equal one `current` alone is what to ask. */
  constructor(current: QuorumVerifier, lastSeen: QuorumVerifier) {
    this.#current = current;
    this.#lastSeen = lastSeen;
    this.voters = inOrder([...current.voters, ...lastSeen.voters]);
  }

  isVoter(sid: Sid): boolean {
    return this.#current.isVoter(sid) || this.#lastSeen.isVoter(sid);
  }

  /** That of the configuration in force, for its voters: a server that may lead today may do so until it is removed. */
  weight(sid: Sid): number {
    return this.#current.isVoter(sid) ? this.#current.weight(sid) : this.#lastSeen.weight(sid);
  }

  containsQuorum(sids: Sids): boolean {
    return this.#current.containsQuorum(sids) && this.#lastSeen.containsQuorum(sids);
  }

  deniedByOracle(): boolean {
    return this.#current.deniedByOracle();
  }

  fingerprint(to: Fingerprint): void {
    to.text('joint');
    this.#current.fingerprint(to);
    this.#lastSeen.fingerprint(to);
  }
}
