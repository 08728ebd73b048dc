import type { QuorumConfig } from '@tskeeper/protocol';
import type { ClientFront } from './client-front.ts';
import type { ClientOutput } from './client-output.ts';
import type { ElectionLinks } from './election/election-links.ts';
import type { PeerStorage } from './zab/peer-storage.ts';
import type { QuorumLinks } from './zab/quorum-links.ts';

/** Tells one of two servers whether it may go on without the other. */
export interface Oracle {
  /** Asks at once; completes as `oracleAnswered`. It is asked from time to time besides. */
  ask(): void;
}

/** The client port of a server of an ensemble. */
export interface PeerClients extends ClientOutput {
  /**
   * Input of clients goes to `front` from here on. Called at the start and once per change of the
   * front, at the end of an input of the peer.
   */
  attach(front: ClientFront): void;
}

/** What follows the configuration: addresses to dial, and addresses to listen at. */
export interface MembershipListener {
  /** `others`: configurations that may become active next. Their servers must be reachable too. */
  changed(active: QuorumConfig, others: readonly QuorumConfig[]): void;
}

/** The outputs of a server of an ensemble. */
export interface PeerIo {
  readonly clients: PeerClients;
  readonly election: ElectionLinks;
  readonly quorum: QuorumLinks;
  readonly storage: PeerStorage;
  readonly oracle?: Oracle | undefined;
  readonly members?: MembershipListener | undefined;
}
