import type { SeededRandom } from '@tskeeper/runtime';
import type { Stage } from '../story/stage.ts';

/** Something that can go wrong. Strikes at any moment; what it breaks it mends after a while, or the healing at the end does. */
export interface Fault {
  /** Its number in the catalogue of faults. */
  readonly id: string;
  /** What happens. */
  readonly what: string;
  /** It takes several servers. */
  readonly ofEnsembles?: true;
  strike(stage: Stage, random: SeededRandom): void;
}
