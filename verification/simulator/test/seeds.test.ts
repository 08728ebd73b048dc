/** A few runs; `npm run sim` runs any number. */
import { describe, expect, test } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { check, findingText, runSeed } from '../src/index.ts';

/** Standalone servers and ensembles of two to seven servers; `npm run sim:ci` runs more. */
const [first, count] = [21, breadth(2, 20)];

describe('a seed', () => {
  test(`D6: of ${count} breaks no promise, whatever faults its run has`, async () => {
    for (let seed = first; seed < first + count; seed++) {
      const findings = check((await runSeed(seed)).recording).map(findingText);
      expect(findings.slice(0, 20), `npm run sim -- --seed ${seed}`).toEqual([]);
    }
  });

  test('D6: gives the same run each time, and another seed gives another run', async () => {
    const traces: number[] = [];
    for (const seed of [18, 18, 23]) traces.push((await runSeed(seed)).world.traceHash);
    expect(traces[1]).toBe(traces[0]);
    expect(traces[2]).not.toBe(traces[0]);
  });
});
