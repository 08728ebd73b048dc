import type { ClientOutput } from './client-output.ts';
import type { ElectionLinks } from './election/election-links.ts';
import type { PeerStorage } from './zab/peer-storage.ts';
import type { QuorumLinks } from './zab/quorum-links.ts';

/** Tells one of two servers whether it may go on without the other. */
export interface Oracle {
  /** Asks at once; completes as `oracleAnswered`. It is asked from time to time besides. */
  ask(): void;
}

/** The outputs of a server of an ensemble. */
export interface PeerIo {
  readonly clients: ClientOutput;
  readonly election: ElectionLinks;
  readonly quorum: QuorumLinks;
  readonly storage: PeerStorage;
  readonly oracle?: Oracle | undefined;
}
