/**
 * The enumeration itself, with a few states of some cases. `npm run sim -- crash-states` covers the
 * rest.
 */
import { describe, expect, test } from 'vitest';
import { sample } from '../../../../test/breadth.ts';
import { enumerateCrashStates, runCase } from '../../src/internal.ts';

describe('crash states of joining', () => {
  const cases = [
    { folder: 'tail', sync: 'memory', opening: 'TRUNC' },
    { folder: 'behind', sync: 'memory', opening: 'DIFF' },
    { folder: 'behind', sync: 'log', opening: 'DIFF' },
    { folder: 'empty', sync: 'snapshot', opening: 'SNAP' },
  ] as const;
  test.each(sample(cases, 1))(
    'with folder $folder and sync $sync all let the server join again when the leader begins with $opening',
    async ({ folder, sync, opening }) => {
      const { finding, states, points, ...result } = await runCase({ folder, sync, seed: 1 }, 25);
      expect(finding).toBeUndefined();
      expect(result.syncPacket).toBe(opening);
      expect(states).toBe(25);
      expect(points).toBeGreaterThan(30);
    },
  );

  test('are the same in each enumeration', async () => {
    const one = await runCase({ folder: 'interrupted', sync: 'log', seed: 2 }, 20);
    expect(await runCase({ folder: 'interrupted', sync: 'log', seed: 2 }, 20)).toEqual(one);
  });

  test('are counted up to the requested number, and the report names the cases that were not reached', async () => {
    const lines: string[] = [];
    const result = await enumerateCrashStates({ states: 12, statesPerCase: 6, seed: 1 }, (line) => lines.push(line));
    expect(result).toEqual({ states: 12, finding: undefined, missing: ['DIFF', 'TRUNC', 'in part'] });
    expect(lines).toEqual([
      expect.stringMatching(/^\d+ states of the files of a configuration$/),
      expect.stringMatching(/^12 crash states at \d+ moments of joining, in 2 cases/),
    ]);
  });
});
