/** A few runs of each family; `npm run sim -- recipes` runs any number. */
import { describe, expect, test } from 'vitest';
import { breadth, sample } from '../../../../test/breadth.ts';
import { families, familyNames, runRecipeSeed } from '../../src/internal.ts';

const count = breadth(1, 2);

describe('a run of recipes', () => {
  test.each(sample(familyNames, 3))('of %s breaks no promise, whatever faults it has', async (family) => {
    for (let seed = 1; seed <= count; seed++) {
      const { findings } = await runRecipeSeed(seed, { family });
      expect(findings, `npm run sim -- recipes --family ${family} --seed ${seed}`).toEqual([]);
    }
  });

  test('is the same for the same seed, and different for a different seed', async () => {
    const traces: number[] = [];
    for (const seed of [2, 2, 5]) traces.push((await runRecipeSeed(seed, { family: 'locks' })).world.traceHash);
    expect(traces[1]).toBe(traces[0]);
    expect(traces[2]).not.toBe(traces[0]);
  });

  test('belongs to each family in turn, by its seed', async () => {
    expect(Object.keys(families)).toEqual(familyNames);
    expect((await runRecipeSeed(familyNames.length + 1)).family).toBe(familyNames[1]);
  });
});
