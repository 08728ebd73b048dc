/**
 * What is known of the other voters: which can be reached, and which have left the leader on which
 * this server has settled.
 */
import type { Notification, Sid } from '@tskeeper/protocol';
import { type Fingerprint, writeSet } from '../fingerprint.ts';
import type { Sids } from '../quorum/quorum-verifier.ts';
import type { Vote } from './vote.ts';

export class Whereabouts {
  readonly #unreachable = new Set<Sid>();
  /** Since this server settled, they have announced that they continue without its leader. */
  readonly #elsewhere = new Set<Sid>();
  /**
   * They are still looking in the round in which this server has settled, long after they should
   * have learned the result.
   */
  readonly #deaf = new Set<Sid>();
  /** They have sent a notification since this server started looking. */
  readonly #heard = new Set<Sid>();

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
  look(): void {
    this.#elsewhere.clear();
    this.#deaf.clear();
    this.#heard.clear();
  }

  settle(): void {
    this.#elsewhere.clear();
    this.#deaf.clear();
  }

  hear(from: Sid): void {
    this.#heard.add(from);
  }

  /**
   * Notes a voter's notification after this server has settled: a voter that looks in a later
   * round, or has another leader, will not follow this server's leader. `isLate`: a voter that
   * receives this server's messages knows by now that it has settled.
   */
  note(from: Sid, { state, leader, electionEpoch }: Notification, own: Vote, isLate: boolean): void {
    const isElsewhere =
      state === 'looking' ? electionEpoch > own.electionEpoch : leader !== own.leader && electionEpoch >= own.electionEpoch;
    if (isLate && state === 'looking' && electionEpoch === own.electionEpoch) this.#deaf.add(from);
    else this.#deaf.delete(from);
    if (isElsewhere) this.#elsewhere.add(from);
    else this.#elsewhere.delete(from);
  }

  /** Whether it sends notifications but does not receive this server's. */
  isDeaf(sid: Sid): boolean {
    return this.#deaf.has(sid);
  }

  /**
   * Whether it has left the leader on which this server settled, or its host refuses connections.
   */
  isGone(sid: Sid): boolean {
    return this.#elsewhere.has(sid) || this.#unreachable.has(sid);
  }

  /**
   * Voters that will not follow the leader on which this server has settled. A voter that sent
   * nothing during the whole election is partitioned or down: a link may still accept for it, or
   * carry nothing, without an error. If it comes after all, it needs an election anyway.
   */
  get lost(): Sids {
    return { has: (sid) => this.isGone(sid) || !this.#heard.has(sid) };
  }

  fingerprint(to: Fingerprint): void {
    for (const sids of [this.#unreachable, this.#elsewhere, this.#deaf, this.#heard]) writeSet(to, sids);
  }
}
