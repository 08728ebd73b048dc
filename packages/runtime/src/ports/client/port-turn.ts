/**
 * What the parts of a client port share in a turn. The runtime passes the time with each input and
 * does not read the clock between, so everything that happens for one input has one time.
 */
import type { Now } from '@tskeeper/core';
import type { ClientCore } from './client-core.ts';

export class PortTurn {
  /** Set by `ClientPort.attach`, before the first connection. */
  core!: ClientCore;
  /** The time of the input that is being processed. */
  now: Now = { elapsedMs: 0, wallMs: 0 };
  /** There is more work that can be done at once. */
  needsAnother = false;
}
