/**
 * What has come of the leaders that this server has gone by, itself included, since it was in step with one last.
 *
 * An election knows what servers say, and not who reaches whom. It may settle on one that no quorum can reach, and would settle on the same one
 * again and again. So a leader with whom nothing came of it is not voted for during a while, and is dialled with a pause.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';

export interface AttemptsOptions {
  readonly tickTimeMs: Millis;
  /** What an attempt may take before it has failed. */
  readonly initLimitTicks: number;
}

/** Beyond this many all limits are reached. */
const timesMax = 32;
/** Before a leader is dialled with whom nothing came of it twice; double that after each further time. */
const firstPauseMs: Millis = 10;

export class Attempts {
  readonly #tickTimeMs: Millis;
  readonly #initLimitMs: Millis;
  /** By leader, how often nothing came of it; a long attempt counts double. */
  readonly #inVain = new Map<Sid, number>();
  /** When the last one began. */
  #sinceMs: Millis = 0;

  constructor({ tickTimeMs, initLimitTicks }: AttemptsOptions) {
    this.#tickTimeMs = tickTimeMs;
    this.#initLimitMs = initLimitTicks * tickTimeMs;
  }

  /** This server begins to lead, or to follow. */
  begin(now: Now): void {
    this.#sinceMs = now.elapsedMs;
  }

  /**
   * Nothing has come of the attempt. Returns for how long its leader is to be shunned. Once is nothing, if it was short: the leader may just
   * have failed. After that it is shunned longer each time, so that others have their chance. Nothing may come of those either, and each takes up
   * to initLimit to show it: the first must not be elected again before the last has, or they take turns for ever.
   *
   * `wasRefused`: its host has answered, and nobody listened. It can be reached, and does not lead yet, or no more; that counts as short.
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

  /** How long to wait before this leader is dialled. One that turns a server away can be found again within a millisecond, for ever. */
  pauseMsBefore(leader: Sid): Millis {
    const times = this.#timesWith(leader);
    return times > 1 ? Math.min(this.#tickTimeMs / 4, firstPauseMs * 2 ** (times - 2)) : 0;
  }

  /** This server leads, or is in step with its leader: whatever went wrong before is of no account. */
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
