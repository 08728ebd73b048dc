/**
 * Decides whether one more session may be opened now: ZooKeeper's connection throttle (its
 * BlueThrottle), off by default.
 *
 * A token bucket limits the rate and allows bursts. A bucket alone is unfair under steady load: a
 * client that happens to come late in each interval is refused every time. So newcomers can also be
 * dropped at random before the bucket, with a probability that rises while the bucket is empty and
 * falls when it has recovered. Tokens stay between 0 and the bucket's size whatever the clock and
 * the settings are; in ZooKeeper's arithmetic they can overflow, and then every client is refused
 * (ZOOKEEPER-4933).
 */
import type { Millis } from '@tskeeper/protocol';
import type { Random } from '../random.ts';

export interface ConnectionThrottleOptions {
  /** zookeeper.connection_throttle_tokens: the size of the bucket; 0 = no throttle. */
  readonly tokens: number;
  /** zookeeper.connection_throttle_fill_time */
  readonly fillTimeMs: Millis;
  /** zookeeper.connection_throttle_fill_count: tokens added per fill time. */
  readonly fillCount: number;
  /**
   * zookeeper.connection_throttle_freeze_time: how often the drop probability is updated; -1 =
   * never drop at random.
   */
  readonly freezeTimeMs: Millis;
  /**
   * zookeeper.connection_throttle_drop_increase: added to the probability when the bucket is empty.
   */
  readonly dropIncrease: number;
  /** zookeeper.connection_throttle_drop_decrease: subtracted when few tokens are missing. */
  readonly dropDecrease: number;
  /** zookeeper.connection_throttle_decrease_ratio: what "few" means, as a share of the bucket. */
  readonly decreaseRatio: number;
  /**
   * zookeeper.connection_throttle_weight_enabled: kinds of sessions cost different numbers of
   * tokens; otherwise each costs one.
   */
  readonly weightEnabled: boolean;
  /**
   * zookeeper.connection_throttle_global_session_weight. Bucket size and filling are counted in
   * global sessions.
   */
  readonly globalSessionWeight: number;
  /** zookeeper.connection_throttle_local_session_weight */
  readonly localSessionWeight: number;
  /** zookeeper.connection_throttle_renew_session_weight: for a resumed session. */
  readonly renewSessionWeight: number;
}

export const connectionThrottleDefaults: ConnectionThrottleOptions = {
  tokens: 0,
  fillTimeMs: 1,
  fillCount: 1,
  freezeTimeMs: -1,
  dropIncrease: 0.02,
  dropDecrease: 0.002,
  decreaseRatio: 0,
  weightEnabled: false,
  globalSessionWeight: 3,
  localSessionWeight: 1,
  renewSessionWeight: 2,
};

/** The kind of session that a client requests. */
export type SessionKind = 'global' | 'local' | 'renew';

export class ConnectionThrottle {
  readonly #tokensMax: number;
  readonly #fillTimeMs: Millis;
  readonly #fillCount: number;
  readonly #freezeTimeMs: Millis;
  readonly #dropIncrease: number;
  readonly #dropDecrease: number;
  readonly #decreaseBelow: number;
  readonly #weights: Readonly<Record<SessionKind, number>>;
  readonly #random: Random;

  /** Whole tokens. Invariant: 0 <= tokens <= tokensMax. */
  #tokens: number;
  /**
   * The time up to which the bucket has been filled. Undefined before the first client, which finds
   * it full.
   */
  #filledMs: Millis | undefined;
  #dropChanceUpdatedMs: Millis = 0;
  /** The drop probability, 0 to 1. */
  #dropChance = 0;

  constructor(options: ConnectionThrottleOptions, random: Random) {
    // ZooKeeper's rules for invalid weights: use the default, and no session is cheaper than a
    // local one.
    const local = options.localSessionWeight > 0 ? options.localSessionWeight : connectionThrottleDefaults.localSessionWeight;
    const global =
      options.globalSessionWeight > 0 ? Math.max(options.globalSessionWeight, local) : connectionThrottleDefaults.globalSessionWeight;
    const renew =
      options.renewSessionWeight > 0 ? Math.max(options.renewSessionWeight, local) : connectionThrottleDefaults.renewSessionWeight;
    this.#weights = options.weightEnabled ? { global, local, renew } : { global: 1, local: 1, renew: 1 };
    this.#tokensMax = Math.max(0, Math.floor(options.tokens)) * this.#weights.global;
    this.#tokens = this.#tokensMax;
    // A fill time of 0 and a negative fill count are invalid; use the nearest valid value.
    this.#fillTimeMs = Math.max(1, options.fillTimeMs);
    this.#fillCount = Math.max(0, options.fillCount) * this.#weights.global;
    this.#freezeTimeMs = options.freezeTimeMs;
    this.#dropIncrease = options.dropIncrease;
    this.#dropDecrease = options.dropDecrease;
    this.#decreaseBelow = Math.round(this.#tokensMax * options.decreaseRatio);
    this.#random = random;
  }

  /** Tokens missing to a full bucket (the metric connection_token_deficit). */
  get deficit(): number {
    return this.#tokensMax - this.#tokens;
  }

  /**
   * The probability that a client is dropped at random (the metric connection_drop_probability).
   */
  get dropChance(): number {
    return this.#dropChance;
  }

  /** Takes the tokens and returns true, or takes none and returns false. */
  admit(kind: SessionKind, elapsedMs: Millis): boolean {
    if (this.#tokensMax === 0) return true;
    this.#fill(elapsedMs);
    if (this.#freezeTimeMs !== -1) {
      this.#updateDropChance(elapsedMs);
      if (this.#random.uint32() / 4294967296 < this.#dropChance) return false;
    }
    const cost = this.#weights[kind];
    if (this.#tokens < cost) return false;
    this.#tokens -= cost;
    return true;
  }

  #fill(elapsedMs: Millis): void {
    if (this.#filledMs === undefined) {
      this.#filledMs = elapsedMs;
      this.#dropChanceUpdatedMs = elapsedMs;
      return;
    }
    const passed = elapsedMs - this.#filledMs;
    if (passed <= this.#fillTimeMs || this.#fillCount === 0) return;
    const earned = Math.floor((passed * this.#fillCount) / this.#fillTimeMs);
    if (earned >= this.deficit) {
      this.#tokens = this.#tokensMax;
      this.#filledMs = elapsedMs;
    } else {
      this.#tokens += earned;
      // Count only the time paid out: a remainder lost at each client would lower the configured
      // rate.
      this.#filledMs += (earned * this.#fillTimeMs) / this.#fillCount;
    }
  }

  #updateDropChance(elapsedMs: Millis): void {
    if (elapsedMs - this.#dropChanceUpdatedMs <= this.#freezeTimeMs) return;
    this.#dropChanceUpdatedMs = elapsedMs;
    if (this.#tokens === 0) this.#dropChance = Math.min(this.#dropChance + this.#dropIncrease, 1);
    else if (this.deficit <= this.#decreaseBelow) this.#dropChance = Math.max(this.#dropChance - this.#dropDecrease, 0);
  }
}
