/** What happens to the memory that a server may use. */
import type { Fault } from './fault.ts';

export const shortOfMemory: Fault = {
  id: 'F34',
  what: 'memory gets tight at a server, or is full, for a while: it refuses new sessions and long multis, or whatever grows',
  strike(stage, random) {
    stage.takeMemory(stage.anyServer(), random.below(2) === 0 ? 0.87 : 0.95, 200 + random.below(1500));
  },
};
