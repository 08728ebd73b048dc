/**
 * Connections of clients that have not completed their handshake, and which of them is dropped when
 * there are too many. See docs/decisions/half-open-connections.md.
 */
import type { Millis } from '@tskeeper/protocol';
import type { ClientAddress } from './client-address.ts';
import type { ClientCnxn } from './client-cnxn.ts';

export class HalfOpenClients {
  /** Oldest first. */
  readonly #cnxns = new Set<ClientCnxn>();
  /** Addresses that have any. */
  readonly #addresses = new Set<ClientAddress<ClientCnxn>>();

  get size(): number {
    return this.#cnxns.size;
  }

  [Symbol.iterator](): Iterator<ClientCnxn> {
    return this.#cnxns.values();
  }

  add(cnxn: ClientCnxn): void {
    this.#cnxns.add(cnxn);
    cnxn.address.halfOpen.add(cnxn);
    this.#addresses.add(cnxn.address);
  }

  delete(cnxn: ClientCnxn): void {
    if (!this.#cnxns.delete(cnxn)) return;
    const { address } = cnxn;
    address.halfOpen.delete(cnxn);
    if (address.halfOpen.size === 0) this.#addresses.delete(address);
  }

  /**
   * The connection to drop for a newcomer: the oldest silent one, accepted by `acceptedByMs`, of
   * the address with the most half-open ones. A connection whose frames wait for their turn is not
   * silent.
   */
  oldestOfHeaviest(acceptedByMs: Millis): ClientCnxn | undefined {
    let found: ClientCnxn | undefined;
    for (const { halfOpen } of this.#addresses) {
      if (found !== undefined && halfOpen.size <= found.address.halfOpen.size) continue;
      for (const cnxn of halfOpen) {
        if (cnxn.isStalled) continue;
        if (cnxn.acceptedMs <= acceptedByMs) found = cnxn;
        break;
      }
    }
    return found;
  }
}
