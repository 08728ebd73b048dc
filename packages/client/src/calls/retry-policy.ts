/** How often, for how long and after which pauses a call is repeated. */
import { describeValue } from '../arguments.ts';
import type { Millis } from '@tskeeper/protocol';

/** All properties are optional. The limit that is reached first ends the attempts. */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first. Default: 10. `Infinity`: no limit. */
  readonly maxAttempts?: number | undefined;
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
  readonly baseDelayMs?: Millis | undefined;
  /** Upper limit of the doubling. Default: 5 000. */
  readonly maxDelayMs?: Millis | undefined;
}

/** A policy with all its properties. */
export type FullRetryPolicy = { readonly [Part in keyof RetryPolicy]-?: number };

const defaultRetryPolicy: FullRetryPolicy = { maxAttempts: 10, maxElapsedMs: 60_000, baseDelayMs: 100, maxDelayMs: 5000 };

/**
 * For requests whose result must be found out: ends only with the session, the time-out or the
 * signal.
 */
export const unlimitedRetryPolicy: FullRetryPolicy = { ...defaultRetryPolicy, maxAttempts: Infinity, maxElapsedMs: Infinity };

/**
 * The policy that `retry` stands for; undefined for no retries. Throws a RangeError or a TypeError
 * for an invalid policy.
 */
export function resolveRetryPolicy(retry: RetryPolicy | boolean | undefined): FullRetryPolicy | undefined {
  if (retry === undefined || retry === false) return undefined;
  if (retry === true) return defaultRetryPolicy;
  if (typeof retry !== 'object' || retry === null)
    throw new TypeError(`retry must be true, false or a policy, not ${describeValue(retry)}`);
  for (const [part, value] of Object.entries(retry as Readonly<Record<string, unknown>>)) {
    if (!Object.hasOwn(defaultRetryPolicy, part))
      throw new TypeError(`unknown option retry.${part}; the options of a policy are ${Object.keys(defaultRetryPolicy).join(', ')}`);
    if (value === undefined) continue;
    if (part === 'maxAttempts' ? !isCount(value) : !isDuration(value)) {
      const wanted = part === 'maxAttempts' ? 'a whole number >= 1, or Infinity' : 'a number of milliseconds >= 0, or Infinity';
      throw new RangeError(`retry.${part} must be ${wanted}, not ${typeof value === 'number' ? value : typeof value}`);
    }
  }
  const { maxAttempts, maxElapsedMs, baseDelayMs, maxDelayMs } = retry;
  return {
    maxAttempts: maxAttempts ?? defaultRetryPolicy.maxAttempts,
    maxElapsedMs: maxElapsedMs ?? defaultRetryPolicy.maxElapsedMs,
    baseDelayMs: baseDelayMs ?? defaultRetryPolicy.baseDelayMs,
    maxDelayMs: maxDelayMs ?? defaultRetryPolicy.maxDelayMs,
  };
}

function isCount(value: unknown): boolean {
  return value === Infinity || (Number.isInteger(value) && (value as number) >= 1);
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}
