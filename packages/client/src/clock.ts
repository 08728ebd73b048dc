/**
 * Time and randomness of a client. Node's are the default (src/node). With a simulator's virtual
 * ones, one seed determines everything that a client does, including time-outs and random pauses.
 * The Clock and Random of `@tskeeper/runtime` also match these interfaces.
 */
import type { Millis } from '@tskeeper/protocol';

/** A timer that was set. */
export type TimerHandle = object;

/** The clock of a client. */
export interface Clock {
  /** Monotonic time. The client reads it again after each wait, and does not use the wall clock. */
  now(): { readonly elapsedMs: Millis };
  /** Calls `callback` once, not before `delayMs` have passed on the monotonic clock. */
  after(delayMs: Millis, callback: () => void): TimerHandle;
  /** Cancels a timer; does nothing if it has already fired. */
  cancel(timer: TimerHandle): void;
}

/** The longest time that a timer of Node can wait: 24 days, in practice unlimited for a request. */
export const timerMsMax = 0x7fffffff;

/** A source of randomness. */
export interface Random {
  /** Uniform over 0 to 2^32 - 1. */
  uint32(): number;
}

/** A random number in [0, below), not rounded. */
export function uniform(random: Random, below: number): number {
  return (random.uint32() / 4294967296) * below;
}

/** A copy in random order; every order is equally likely. */
export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index--) {
    const pick = Math.floor(uniform(random, index + 1));
    [result[index], result[pick]] = [result[pick]!, result[index]!];
  }
  return result;
}
