import type { Recording } from '../record/recording.ts';
import type { Replay } from '../replay/replay-result.ts';

/** Checks a recording against one property. */
export interface Checker {
  /** The id of the property, such as `P3`; empty if the list of properties has none. */
  readonly property: string;
  /** What the checker verifies, in one sentence or two. */
  readonly promise: string;
  /**
   * How often the recording had something to check. Summed over many seeds, it shows whether the
   * checker is exercised.
   */
  casesExercised?(recording: Recording, replay: Replay): number;
  /** Returns the violations, each as one line of evidence. */
  check(recording: Recording, replay: Replay): string[];
}
