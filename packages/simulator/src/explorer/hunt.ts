/**
 * The explorer as a hunter of mutants: one search of bounded size for each seed. Searches take turns at what they are good at, since no scope
 * shows everything: a learner that is behind is found from an ensemble that serves; whatever comes of few txns in memory, where there are few.
 */
import { Violation } from './invariants.ts';
import { openingToServe, search, type SearchOrder } from './search.ts';
import { type Scope, scopeDefaults } from './small-world.ts';

interface Ground {
  readonly order: SearchOrder;
  readonly from: 'cold' | 'serving';
  readonly scope: Partial<Scope>;
}

const grounds: readonly Ground[] = [
  { order: 'walks', from: 'serving', scope: {} },
  { order: 'chains', from: 'cold', scope: {} },
  { order: 'walks', from: 'serving', scope: { committedLog: 1 } },
  { order: 'walks', from: 'serving', scope: { committedLog: 1, readsLog: false } },
  { order: 'walks', from: 'serving', scope: { txns: 3, crashes: 3, wakes: 4 } },
  { order: 'walks', from: 'cold', scope: { notifications: true, wakes: 4 } },
  { order: 'chains', from: 'cold', scope: { servers: 2 } },
];

/** A second or two. */
const statesMax = 6000;
const depthMax = 400;

export interface Hunt {
  /** Distinct states that were seen. */
  readonly states: number;
  /** What was violated, if anything was. */
  readonly finding: string | undefined;
}

export function hunt(seed: number): Hunt {
  const { order, from, scope: more } = grounds[seed % grounds.length]!;
  const scope = { ...scopeDefaults, ...more };
  try {
    const opening = from === 'cold' ? [] : openingToServe(scope);
    const { states, violation } = search({ scope, opening, order, seed, depthMax, isEnough: (progress) => progress.states >= statesMax });
    return { states, finding: violation?.error.message };
  } catch (error) {
    // Some mutants do not come as far as serving.
    if (error instanceof Violation) return { states: 0, finding: error.message };
    throw error;
  }
}
