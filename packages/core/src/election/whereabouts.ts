/** Where the other voters are, as far as is known: who answers, and who goes on without the leader that this server has settled on. */
import type { Notification, Sid } from '@tskeeper/protocol';
import { type Fingerprint, writeSet } from '../fingerprint.ts';
import type { Sids } from '../quorum/quorum-verifier.ts';
import type { Vote } from './vote.ts';

export class Whereabouts {
  readonly #unreachable = new Set<Sid>();
  /** They have said, since this server settled, that they go on without its leader. */
  readonly #elsewhere = new Set<Sid>();
  /** They still look in the round that this server has settled in, long after they could have heard so. */
  readonly #deaf = new Set<Sid>();
  /** They have said something since this server began to look. */
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
   * What voters say once this server has settled: whoever looks in a later round, or has another leader, does not come to this one any more.
   * `isLate`: whoever hears this server has heard by now that it has settled.
   */
  note(from: Sid, { state, leader, electionEpoch }: Notification, own: Vote, isLate: boolean): void {
    const isElsewhere =
      state === 'looking' ? electionEpoch > own.electionEpoch : leader !== own.leader && electionEpoch >= own.electionEpoch;
    if (isLate && state === 'looking' && electionEpoch === own.electionEpoch) this.#deaf.add(from);
    else this.#deaf.delete(from);
    if (isElsewhere) this.#elsewhere.add(from);
    else this.#elsewhere.delete(from);
  }

  /** It speaks, and does not hear this server. */
  isDeaf(sid: Sid): boolean {
    return this.#deaf.has(sid);
  }

  /** It goes on without the leader that was settled on, or nobody listens where it was. */
  isGone(sid: Sid): boolean {
    return this.#elsewhere.has(sid) || this.#unreachable.has(sid);
  }

  /**
   * Those that will not come to the leader this server has settled on. One that has said nothing in all of the election is cut off or down: where it
   * has been, a link may accept for it or carry nothing, and neither says so. If it comes after all, there has to be an election for it anyway.
   */
  get lost(): Sids {
    return { has: (sid) => this.isGone(sid) || !this.#heard.has(sid) };
  }

  fingerprint(to: Fingerprint): void {
    for (const sids of [this.#unreachable, this.#elsewhere, this.#deaf, this.#heard]) writeSet(to, sids);
  }
}
