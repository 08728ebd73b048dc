import type { SeededRandom } from '@tskeeper/runtime';
import type { Run } from '../run/run.ts';

/**
 * A fault. It can strike at any time; it repairs its damage after a while, or the healing at the
 * end of the run does.
 */
export interface Fault {
  /** The id in the list of faults. */
  readonly id: string;
  /** What happens. */
  readonly description: string;
  /** The fault needs several servers. */
  readonly ensembleOnly?: true;
  inject(run: Run, random: SeededRandom): void;
}
