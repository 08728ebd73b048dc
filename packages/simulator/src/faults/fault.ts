import type { SeededRandom } from '@tskeeper/runtime';
import type { Stage } from '../story/stage.ts';

/**
 * A fault. It can strike at any time; it repairs its damage after a while, or the healing at the
 * end of the run does.
 */
export interface Fault {
  /** The id in the list of faults. */
  readonly id: string;
  /** What happens. */
  readonly what: string;
  /** The fault needs several servers. */
  readonly ofEnsembles?: true;
  strike(stage: Stage, random: SeededRandom): void;
}
