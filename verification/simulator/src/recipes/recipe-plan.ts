/** What a recipe run chooses of its world. Each seed leaves out about half of the faults. */
import type { CoreOptions } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { RuntimeOptions, SeededRandom } from '@tskeeper/runtime';
import { type RecipeFaultName, recipeFaults } from './recipe-faults.ts';

export interface RecipePlan {
  readonly servers: number;
  /** Undefined for a standalone server. */
  readonly ensemble: Record<string, never> | undefined;
  readonly core: Partial<CoreOptions>;
  readonly options: Partial<RuntimeOptions>;
  readonly faults: readonly RecipeFaultName[];
  /** Average time between two faults. */
  readonly faultIntervalMs: Millis;
  /** Average time between two interventions of the operator. */
  readonly operatorIntervalMs: Millis;
  /** Session timeouts of the processes, in turn. */
  readonly timeoutsMs: readonly Millis[];
  readonly safetyMs: Millis;
  /**
   * How long a server may take for a request; undefined: without limit, as long as it answers
   * pings.
   */
  readonly requestTimeoutMs: Millis | undefined;
}

export function drawRecipePlan(random: SeededRandom): RecipePlan {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const servers = pick(1, 3, 3, 3, 3, 3, 3, 5);
  const isEnsemble = servers > 1;
  const strikes = (name: RecipeFaultName) => random.below(2) === 0 && (isEnsemble || !('ensembleOnly' in recipeFaults[name]));
  return {
    servers,
    ensemble: isEnsemble ? {} : undefined,
    core: {
      closeSessionTxnEnabled: random.below(4) > 0,
      extendedTypesEnabled: true,
      // Often enough that a container disappears while processes are about to use it.
      containerCheckIntervalMs: pick(0, 150, 400),
    },
    options: { snapCount: pick(40, 1000) },
    faults: (Object.keys(recipeFaults) as RecipeFaultName[]).filter(strikes),
    faultIntervalMs: 100 + random.below(700),
    operatorIntervalMs: 200 + random.below(1500),
    timeoutsMs: [600 + random.below(1200), 800 + random.below(1600), 1000 + random.below(2000)],
    // Sometimes long enough for a session to end without its holder learning of it.
    safetyMs: random.below(5) === 0 ? 8000 + random.below(5000) : 2000 + random.below(3000),
    requestTimeoutMs: random.below(2) === 0 ? undefined : 150 + random.below(700),
  };
}
