/**
 * Who may be voted for. An election knows what servers say, and not who reaches whom; so a leader with whom nothing came of it is passed over for a
 * while, one that does not answer until it has been connected anew, and a vote that too many of a quorum do not share is given up.
 *
 * To pass over a vote is to have not received it, so none of this can do harm. docs/internals/election.md tells when it is of use.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';

/**
 * How many times `finalizeWaitMs` a proposal may be without hope. ZooKeeper takes `finalizeWaitMs` for the time in which a vote arrives; here a vote has to
 * arrive and to be answered.
 */
const hopelessWaits = 3;
/** For how many times `finalizeWaitMs` the leader of a proposal without hope is not voted for. */
const hopelessShunnedWaits = 5;

export class Eligibility {
  readonly #finalizeWaitMs: Millis;
  /** Servers that are not voted for, and until when. */
  readonly #shunned = new Map<Sid, Millis>();
  /** Servers that have not answered a dial, and have not been connected anew since: they are not voted for either, until then. */
  readonly #unanswering = new Map<Sid, Millis>();
  /** When a proposal without hope is given up; undefined while there is hope. */
  #giveUpAtMs: Millis | undefined;
  /** How long there is to be no hope; doubled with each proposal of the round that is given up. */
  #hopelessMs: Millis;

  constructor(finalizeWaitMs: Millis) {
    this.#finalizeWaitMs = finalizeWaitMs;
    this.#hopelessMs = finalizeWaitMs * hopelessWaits;
  }

  /** See `FastLeaderElection.shun`. */
  shun(sid: Sid, untilMs: Millis): void {
    this.#shunned.set(sid, untilMs);
  }

  /** See `FastLeaderElection.unanswering`. */
  unanswering(sid: Sid, untilMs: Millis): void {
    this.#unanswering.set(sid, untilMs);
  }

  /** There is a new connection with that server, which carries messages in both directions. */
  connected(sid: Sid): void {
    this.#unanswering.delete(sid);
  }

  /** That server may be voted for again. */
  unshun(sid: Sid): void {
    this.#shunned.delete(sid);
  }

  forgive(): void {
    this.#shunned.clear();
    this.#unanswering.clear();
  }

  has(sid: Sid, now: Now): boolean {
    return (this.#unanswering.get(sid) ?? -Infinity) <= now.elapsedMs && (this.#shunned.get(sid) ?? -Infinity) <= now.elapsedMs;
  }

  /** Returns whether anybody may be voted for again. */
  renew(now: Now): boolean {
    let changed = false;
    for (const servers of [this.#shunned, this.#unanswering]) {
      for (const [sid, untilMs] of servers) if (untilMs <= now.elapsedMs) changed = servers.delete(sid);
    }
    return changed;
  }

  /** Another round has begun. */
  beginRound(): void {
    this.#hopelessMs = this.#finalizeWaitMs * hopelessWaits;
  }

  /** Whether there is hope for the proposal. */
  judge(isHopeless: boolean, now: Now): void {
    this.#giveUpAtMs = isHopeless ? (this.#giveUpAtMs ?? now.elapsedMs + this.#hopelessMs) : undefined;
  }

  /** Nothing is proposed any more. */
  settle(): void {
    this.#giveUpAtMs = undefined;
  }

  /** Whether the proposal, for this leader, has been without hope for too long: it is to be voted for no more. */
  maybeGiveUp(leader: Sid, now: Now): boolean {
    if (this.#giveUpAtMs === undefined || now.elapsedMs < this.#giveUpAtMs) return false;
    this.#giveUpAtMs = undefined;
    this.#hopelessMs *= 2;
    const untilMs = now.elapsedMs + this.#finalizeWaitMs * hopelessShunnedWaits;
    this.shun(leader, Math.max(this.#shunned.get(leader) ?? 0, untilMs));
    return true;
  }

  /** When somebody may be voted for again, or not any more; Infinity for never. */
  deadline(): Millis {
    return Math.min(this.#giveUpAtMs ?? Infinity, ...this.#shunned.values(), ...this.#unanswering.values());
  }

  fingerprint(to: Fingerprint, now: Now): void {
    to.number(this.#hopelessMs);
    to.number(this.#giveUpAtMs === undefined ? -1 : Math.max(0, this.#giveUpAtMs - now.elapsedMs));
    for (const servers of [this.#shunned, this.#unanswering]) {
      to.number(servers.size);
      for (const sid of [...servers.keys()].sort((a, b) => a - b)) {
        const leftMs = servers.get(sid)! - now.elapsedMs;
        if (leftMs <= 0) continue;
        to.number(sid);
        to.number(leftMs);
      }
    }
  }
}
