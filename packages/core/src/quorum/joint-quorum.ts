/**
 * A quorum of the active configuration and one of the last seen configuration, which will follow
 * it.
 *
 * During a reconfiguration some servers use the old configuration and some the new one. A server
 * that knows both needs a quorum of each, so that its decisions are known to every quorum of
 * either.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { sortedUniqueSids, type QuorumVerifier, type SidSet } from './quorum-verifier.ts';

export class JointQuorum implements QuorumVerifier {
  readonly voters: readonly Sid[];
  readonly #current: QuorumVerifier;
  readonly #lastSeen: QuorumVerifier;

  /** `lastSeen` must have a higher version than `current`; for an equal one use `current` alone. */
  constructor(current: QuorumVerifier, lastSeen: QuorumVerifier) {
    this.#current = current;
    this.#lastSeen = lastSeen;
    this.voters = sortedUniqueSids([...current.voters, ...lastSeen.voters]);
  }

  isVoter(sid: Sid): boolean {
    return this.#current.isVoter(sid) || this.#lastSeen.isVoter(sid);
  }

  get active(): QuorumVerifier {
    return this.#current;
  }

  /**
   * The weight in the active configuration or, without one there, in the last seen one: a server that
   * may lead today may do so until it is removed, and one that may lead tomorrow can be the only one
   * that has all of the log.
   */
  weight(sid: Sid): number {
    return this.#current.weight(sid) || this.#lastSeen.weight(sid);
  }

  containsQuorum(sids: SidSet): boolean {
    return this.#current.containsQuorum(sids) && this.#lastSeen.containsQuorum(sids);
  }

  get mayLackMajority(): boolean {
    return this.#current.mayLackMajority;
  }

  fingerprint(to: Fingerprint): void {
    to.text('joint');
    this.#current.fingerprint(to);
    this.#lastSeen.fingerprint(to);
  }
}
