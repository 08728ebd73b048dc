/**
 * Which servers may get votes. An election knows what servers announce, but not which can reach
 * each other; so a leader with failed attempts gets no votes for some time, one that does not
 * answer gets none until it is connected again, and a proposal that too much of a quorum does not
 * share is given up.
 *
 * To skip a vote is the same as not to have received it, so this cannot break safety.
 * docs/internals/election.md describes when it helps.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';

/**
 * How many times `finalizeWaitMs` a proposal may be hopeless. ZooKeeper takes `finalizeWaitMs` as
 * the time in which a vote arrives; here a vote must arrive and be answered.
 */
const hopelessWaits = 3;
/** For how many times `finalizeWaitMs` the leader of a hopeless proposal gets no votes. */
const hopelessShunnedWaits = 5;

export class Eligibility {
  readonly #finalizeWaitMs: Millis;
  /** Servers that get no votes, and until when. */
  readonly #shunned = new Map<Sid, Millis>();
  /**
   * Servers that have not answered a dial, and have no new connection since: they get no votes
   * either, until then.
   */
  readonly #unanswering = new Map<Sid, Millis>();
  /** When a hopeless proposal is given up; undefined while it is not hopeless. */
  #giveUpAtMs: Millis | undefined;
  /** How long a proposal may be hopeless; doubled with each one of the round that is given up. */
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

  /** Returns whether a server became eligible again. */
  renew(now: Now): boolean {
    let changed = false;
    for (const servers of [this.#shunned, this.#unanswering]) {
      for (const [sid, untilMs] of servers) if (untilMs <= now.elapsedMs) changed = servers.delete(sid);
    }
    return changed;
  }

  /** A new round has begun. */
  beginRound(): void {
    this.#hopelessMs = this.#finalizeWaitMs * hopelessWaits;
  }

  /** Notes whether the proposal is hopeless. */
  judge(isHopeless: boolean, now: Now): void {
    this.#giveUpAtMs = isHopeless ? (this.#giveUpAtMs ?? now.elapsedMs + this.#hopelessMs) : undefined;
  }

  /** There is no proposal any more. */
  settle(): void {
    this.#giveUpAtMs = undefined;
  }

  /** Whether the proposal, for this leader, has been hopeless for too long and must be given up. */
  maybeGiveUp(leader: Sid, now: Now): boolean {
    if (this.#giveUpAtMs === undefined || now.elapsedMs < this.#giveUpAtMs) return false;
    this.#giveUpAtMs = undefined;
    this.#hopelessMs *= 2;
    const untilMs = now.elapsedMs + this.#finalizeWaitMs * hopelessShunnedWaits;
    this.shun(leader, Math.max(this.#shunned.get(leader) ?? 0, untilMs));
    return true;
  }

  /** When a server becomes eligible again, or a proposal is given up; Infinity for never. */
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
