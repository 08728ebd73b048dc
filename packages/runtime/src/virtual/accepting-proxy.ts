/**
 * An intermediary that accepts a connection in place of its target and dials the target itself:
 * Docker's proxy, a sidecar, a tunnel. The dialling side is connected before the target listens,
 * sends its first bytes, and sees the connection close a moment later if the target does not
 * accept.
 */
import type { Millis } from '@tskeeper/protocol';

export interface AcceptingProxy {
  /**
   * At the near end it accepts even when the link to the target is cut; at the far end a dial takes
   * the way there and back, if nothing is cut.
   */
  readonly location: 'near end' | 'far end';
  /**
   * What the dialling side sees when the target has refused: an end, after which it may still send;
   * or a reset.
   */
  readonly refusal: 'end' | 'reset';
  /** How long that takes, in addition to the way there and back. */
  readonly refusalMs: Millis;
  /** How long it tries to reach a target that does not answer. */
  readonly dialTimeoutMs: Millis;
}
