/**
 * What the parts of an election port share. The runtime passes the time with each input and does
 * not read the clock between, so everything that happens for one input has one time.
 */
import type { Now } from '@tskeeper/core';
import type { ElectionCore } from './election-core.ts';

export class ElectionTurn {
  /** Set by `ElectionPort.attach`, before the first connection. */
  core!: ElectionCore;
  /** The time of the input that is being processed. */
  now: Now = { elapsedMs: 0, wallMs: 0 };
}
