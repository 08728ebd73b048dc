/**
 * Faults that are drawn apart from the rest of a seed, so that the seeds without them stay as they
 * are: those of observers that learn from followers, and the end of a session by an operator.
 */
import type { SeededRandom } from '@tskeeper/runtime';
import type { FaultName } from '../faults/faults.ts';
import type { SeedPlan } from './swarm.ts';

/** Weighted: otherwise too rare among all faults, and both need servers that are in step at that moment. */
const ofObservers: readonly FaultName[] = [...repeat<FaultName>('observerAhead', 4), ...repeat<FaultName>('syncAtObserver', 8)];

function repeat<T>(value: T, times: number): T[] {
  return Array.from({ length: times }, () => value);
}

/** Returns the plan with these faults in every second seed with such observers, or as it is. */
export function withObserverFaults(plan: SeedPlan, random: SeededRandom): SeedPlan {
  const { ensemble, faults } = plan;
  const learnFromFollowers = (ensemble?.observers ?? 0) > 0 && ensemble?.options.observerMasterPort !== undefined;
  return learnFromFollowers && random.below(2) === 0 ? { ...plan, faults: [...faults, ...ofObservers] } : plan;
}

/** Returns the plan with this fault in every third seed, or as it is. */
export function withEndedSessions(plan: SeedPlan, random: SeededRandom): SeedPlan {
  return random.below(3) === 0 ? { ...plan, faults: [...plan.faults, ...repeat<FaultName>('expireSession', 2)] } : plan;
}
