/**
 * What the parts of a learner port share. The runtime passes the time with each input and does not
 * read the clock between, so everything that happens for one input has one time.
 */
import type { Now } from '@tskeeper/core';
import type { LearnerCore } from './learner-core.ts';

export class LearnerTurn {
  /** Set by `LearnerPort.attach`, before the first channel. */
  core!: LearnerCore;
  /** The time of the input that is being processed. */
  now: Now = { elapsedMs: 0, wallMs: 0 };
  /** There is more work that can be done at once. */
  needsAnother = false;
}
