/**
 * Decides whose frames the core gets next when it could not accept all: by address, then by
 * connection of that address, each time the one that has had least of the core's work. So an
 * address gains nothing from more connections, nor a connection from more requests.
 *
 * A connection whose turn comes while it cannot be fed is set aside as blocked, so that the others
 * do not wait for it.
 */
import type { ClientAddress } from './client-address.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import { FairQueue } from '@tskeeper/core/internal';

export class ClientTurnQueue {
  readonly #addresses = new FairQueue<ClientAddress<ClientCnxn>>();
  #length = 0;
  /** Connections that wait until the core accepts their frames, or until output has been sent. */
  #blocked: ClientCnxn[] = [];

  /** Number of connections that wait for their turn, without the blocked ones. */
  get length(): number {
    return this.#length;
  }

  /** Number of all connections whose frames wait. */
  get waitingCount(): number {
    return this.#length + this.#blocked.length;
  }

  push(cnxn: ClientCnxn): void {
    if (cnxn.share.heapIndex !== -1) return;
    this.#length++;
    cnxn.address.turnQueue.push(cnxn);
    this.#addresses.push(cnxn.address);
  }

  take(): ClientCnxn | undefined {
    const address = this.#addresses.take();
    if (address === undefined) return undefined;
    this.#length--;
    const cnxn = address.turnQueue.take();
    if (address.turnQueue.length > 0) this.#addresses.push(address);
    return cnxn;
  }

  remove(cnxn: ClientCnxn): void {
    if (cnxn.share.heapIndex === -1) return;
    this.#length--;
    const { turnQueue } = cnxn.address;
    turnQueue.remove(cnxn);
    if (turnQueue.length === 0) this.#addresses.remove(cnxn.address);
  }

  block(cnxn: ClientCnxn): void {
    this.#blocked.push(cnxn);
  }

  /** Removes and returns the blocked connections, the one blocked longest first. */
  takeBlocked(): ClientCnxn[] {
    const blocked = this.#blocked;
    this.#blocked = [];
    return blocked;
  }

  /** Charges a connection for work of the core. */
  charge(cnxn: ClientCnxn, units: number): void {
    cnxn.address.turnQueue.charge(cnxn, units);
    this.#addresses.charge(cnxn.address, units);
  }
}
