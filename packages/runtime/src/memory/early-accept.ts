/**
 * What accepts in place of the machine that is dialled, and dials that one itself: Docker's proxy, a sidecar, a tunnel. Whoever dials is connected
 * before anybody listens at the far end, sends its first words into it, and sees the connection close a moment later if nobody does.
 */
import type { Millis } from '@tskeeper/protocol';

export interface EarlyAccept {
  /** At the near end it accepts whatever is cut behind it; at the far end a dial takes the way there and back, if nothing is cut. */
  readonly at: 'near end' | 'far end';
  /** What whoever has dialled sees when the machine has refused: an end, after which it may go on to send; or a reset. */
  readonly refusal: 'end' | 'reset';
  /** How long that takes, beside the way there and back. */
  readonly refusalMs: Millis;
  /** For how long a machine is dialled that does not answer. */
  readonly patienceMs: Millis;
}
