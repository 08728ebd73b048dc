/**
 * Time and chance, as a client sees them. Node's own are the default (src/node); a simulator brings virtual ones, and then everything a
 * client does, time-outs and random pauses included, follows from one seed. What `@tskeeper/runtime` calls Clock and Random fits here.
 */
import type { Millis } from '@tskeeper/protocol';

/** A timer that has been set. */
export type TimerHandle = object;

/** The time a client goes by. */
export interface Clock {
  /** Read anew after each wait. Only the monotonic clock is used: what an operator does to the wall clock is not noticed. */
  now(): { readonly elapsedMs: Millis };
  /** Calls back once, not before `delayMs` have passed on the monotonic clock. */
  after(delayMs: Millis, callback: () => void): TimerHandle;
  /** Takes a timer back, also one that has fired already. */
  cancel(timer: TimerHandle): void;
}

/** The longest that one timer of Node can wait, 24 days: as good as for ever for a request. */
export const timerMsMax = 0x7fffffff;

/** Where chance comes from. */
export interface Random {
  /** Uniform over 0 .. 2^32 - 1. */
  uint32(): number;
}

/** A number in [0, below), not rounded. */
export function uniform(random: Random, below: number): number {
  return (random.uint32() / 4294967296) * below;
}

/** The same in an order by chance, every order equally likely. */
export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const result = [...items];
  for (let left = result.length - 1; left > 0; left--) {
    const pick = Math.floor(uniform(random, left + 1));
    [result[left], result[pick]] = [result[pick]!, result[left]!];
  }
  return result;
}
