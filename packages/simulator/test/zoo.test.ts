/** How mutants are hunted; the hunters themselves are played here. */
import { describe, expect, test } from 'vitest';
import { nothingReported, type PoolOptions, runZoo, type SeedReport, zooText } from '../src/internal.ts';

/** Seeds that are red, against a mutant and against the server as it should be. */
function played(red: readonly number[], redAnyway: readonly number[]) {
  const ran: string[] = [];
  const poolOf = ({ mutant }: PoolOptions) => ({
    run: (next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> => {
      for (let seed = next(); seed !== undefined; seed = next()) {
        ran.push(`${mutant ?? 'as it should be'} ${seed}`);
        const isRed = redAnyway.includes(seed) || (mutant !== undefined && red.includes(seed));
        report({ ...nothingReported, seed, states: 10, findings: isRed ? ['it is red'] : [] });
      }
      return Promise.resolve();
    },
  });
  return { ran, hunt: (most: number) => runZoo(['ack-before-log'], 1, most, 1, () => undefined, poolOf) };
}

describe('a mutant', () => {
  test('is caught by the first seed that is red for it alone', async () => {
    const { ran, hunt } = played([4], [2]);
    expect(await hunt(10)).toMatchObject([{ report: { seed: 4 }, seeds: 4, states: 40 }]);
    expect(ran.filter((each) => each.startsWith('as it should be'))).toEqual(['as it should be 2', 'as it should be 4']);
  });

  test('escapes when all that is red is red anyway', async () => {
    const caught = await played([], [1, 3]).hunt(3);
    expect(caught).toMatchObject([{ report: undefined, seeds: 3 }]);
    expect(zooText(caught)).toContain('escaped: ack-before-log');
  });

  test('is caught by a seed that is the last one, too', async () => {
    expect(await played([3], []).hunt(3)).toMatchObject([{ report: { seed: 3 }, seeds: 3 }]);
  });
});
