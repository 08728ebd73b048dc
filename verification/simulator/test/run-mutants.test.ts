/**
 * How `runMutants` looks for the seeds that catch a mutant; the test plays the processes that run
 * seeds.
 */
import { describe, expect, test } from 'vitest';
import { emptyReport, type PoolOptions, runMutants, type SeedReport, mutantsSummary } from '../src/internal.ts';

/** Seeds with findings, with a mutant and without one. */
function played(red: readonly number[], redAnyway: readonly number[]) {
  const ran: string[] = [];
  const poolOf = ({ mutant }: PoolOptions) => ({
    run: (next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> => {
      for (let seed = next(); seed !== undefined; seed = next()) {
        ran.push(`${mutant ?? 'no mutant'} ${seed}`);
        const isRed = redAnyway.includes(seed) || (mutant !== undefined && red.includes(seed));
        report({ ...emptyReport, seed, states: 10, findings: isRed ? ['it is red'] : [] });
      }
      return Promise.resolve();
    },
  });
  return {
    ran,
    run: (most: number) =>
      runMutants(
        ['ack-before-log'],
        1,
        () => most,
        1,
        () => undefined,
        poolOf,
      ),
  };
}

describe('a mutant', () => {
  test('is caught by the first seed that has findings only with the mutant', async () => {
    const { ran, run } = played([4], [2]);
    expect(await run(10)).toMatchObject([{ report: { seed: 4 }, seeds: 4, states: 40 }]);
    expect(ran.filter((each) => each.startsWith('no mutant'))).toEqual(['no mutant 2', 'no mutant 4']);
  });

  test('escapes when every seed with findings has them without the mutant, too', async () => {
    const caught = await played([], [1, 3]).run(3);
    expect(caught).toMatchObject([{ report: undefined, seeds: 3 }]);
    expect(mutantsSummary(caught)).toContain('escaped: ack-before-log');
  });

  test('can be caught by the last seed', async () => {
    expect(await played([3], []).run(3)).toMatchObject([{ report: { seed: 3 }, seeds: 3 }]);
  });
});
