import { FairQueue, FairShare } from '@tskeeper/core/internal';

/** One address of clients, with the counts that are limited per address. */
export class ClientAddress<Cnxn extends { readonly share: FairShare }> {
  readonly name: string;
  /** Connections, closing ones included. */
  cnxnCount = 0;
  /** Connections without a handshake, oldest first. */
  readonly halfOpen = new Set<Cnxn>();
  /** Input and output held for its connections. */
  heldBytes = 0;
  /** It holds more than its share: its connections are not read while output waits for it. */
  isOverShare = false;
  /** Its turn among addresses. */
  readonly share = new FairShare();
  /** Its connections with frames that wait for their turn. */
  readonly turnQueue = new FairQueue<Cnxn>();

  constructor(name: string) {
    this.name = name;
  }
}
