/**
 * The faults of observers that learn from followers. They are drawn apart from the rest of a seed, so
 * that the seeds without such observers stay as they are.
 */
import type { SeededRandom } from '@tskeeper/runtime';
import type { FaultName } from '../faults/faults.ts';
import type { SeedPlan } from './swarm.ts';

/** Weighted: otherwise too rare among all faults. */
const ofObservers: readonly FaultName[] = ['observerAhead', 'observerAhead', 'observerAhead', 'syncAtObserver', 'syncAtObserver'];

/** Returns the plan with these faults in every second seed with such observers, or as it is. */
export function withObserverFaults(plan: SeedPlan, random: SeededRandom): SeedPlan {
  const { ensemble, faults } = plan;
  const learnFromFollowers = (ensemble?.observers ?? 0) > 0 && ensemble?.options.observerMasterPort !== undefined;
  return learnFromFollowers && random.below(2) === 0 ? { ...plan, faults: [...faults, ...ofObservers] } : plan;
}
