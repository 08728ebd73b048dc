import { FairQueue, Turn } from '@tskeeper/core/internal';

/** One address of clients, with the counts that are limited per address. */
export class ClientAddress<Cnxn extends { readonly turn: Turn }> {
  readonly name: string;
  /** Connections, closing ones included. */
  cnxnCount = 0;
  /** Connections without a handshake, oldest first. */
  readonly halfOpen = new Set<Cnxn>();
  /** Input and output held for its connections. */
  heldBytes = 0;
  /** It holds more than its share: its connections are not read while output waits for it. */
  isHeavy = false;
  /** Its turn among addresses. */
  readonly turn = new Turn();
  /** Its connections with frames that wait for their turn. */
  readonly waiting = new FairQueue<Cnxn>();

  constructor(name: string) {
    this.name = name;
  }
}
