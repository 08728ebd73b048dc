/**
 * When to make the next attempt to connect.
 *
 * A client that was cut off must not add to the herd that a dead server leaves, nor take a session
 * from another client forever. So attempts have random pauses that grow with each failure, and
 * connections that ended early are counted.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Random } from '../clock.ts';
import type { DialPlan } from './dial-plan.ts';
import type { NegotiatedSession } from './negotiated-session.ts';
import { backoffMs, stableMs } from './timings.ts';

/**
 * A failing server may close two or three connections early; this many in a row mean another client
 * that takes the session each time.
 */
export const takeoversMax = 5;

export class DialPacing {
  readonly #dialPlan: DialPlan;
  readonly #session: NegotiatedSession;
  readonly #random: Random;
  #dialAtMs: Millis;
  #failures = 0;
  /** Consecutive connections that were good and did not last. */
  #takeovers = 0;

  constructor(dialPlan: DialPlan, session: NegotiatedSession, random: Random, nowMs: Millis) {
    this.#dialPlan = dialPlan;
    this.#session = session;
    this.#random = random;
    this.#dialAtMs = nowMs;
  }

  /** Between attempts: when to start the next one. */
  get dialAtMs(): Millis {
    return this.#dialAtMs;
  }

  /** Another client seems to take the session each time that this one has it. */
  get isTakenOver(): boolean {
    return this.#takeovers >= takeoversMax;
  }

  /** A connection with the session was lost, or left. */
  cnxnLost(lastedMs: Millis, isByClient: boolean, wasDraining: boolean): void {
    if (lastedMs >= stableMs) this.#failures = this.#takeovers = 0;
    // This client has closed the connection itself, so no other client took the session.
    else if (isByClient) this.#takeovers = 0;
    else if (!wasDraining) this.#takeovers++;
  }

  /**
   * Schedules the next attempt. No pause is needed, as there is no herd of clients to spread,
   * before a server that was found by a probe, nor between an unreachable address and the next one
   * of the same name.
   */
  schedule(isUnreachable: boolean, wasDraining: boolean, nowMs: Millis): void {
    if (this.#dialPlan.hasPreferred || (isUnreachable && this.#dialPlan.hasAddressesToTry)) {
      this.#dialAtMs = nowMs;
      return;
    }
    this.scheduleAfterPause(nowMs);
    if (!wasDraining) this.#failures++;
  }

  scheduleAfterPause(nowMs: Millis): void {
    this.#dialAtMs = nowMs + backoffMs(this.#random, this.#failures, this.#session.effectiveTimeoutMs);
  }
}
