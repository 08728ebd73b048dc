/** How often, for how long and after which pauses a call is made again. */
import { described } from '../arguments.ts';
import type { Millis } from '@tskeeper/protocol';

/** Each part may be left out. Whichever limit is reached first ends it. */
export interface RetryPolicy {
  /** How often the call is made at most, the first time included. Default: 10. `Infinity`: no limit. */
  readonly attempts?: number | undefined;
  /** No attempt begins later than this many milliseconds after the first. Default: 60 000. `Infinity`: no limit. */
  readonly maxElapsedMs?: Millis | undefined;
  /**
   * Longest pause before the second attempt; it doubles with each further one. The pause itself is random, from nothing to that, so
   * that clients that fail together do not come back together. Default: 100.
   */
  readonly pauseMs?: Millis | undefined;
  /** What the doubling stops at. Default: 5 000. */
  readonly pauseMsMax?: Millis | undefined;
}

/** A policy with nothing left out. */
export type FullRetryPolicy = { readonly [Part in keyof RetryPolicy]-?: number };

const policyDefault: FullRetryPolicy = { attempts: 10, maxElapsedMs: 60_000, pauseMs: 100, pauseMsMax: 5000 };

/** For what has to be found out: it ends with the session, with its time-out or with its signal. */
export const untilTheEnd: FullRetryPolicy = { ...policyDefault, attempts: Infinity, maxElapsedMs: Infinity };

/** What `retry` says; undefined for "not at all". Throws a RangeError or a TypeError for what cannot be meant. */
export function fullPolicy(retry: RetryPolicy | boolean | undefined): FullRetryPolicy | undefined {
  if (retry === undefined || retry === false) return undefined;
  if (retry === true) return policyDefault;
  if (typeof retry !== 'object' || retry === null) throw new TypeError(`retry is true, false or a policy, not ${described(retry)}`);
  for (const [part, value] of Object.entries(retry as Readonly<Record<string, unknown>>)) {
    if (!Object.hasOwn(policyDefault, part))
      throw new TypeError(`retry.${part} is not known; a policy has ${Object.keys(policyDefault).join(', ')}`);
    if (value === undefined) continue;
    if (part === 'attempts' ? !isCount(value) : !isDuration(value)) {
      const wanted = part === 'attempts' ? 'a whole number from 1, or Infinity' : 'a number of milliseconds from 0, or Infinity';
      throw new RangeError(`retry.${part} is ${wanted}, not ${typeof value === 'number' ? value : typeof value}`);
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
