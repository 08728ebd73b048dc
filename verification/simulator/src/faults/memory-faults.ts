/** Faults of the memory that a server may use. */
import type { Fault } from './fault.ts';

export const memoryPressure: Fault = {
  id: 'F34',
  description: 'memory of a server is tight or full for a while: it refuses new sessions and long multis, or everything that grows',
  inject(run, random) {
    run.applyMemoryPressure(run.anyServer(), random.below(2) === 0 ? 0.87 : 0.95, 200 + random.below(1500));
  },
};
