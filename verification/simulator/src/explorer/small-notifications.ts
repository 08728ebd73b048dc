/**
 * The notifications of elections in transit, and the connections that carry them. A newer
 * notification replaces one that has not been delivered; the last one is sent again over a new
 * connection.
 */
import type { Notification, Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { ascending } from './ascending.ts';
import { type Choice, encodeChoice } from './choice.ts';
import type { Scope } from './scope.ts';
import type { SmallNetwork } from './small-network.ts';
import type { SmallServer } from './small-server.ts';

/** Server ids are lower. */
const sidLimit = 16;

/** A sender and a receiver as one number. */
function directionOf(from: Sid, to: Sid): number {
  return from * sidLimit + to;
}

function sidsOf(direction: number): { readonly from: Sid; readonly to: Sid } {
  return { from: Math.floor(direction / sidLimit), to: direction % sidLimit };
}

export class SmallNotifications {
  readonly #elections: Scope['elections'];
  readonly #servers: readonly SmallServer[];
  readonly #network: SmallNetwork;
  /** By sender and receiver. */
  readonly #inTransit = new Map<number, Notification>();
  /** The last notification each sent, which is sent again over a new connection. */
  readonly #lastSent = new Map<number, Notification>();
  /** By owner and peer: a connection, as far as the owner knows. */
  readonly #cnxns = new Set<number>();

  constructor(elections: Scope['elections'], servers: readonly SmallServer[], network: SmallNetwork) {
    this.#elections = elections;
    this.#servers = servers;
    this.#network = network;
  }

  send(from: Sid, to: Sid, notification: Notification): void {
    this.#inTransit.set(directionOf(from, to), notification);
    if (this.#elections === 'each') this.#lastSent.set(directionOf(from, to), notification);
  }

  inTransit(from: Sid, to: Sid): Notification | undefined {
    return this.#inTransit.get(directionOf(from, to));
  }

  /**
   * What servers can receive from others: notifications, and the news that one refuses connections.
   */
  addChoices(found: Choice[]): void {
    for (const direction of ascending(this.#inTransit.keys())) {
      const { from, to } = sidsOf(direction);
      const canArrive = this.#network.refuses(from, to) ? this.#cnxns.has(direction) : !this.#network.isCut(from, to);
      if (canArrive) found.push(encodeChoice('notify', from, to));
    }
    for (const direction of ascending(this.#cnxns)) {
      const { from, to } = sidsOf(direction);
      if (this.#servers[from - 1]!.peer !== undefined && this.#network.refuses(from, to)) found.push(encodeChoice('refusal', from, to));
    }
  }

  deliver(from: Sid, to: Sid): void {
    const direction = directionOf(from, to);
    const notification = this.#inTransit.get(direction)!;
    this.#inTransit.delete(direction);
    const [sender, receiver] = [this.#servers[from - 1]!, this.#servers[to - 1]!];
    if (this.#network.refuses(from, to)) {
      this.#cnxns.delete(direction);
      if (sender.peer !== undefined) sender.unreachable(to);
      return;
    }
    this.#connect(from, to);
    if (receiver.peer !== undefined) receiver.notified(from, notification);
  }

  /** Makes a connection if there is none: the last notification of each is sent again over it. */
  #connect(from: Sid, to: Sid): void {
    const [there, back] = [directionOf(from, to), directionOf(to, from)];
    if (this.#cnxns.has(there) && this.#cnxns.has(back)) return;
    this.#cnxns.add(there);
    this.#cnxns.add(back);
    const lastSent = this.#lastSent.get(back);
    if (lastSent !== undefined && !this.#inTransit.has(back)) this.#inTransit.set(back, lastSent);
  }

  /** A server notices that another refuses connections. */
  refused(from: Sid, to: Sid): void {
    this.#cnxns.delete(directionOf(from, to));
    this.#servers[from - 1]!.unreachable(to);
  }

  /**
   * Notifications of a crashed server that are not yet sent are lost with it. Those to it stay in
   * transit if each is a choice of its own.
   */
  crashed(sid: Sid): void {
    for (const other of this.#servers) {
      other.election.reconnect(sid);
      const direction = directionOf(sid, other.sid);
      this.#inTransit.delete(direction);
      this.#lastSent.delete(direction);
      this.#cnxns.delete(direction);
      if (this.#elections === 'together') this.#inTransit.delete(directionOf(other.sid, sid));
    }
  }

  fingerprint(to: Fingerprint): void {
    for (const direction of ascending(this.#cnxns)) to.number(direction);
    for (const notifications of [this.#inTransit, this.#lastSent]) {
      to.number(notifications.size);
      for (const direction of ascending(notifications.keys())) {
        const { state, leader, zxid, electionEpoch, peerEpoch, config = '', pendingConfig = '' } = notifications.get(direction)!;
        to.number(direction);
        to.text(state);
        for (const number of [leader, zxid, electionEpoch, peerEpoch]) to.number(number);
        for (const text of [config, pendingConfig]) to.text(text);
      }
    }
  }
}
