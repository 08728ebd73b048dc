/**
 * What the parts of a client port share in a turn. The runtime passes the time with each input and
 * does not read the clock between, so everything that happens for one input has one time.
 */
import type { ClientFront, Now } from '@tskeeper/core';

export class PortTurn {
  /** Takes the input of clients. Set by `ClientPort.attach`, before the first connection. */
  front!: ClientFront;
  /** The time of the input that is being processed. */
  now: Now = { elapsedMs: 0, wallMs: 0 };
  /** There is more work that can be done at once. */
  needsAnother = false;
}
