/** How often, for how long and after which pauses a call is repeated. */
import { described } from '../arguments.ts';
import type { Millis } from '@tskeeper/protocol';

/** All properties are optional. The limit that is reached first ends the attempts. */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first. Default: 10. `Infinity`: no limit. */
  readonly attempts?: number | undefined;
  /**
   * No attempt starts later than this many milliseconds after the first. Default: 60 000.
   * `Infinity`: no limit.
   */
  readonly maxElapsedMs?: Millis | undefined;
  /**
   * Longest pause before the second attempt; it doubles with each further attempt. The actual pause
   * is random between 0 and that, so that clients that fail together do not retry together.
   * Default: 100.
   */
  readonly pauseMs?: Millis | undefined;
  /** Upper limit of the doubling. Default: 5 000. */
  readonly pauseMsMax?: Millis | undefined;
}

/** A policy with all its properties. */
export type FullRetryPolicy = { readonly [Part in keyof RetryPolicy]-?: number };

const policyDefault: FullRetryPolicy = { attempts: 10, maxElapsedMs: 60_000, pauseMs: 100, pauseMsMax: 5000 };

/**
 * For requests whose result must be found out: ends only with the session, the time-out or the
 * signal.
 */
export const untilTheEnd: FullRetryPolicy = { ...policyDefault, attempts: Infinity, maxElapsedMs: Infinity };

/**
 * The policy that `retry` stands for; undefined for no retries. Throws a RangeError or a TypeError
 * for an invalid policy.
 */
export function fullPolicy(retry: RetryPolicy | boolean | undefined): FullRetryPolicy | undefined {
  if (retry === undefined || retry === false) return undefined;
  if (retry === true) return policyDefault;
  if (typeof retry !== 'object' || retry === null) throw new TypeError(`retry must be true, false or a policy, not ${described(retry)}`);
  for (const [part, value] of Object.entries(retry as Readonly<Record<string, unknown>>)) {
    if (!Object.hasOwn(policyDefault, part))
      throw new TypeError(`unknown option retry.${part}; the options of a policy are ${Object.keys(policyDefault).join(', ')}`);
    if (value === undefined) continue;
    if (part === 'attempts' ? !isCount(value) : !isDuration(value)) {
      const wanted = part === 'attempts' ? 'a whole number >= 1, or Infinity' : 'a number of milliseconds >= 0, or Infinity';
      throw new RangeError(`retry.${part} must be ${wanted}, not ${typeof value === 'number' ? value : typeof value}`);
    }
  }
  const { attempts, maxElapsedMs, pauseMs, pauseMsMax } = retry;
  return {
    attempts: attempts ?? policyDefault.attempts,
    maxElapsedMs: maxElapsedMs ?? policyDefault.maxElapsedMs,
    pauseMs: pauseMs ?? policyDefault.pauseMs,
    pauseMsMax: pauseMsMax ?? policyDefault.pauseMsMax,
  };
}

function isCount(value: unknown): boolean {
  return value === Infinity || (Number.isInteger(value) && (value as number) >= 1);
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}
