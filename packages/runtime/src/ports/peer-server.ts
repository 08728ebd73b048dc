/**
 * A server of the ensemble has two addresses for the others: votes go to its election port, and
 * while it leads, learners connect to its quorum port. Each port uses one of them. With
 * observerMasterPort there is a third, for observers, while it follows.
 */
import type { HostPort, Sid } from '@tskeeper/protocol';

export interface PeerServer {
  readonly sid: Sid;
  /**
   * Addresses for notifications; several where a server has several networks
   * (multiAddress.enabled). Tried in this order.
   */
  readonly electionAddresses: readonly HostPort[];
  /** Addresses at which learners dial it while it leads. */
  readonly quorumAddresses: readonly HostPort[];
  /** Addresses at which observers dial it while it follows; empty without observerMasterPort. */
  readonly observerMasterAddresses?: readonly HostPort[];
}
