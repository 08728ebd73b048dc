/**
 * Counts failed attempts to lead or follow, by leader (including this server), since the last
 * success.
 *
 * An election knows what servers announce, but not which can reach each other. It may elect a
 * leader that no quorum can reach, and would elect the same one again and again. So a leader with
 * failed attempts gets no votes for some time, and is dialled after a pause.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';

export interface LeaderBackoffOptions {
  readonly tickTimeMs: Millis;
  /** How long an attempt may take before it has failed. */
  readonly initLimitTicks: number;
}

/** At this number all limits are reached. */
const failuresMax = 32;
/**
 * The pause before the dial of a leader with two failed attempts; doubled after each further one.
 */
const dialDelayMsMin: Millis = 10;

export class LeaderBackoff {
  readonly #tickTimeMs: Millis;
  readonly #initLimitMs: Millis;
  /** The number of failed attempts by leader; a long attempt counts double. */
  readonly #failures = new Map<Sid, number>();
  /** When the current attempt began. */
  #attemptStartMs: Millis = 0;

  constructor({ tickTimeMs, initLimitTicks }: LeaderBackoffOptions) {
    this.#tickTimeMs = tickTimeMs;
    this.#initLimitMs = initLimitTicks * tickTimeMs;
  }

  /** This server starts to lead or to follow. */
  attemptStarted(now: Now): void {
    this.#attemptStartMs = now.elapsedMs;
  }

  /**
   * The attempt has failed. Returns how long to back off from its leader. A first short failure has
   * no effect: the leader may just have failed. After that the backoff grows each time, so that
   * others get their chance. They may fail as well, each after up to initLimit: the first must not
   * be elected again before the last has failed, or they take turns forever.
   *
   * `wasRefused`: its host answered, but no process listened. It can be reached, and does not lead
   * yet or no longer; such an attempt counts as short.
   */
  attemptFailed(leader: Sid, now: Now, wasRefused = false): Millis {
    const durationMs = now.elapsedMs - this.#attemptStartMs;
    const isLong = durationMs >= this.#tickTimeMs && !wasRefused;
    const failures = Math.min(failuresMax, this.#failuresOf(leader) + (isLong ? 2 : 1));
    this.#failures.set(leader, failures);
    if (failures <= 1) return 0;
    const attemptMs = Math.min(this.#initLimitMs, Math.max(durationMs, this.#tickTimeMs * 2 ** (failures - 1)));
    const others = this.#failures.size - 1;
    return attemptMs * (others === 0 ? 1 : others + 1.5);
  }

  /**
   * How long to wait before this leader is dialled. Otherwise a leader that rejects a server could
   * be elected again within a millisecond, forever.
   */
  dialDelayMs(leader: Sid): Millis {
    const failures = this.#failuresOf(leader);
    return failures > 1 ? Math.min(this.#tickTimeMs / 4, dialDelayMsMin * 2 ** (failures - 2)) : 0;
  }

  /** This server leads, or is synchronised with its leader: earlier failures no longer count. */
  clear(): void {
    this.#failures.clear();
  }

  fingerprint(to: Fingerprint): void {
    for (const sid of [...this.#failures.keys()].sort((a, b) => a - b)) {
      to.number(sid);
      to.number(this.#failuresOf(sid));
    }
  }

  #failuresOf(leader: Sid): number {
    return this.#failures.get(leader) ?? 0;
  }
}
