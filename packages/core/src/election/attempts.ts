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

export interface AttemptsOptions {
  readonly tickTimeMs: Millis;
  /** How long an attempt may take before it has failed. */
  readonly initLimitTicks: number;
}

/** At this number all limits are reached. */
const timesMax = 32;
/**
 * The pause before the dial of a leader with two failed attempts; doubled after each further one.
 */
const firstPauseMs: Millis = 10;

export class Attempts {
  readonly #tickTimeMs: Millis;
  readonly #initLimitMs: Millis;
  /** The number of failed attempts by leader; a long attempt counts double. */
  readonly #inVain = new Map<Sid, number>();
  /** When the current attempt began. */
  #sinceMs: Millis = 0;

  constructor({ tickTimeMs, initLimitTicks }: AttemptsOptions) {
    this.#tickTimeMs = tickTimeMs;
    this.#initLimitMs = initLimitTicks * tickTimeMs;
  }

  /** This server starts to lead or to follow. */
  begin(now: Now): void {
    this.#sinceMs = now.elapsedMs;
  }

  /**
   * The attempt has failed. Returns for how long to shun its leader. A first short failure has no
   * effect: the leader may just have failed. After that it is shunned longer each time, so that
   * others get their chance. They may fail as well, each after up to initLimit: the first must not
   * be elected again before the last has failed, or they take turns for ever.
   *
   * `wasRefused`: its host answered, but no process listened. It can be reached, and does not lead
   * yet or no longer; such an attempt counts as short.
   */
  failedWith(leader: Sid, now: Now, wasRefused = false): Millis {
    const tookMs = now.elapsedMs - this.#sinceMs;
    const isLong = tookMs >= this.#tickTimeMs && !wasRefused;
    const times = Math.min(timesMax, this.#timesWith(leader) + (isLong ? 2 : 1));
    this.#inVain.set(leader, times);
    if (times <= 1) return 0;
    const attemptMs = Math.min(this.#initLimitMs, Math.max(tookMs, this.#tickTimeMs * 2 ** (times - 1)));
    const others = this.#inVain.size - 1;
    return attemptMs * (others === 0 ? 1 : others + 1.5);
  }

  /**
   * How long to wait before this leader is dialled. Otherwise a leader that rejects a server could
   * be elected again within a millisecond, for ever.
   */
  pauseMsBefore(leader: Sid): Millis {
    const times = this.#timesWith(leader);
    return times > 1 ? Math.min(this.#tickTimeMs / 4, firstPauseMs * 2 ** (times - 2)) : 0;
  }

  /** This server leads, or is synchronised with its leader: earlier failures no longer count. */
  succeeded(): void {
    this.#inVain.clear();
  }

  fingerprint(to: Fingerprint): void {
    for (const sid of [...this.#inVain.keys()].sort((a, b) => a - b)) {
      to.number(sid);
      to.number(this.#timesWith(sid));
    }
  }

  #timesWith(leader: Sid): number {
    return this.#inVain.get(leader) ?? 0;
  }
}
