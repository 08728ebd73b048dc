/**
 * How much a test does. `npm test` has two minutes for everything, so a proof over many seeds, states or cases does a small part of them there.
 * `npm run test:all` and `.ci/run` run vitest with `--mode full`, which does all of them. For all of one file:
 * `npx vitest run --mode full --project unit packages/core/test/election`.
 */
import { expect, inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    breadth: 'small' | 'full';
  }
}

/** Whether all is done. Only then can a test hold how often something happened over its seeds. */
export const isFull = inject('breadth') === 'full';

/** The first value in `npm test`, the second in the full form. */
export function breadth<T>(small: T, full: T): T {
  return isFull ? full : small;
}

/** `count` of the cases in `npm test`, evenly spread over the list and with the first among them; all of them in the full form. */
export function sample<T>(cases: readonly T[], count: number): T[] {
  if (isFull || cases.length <= count) return [...cases];
  return Array.from({ length: count }, (_, index) => cases[Math.floor((index * cases.length) / count)]!);
}

/** In `npm test` each `step`-th of the numbers below `end`, beginning with `from`; all of them in the full form. */
export function* strided(end: number, step: number, from = 0): Iterable<number> {
  for (let number = from; number < end; number += isFull ? 1 : step) yield number;
}

/**
 * Expects that all of this has happened over the seeds of a test, each of it more than so many times. Only in the full form: few seeds need not have all of it.
 */
export function expectHappened(tally: object, moreThan: number): void {
  if (!isFull) return;
  for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(moreThan);
}
