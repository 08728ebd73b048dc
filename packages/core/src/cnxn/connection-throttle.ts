/**
 * Decides whether one more session may be opened now: ZooKeeper's connection throttle (its BlueThrottle), off by default.
 *
 * A bucket of tokens caps the rate and lets bursts through. A bucket alone is unfair under steady load: whoever happens to come late in
 * each interval is refused every time. So newcomers can also be dropped at random ahead of the bucket, with a chance that rises while the
 * bucket is found empty and falls when it has recovered. Tokens are kept between 0 and the bucket's size whatever the clock and the
 * settings say; in ZooKeeper's arithmetic they can overflow, and then everyone is refused (ZOOKEEPER-4933).
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
  /** zookeeper.connection_throttle_freeze_time: how often the chance of a drop is reconsidered; -1 = never drop at random. */
  readonly freezeTimeMs: Millis;
  /** zookeeper.connection_throttle_drop_increase: added to the chance when the bucket is found empty. */
  readonly dropIncrease: number;
  /** zookeeper.connection_throttle_drop_decrease: taken off when few enough tokens are missing. */
  readonly dropDecrease: number;
  /** zookeeper.connection_throttle_decrease_ratio: "few enough", as a share of the bucket. */
  readonly decreaseRatio: number;
  /** zookeeper.connection_throttle_weight_enabled: kinds of sessions cost different numbers of tokens; else each costs one. */
  readonly weightEnabled: boolean;
  /** zookeeper.connection_throttle_global_session_weight. Bucket and filling are counted in global sessions. */
  readonly globalSessionWeight: number;
  /** zookeeper.connection_throttle_local_session_weight */
  readonly localSessionWeight: number;
  /** zookeeper.connection_throttle_renew_session_weight: for a session taken up again. */
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

/** What a newcomer asks for. */
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
  /** Up to when the bucket has been filled. Undefined before the first newcomer, who finds it full. */
  #filledMs: Millis | undefined;
  #reconsideredMs: Millis = 0;
  /** Chance of a drop, 0 to 1. */
  #drop = 0;

  constructor(options: ConnectionThrottleOptions, random: Random) {
    // ZooKeeper's rules for weights that make no sense: fall back to the default, and nothing is cheaper than a local session.
    const local = options.localSessionWeight > 0 ? options.localSessionWeight : connectionThrottleDefaults.localSessionWeight;
    const global =
      options.globalSessionWeight > 0 ? Math.max(options.globalSessionWeight, local) : connectionThrottleDefaults.globalSessionWeight;
    const renew =
      options.renewSessionWeight > 0 ? Math.max(options.renewSessionWeight, local) : connectionThrottleDefaults.renewSessionWeight;
    this.#weights = options.weightEnabled ? { global, local, renew } : { global: 1, local: 1, renew: 1 };
    this.#tokensMax = Math.max(0, Math.floor(options.tokens)) * this.#weights.global;
    this.#tokens = this.#tokensMax;
    // A bucket that fills in no time, or that drains by filling, has no meaning; the nearest one that has is taken.
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

  /** The chance that a newcomer is dropped unasked (the metric connection_drop_probability). */
  get dropChance(): number {
    return this.#drop;
  }

  /** Takes the tokens and returns true, or takes none and returns false. */
  admit(kind: SessionKind, elapsedMs: Millis): boolean {
    if (this.#tokensMax === 0) return true;
    this.#fill(elapsedMs);
    if (this.#freezeTimeMs !== -1) {
      this.#reconsider(elapsedMs);
      if (this.#random.uint32() / 4294967296 < this.#drop) return false;
    }
    const cost = this.#weights[kind];
    if (this.#tokens < cost) return false;
    this.#tokens -= cost;
    return true;
  }

  #fill(elapsedMs: Millis): void {
    if (this.#filledMs === undefined) {
      this.#filledMs = elapsedMs;
      this.#reconsideredMs = elapsedMs;
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
      // Only the time that has been paid out: a remainder lost at each newcomer would add up to a lower rate than the one configured.
      this.#filledMs += (earned * this.#fillTimeMs) / this.#fillCount;
    }
  }

  #reconsider(elapsedMs: Millis): void {
    if (elapsedMs - this.#reconsideredMs <= this.#freezeTimeMs) return;
    this.#reconsideredMs = elapsedMs;
    if (this.#tokens === 0) this.#drop = Math.min(this.#drop + this.#dropIncrease, 1);
    else if (this.deficit <= this.#decreaseBelow) this.#drop = Math.max(this.#drop - this.#dropDecrease, 0);
  }
}
