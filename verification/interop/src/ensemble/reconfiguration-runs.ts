/** Which mixed ensembles are reconfigured, and in how many cycles: at least 20 in the bounded form, and 200 in the long one. */
import type { ServerKind } from '@tskeeper/harness';
import { Random } from '../random.ts';
import type { ReconfigurationSettings } from './reconfigurations.ts';

/** Cycles of each run with reconfigurations. */
const boundedCycles = 10;
const longCycles = 25;
/** Runs of the long form, in addition to the two of the bounded one. */
const longRuns = 8;
/** One of so many has a server of 3.8.0. */
const longRunsPer38 = 4;

/** The first two are those of the bounded form. */
export function reconfigurationRuns(seed: number, bounded: boolean): readonly ReconfigurationSettings[] {
  const returnAs: readonly ServerKind[] = ['ours', 'java-3.9.5'];
  const always: readonly ReconfigurationSettings[] = [
    { kinds: ['java-3.9.5', 'ours', 'java-3.9.5', 'ours', 'java-3.9.5'], returnAs, cycles: boundedCycles, seed },
    { kinds: ['ours', 'java-3.8.0', 'ours', 'java-3.9.5', 'ours'], returnAs, cycles: boundedCycles, seed: seed + 50 },
  ];
  if (bounded) return always;
  const more = Array.from({ length: longRuns }, (_, index): ReconfigurationSettings => {
    const random = new Random(seed + 100 + index);
    // The first three are the first members, which are of both kinds.
    const third = index % longRunsPer38 === 0 ? 'java-3.8.0' : random.pick(returnAs);
    const kinds: readonly ServerKind[] = ['ours', 'java-3.9.5', third, random.pick(returnAs), random.pick(returnAs)];
    return { kinds, returnAs, cycles: longCycles, seed: seed + 100 + index };
  });
  return [...always, ...more];
}
