import { FairQueue, Turn } from '@tskeeper/core/internal';

/** One address from which clients are connected: what is shared among addresses is counted here. */
export class ClientAddress<Cnxn extends { readonly turn: Turn }> {
  readonly name: string;
  /** Connections, those on their way out included. */
  cnxnCount = 0;
  /** Those without a handshake, oldest first. */
  readonly halfOpen = new Set<Cnxn>();
  /** Input and output held for its connections. */
  heldBytes = 0;
  /** It holds more than its share: none of its connections is read while output waits for it. */
  isHeavy = false;
  /** Among addresses. */
  readonly turn = new Turn();
  /** Its connections whose frames wait for their turn. */
  readonly waiting = new FairQueue<Cnxn>();

  constructor(name: string) {
    this.name = name;
  }
}
