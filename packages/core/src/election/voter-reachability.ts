/**
 * What is known of the other voters: which can be reached, and which have left the leader on which
 * this server has settled.
 */
import type { Notification, Sid } from '@tskeeper/protocol';
import { type Fingerprint, fingerprintSet } from '../fingerprint.ts';
import type { SidSet } from '../quorum/quorum-verifier.ts';
import type { Vote } from './vote.ts';

export class VoterReachability {
  readonly #unreachable = new Set<Sid>();
  /** Since this server settled, they have announced that they continue without its leader. */
  readonly #votersElsewhere = new Set<Sid>();
  /**
   * They are still looking in the round in which this server has settled, long after they should
   * have learned the result.
   */
  readonly #notReceiving = new Set<Sid>();
  /** They have sent a notification since this server started looking. */
  readonly #receivedFrom = new Set<Sid>();

  unreachable(sid: Sid): void {
    this.#unreachable.add(sid);
  }

  reachable(sid: Sid): void {
    this.#unreachable.delete(sid);
  }

  isUnreachable(sid: Sid): boolean {
    return this.#unreachable.has(sid);
  }

  /** This server looks for a leader. */
  startRound(): void {
    this.#votersElsewhere.clear();
    this.#notReceiving.clear();
    this.#receivedFrom.clear();
  }

  finalize(): void {
    this.#votersElsewhere.clear();
    this.#notReceiving.clear();
  }

  receivedFrom(from: Sid): void {
    this.#receivedFrom.add(from);
  }

  /**
   * Notes a voter's notification after this server has settled: a voter that looks in a later
   * round, or has another leader, will not follow this server's leader. `isLate`: a voter that
   * receives this server's messages knows by now that it has settled.
   */
  updateFrom(from: Sid, { state, leader, electionEpoch }: Notification, own: Vote, isLate: boolean): void {
    const isElsewhere =
      state === 'looking' ? electionEpoch > own.electionEpoch : leader !== own.leader && electionEpoch >= own.electionEpoch;
    if (isLate && state === 'looking' && electionEpoch === own.electionEpoch) this.#notReceiving.add(from);
    else this.#notReceiving.delete(from);
    if (isElsewhere) this.#votersElsewhere.add(from);
    else this.#votersElsewhere.delete(from);
  }

  /** Whether it sends notifications but does not receive this server's. */
  isNotReceiving(sid: Sid): boolean {
    return this.#notReceiving.has(sid);
  }

  /**
   * Whether it has left the leader on which this server settled, or its host refuses connections.
   */
  isGone(sid: Sid): boolean {
    return this.#votersElsewhere.has(sid) || this.#unreachable.has(sid);
  }

  /**
   * Voters that will not follow the leader on which this server has settled. A voter that sent
   * nothing during the whole election is partitioned or down: a link may still accept for it, or
   * carry nothing, without an error. If it comes after all, it needs an election anyway.
   */
  get lostVoters(): SidSet {
    return { has: (sid) => this.isGone(sid) || !this.#receivedFrom.has(sid) };
  }

  fingerprint(to: Fingerprint): void {
    for (const sids of [this.#unreachable, this.#votersElsewhere, this.#notReceiving, this.#receivedFrom]) fingerprintSet(to, sids);
  }
}
