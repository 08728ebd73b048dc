import { expect } from 'vitest';

/**
 * Like `expect(actual, what).toBe(expected)`, for loops of many thousands: a call of `expect` takes
 * some ten microseconds even if it passes.
 *
 * @param what the message of a failure begins with this
 */
export function expectIs<T>(actual: T, expected: T, what?: string): void {
  if (!Object.is(actual, expected)) expect(actual, what).toBe(expected);
}
