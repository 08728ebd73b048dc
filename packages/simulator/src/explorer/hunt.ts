/**
 * The explorer as a hunter of mutants: one search of bounded size for each seed. Searches take turns at what they are good at, since no scope
 * shows everything: a learner that is behind is found where one has been left behind; whatever comes of few txns in memory, where there are few.
 */
import { expeditions, runExpedition } from './expeditions.ts';

/** A second or two. */
const statesMax = 6000;

export interface Hunt {
  /** Distinct states that were seen. */
  readonly states: number;
  /** What was violated, if anything was. */
  readonly finding: string | undefined;
}

export function hunt(seed: number): Hunt {
  const expedition = expeditions[seed % expeditions.length]!;
  try {
    const { states, violation } = runExpedition({ ...expedition, share: 100 }, statesMax, seed).found;
    return { states, finding: violation?.error.message };
  } catch (error) {
    // Some mutants do not come as far as where the search begins.
    return { states: 0, finding: error instanceof Error ? error.message : String(error) };
  }
}
