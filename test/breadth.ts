/**
 * How much a test does. `npm test` has two minutes for everything, so a proof over many seeds,
 * states or cases does only a part of them there. `npm run test:all` and `.ci/run` run vitest with
 * `--mode full`, which does all of them. For all of one file: `npx vitest run --mode full --project
 * unit packages/core/test/election`.
 */
import { expect, inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    breadth: 'small' | 'full';
  }
}

/**
 * Whether everything runs. Only then can a test require how often something happened over its
 * seeds.
 */
export const isFull = inject('breadth') === 'full';

/** The first value in `npm test`, the second in the full form. */
export function breadth<T>(small: T, full: T): T {
  return isFull ? full : small;
}

/**
 * `count` of the cases in `npm test`, evenly spread over the list, including the first; all of them
 * in the full form.
 */
export function sample<T>(cases: readonly T[], count: number): T[] {
  if (isFull || cases.length <= count) return [...cases];
  return Array.from({ length: count }, (_, index) => cases[Math.floor((index * cases.length) / count)]!);
}

/**
 * In `npm test` every `step`-th number below `end`, starting with `from`; all of them in the full
 * form.
 */
export function* strided(end: number, step: number, from = 0): Iterable<number> {
  for (let number = from; number < end; number += isFull ? 1 : step) yield number;
}

/**
 * Requires that each of these events happened more than `moreThan` times over the seeds of a test.
 * Only in the full form: few seeds may miss some.
 */
export function expectHappened(tally: object, moreThan: number): void {
  if (!isFull) return;
  for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(moreThan);
}
