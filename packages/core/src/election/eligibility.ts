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
const hopelessBackoffWaits = 5;

export class Eligibility {
  readonly #finalizeWaitMs: Millis;
  /** Servers that get no votes, and until when. */
  readonly #backedOff = new Map<Sid, Millis>();
  /**
   * Servers that have not answered a dial, and have no new connection since: they get no votes
   * either, until then.
   */
  readonly #unresponsive = new Map<Sid, Millis>();
  /** When a hopeless proposal is given up; undefined while it is not hopeless. */
  #abandonAtMs: Millis | undefined;
  /** How long a proposal may be hopeless; doubled with each one of the round that is given up. */
  #hopelessWaitMs: Millis;

  constructor(finalizeWaitMs: Millis) {
    this.#finalizeWaitMs = finalizeWaitMs;
    this.#hopelessWaitMs = finalizeWaitMs * hopelessWaits;
  }

  /**
   * A leader was elected that this server could not reach; or this server itself, which got no
   * quorum. Until `untilMs` its vote is not adopted, or, if it is our own, not announced. Otherwise
   * the server with the best vote is elected over and over, if some server receives its votes and
   * passes them on, while a quorum cannot reach it. A leader on which others have settled is still
   * followed.
   */
  backOff(sid: Sid, untilMs: Millis): void {
    this.#backedOff.set(sid, untilMs);
  }

  /**
   * An elected leader did not answer a dial, though its votes may still arrive over a link that is
   * cut in one direction. It gets no vote until there is a new connection with it, which needs both
   * directions, or until `untilMs`: a quorum without another candidate must find that out together.
   * The owner closes any older connection. A leader on which others have settled is still followed.
   */
  markUnresponsive(sid: Sid, untilMs: Millis): void {
    this.#unresponsive.set(sid, untilMs);
  }

  /** There is a new connection with that server, which carries messages in both directions. */
  connected(sid: Sid): void {
    this.#unresponsive.delete(sid);
  }

  /** That server may be voted for again. */
  endBackoff(sid: Sid): void {
    this.#backedOff.delete(sid);
  }

  /** This server leads, or is synchronised with its leader. */
  clearBackoff(): void {
    this.#backedOff.clear();
    this.#unresponsive.clear();
  }

  isEligible(sid: Sid, now: Now): boolean {
    return (this.#unresponsive.get(sid) ?? -Infinity) <= now.elapsedMs && (this.#backedOff.get(sid) ?? -Infinity) <= now.elapsedMs;
  }

  /** Returns whether a server became eligible again. */
  expireBackoffs(now: Now): boolean {
    let changed = false;
    for (const servers of [this.#backedOff, this.#unresponsive]) {
      for (const [sid, untilMs] of servers) if (untilMs <= now.elapsedMs) changed = servers.delete(sid);
    }
    return changed;
  }

  /** A new round has begun. */
  beginRound(): void {
    this.#hopelessWaitMs = this.#finalizeWaitMs * hopelessWaits;
  }

  /** Notes whether the proposal is hopeless. */
  setHopeless(isHopeless: boolean, now: Now): void {
    this.#abandonAtMs = isHopeless ? (this.#abandonAtMs ?? now.elapsedMs + this.#hopelessWaitMs) : undefined;
  }

  /** There is no proposal any more. */
  endRound(): void {
    this.#abandonAtMs = undefined;
  }

  /** Whether the proposal, for this leader, has been hopeless for too long and must be given up. */
  maybeAbandon(leader: Sid, now: Now): boolean {
    if (this.#abandonAtMs === undefined || now.elapsedMs < this.#abandonAtMs) return false;
    this.#abandonAtMs = undefined;
    this.#hopelessWaitMs *= 2;
    const untilMs = now.elapsedMs + this.#finalizeWaitMs * hopelessBackoffWaits;
    this.backOff(leader, Math.max(this.#backedOff.get(leader) ?? 0, untilMs));
    return true;
  }

  /** When a server becomes eligible again, or a proposal is given up; Infinity for never. */
  deadline(): Millis {
    return Math.min(this.#abandonAtMs ?? Infinity, ...this.#backedOff.values(), ...this.#unresponsive.values());
  }

  fingerprint(to: Fingerprint, now: Now): void {
    to.number(this.#hopelessWaitMs);
    to.number(this.#abandonAtMs === undefined ? -1 : Math.max(0, this.#abandonAtMs - now.elapsedMs));
    for (const servers of [this.#backedOff, this.#unresponsive]) {
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
