/**
 * The explorer as a detector of mutants: one search of bounded size for each seed. Searches rotate
 * over the search presets, since no scope shows everything: errors with a lagging learner show
 * where one lags, errors with few txns in memory where there are few.
 */
import { searchPresets, runPreset } from './search-presets.ts';

/** Takes a second or two. */
const statesMax = 6000;

export interface Detection {
  /** Number of distinct states. */
  readonly states: number;
  /** The violation, if there was one. */
  readonly finding: string | undefined;
}

export function detectWithExplorer(seed: number): Detection {
  const preset = searchPresets[seed % searchPresets.length]!;
  try {
    const { states, violation } = runPreset({ ...preset, statesPercent: 100 }, statesMax, seed).found;
    return { states, finding: violation?.error.message };
  } catch (error) {
    // Some mutants do not reach the state in which the search begins.
    return { states: 0, finding: error instanceof Error ? error.message : String(error) };
  }
}
