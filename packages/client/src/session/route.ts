/**
 * The target of the next attempt to connect: iterates over the servers of the list and over all
 * addresses of each name, and first over the servers of an SRV name if one is given instead of a
 * list.
 *
 *     SRV name ──look-up──> servers ──next──> name ──look-up──> addresses ──next──> dial
 *        ^                     ^ │                                 ^ │
 *        └─────all failed──────┘ └────────────all failed───────────┘ └─ failed: the next one
 */
import { type Random, shuffled } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import type { DialledAddress, ServerAddress, ServiceRecord } from '../transport.ts';
import type { HostList } from './host-list.ts';
import { inServiceOrder } from './service.ts';

/** The next step of an attempt. After a look-up, `found...` returns the following step. */
export type Step =
  | { readonly kind: 'resolveService'; readonly name: string }
  | { readonly kind: 'resolve'; readonly host: string }
  | { readonly kind: 'dial'; readonly address: DialledAddress };

export interface RouteOptions {
  /** The SRV name, until a list replaces it; undefined if a list is given. */
  readonly service: string | undefined;
  /** Whether the client resolves names; otherwise the transport receives them as they are. */
  readonly resolves: boolean;
}

export class Route {
  readonly #hosts: HostList;
  readonly #random: Random;
  readonly #resolves: boolean;
  #server: ServerAddress | undefined;
  /**
   * The address of the server that is dialled, or was last; `#addressesLeft` are the ones to dial
   * if it fails.
   */
  #address: string | undefined;
  #addressesLeft: string[] = [];
  #addressCount = 1;
  /** The address of a lost connection, which is tried last among those of its name. */
  #addressLost: string | undefined;
  /** The SRV name, and whether to resolve it before the next attempt. */
  #service: string | undefined;
  #serviceDue: boolean;
  /** A server to dial next, out of turn. */
  #shortcut: { readonly server: ServerAddress; readonly address: string } | undefined;

  constructor(hosts: HostList, random: Random, { service, resolves }: RouteOptions) {
    this.#hosts = hosts;
    this.#random = random;
    this.#resolves = resolves;
    this.#service = service;
    this.#serviceDue = service !== undefined;
  }

  // --- State

  /** The server that is tried, or was last; undefined while an SRV name is resolved. */
  get server(): ServerAddress | undefined {
    return this.#server;
  }

  /** In the order in which they are tried. Empty until an SRV name has been resolved. */
  get servers(): readonly ServerAddress[] {
    return this.#hosts.servers;
  }

  /**
   * The number of servers, and of addresses of the current one, that share the session's time; at
   * least 1.
   */
  get shares(): { readonly servers: number; readonly addresses: number } {
    return { servers: Math.max(1, this.#hosts.size), addresses: this.#addressCount };
  }

  /** The current name has other addresses. */
  get hasAddressesLeft(): boolean {
    return this.#addressesLeft.length > 0;
  }

  /** The next attempt is at a server that was found by a probe, not after the loss of one. */
  get hasShortcut(): boolean {
    return this.#shortcut !== undefined;
  }

  /** The current target in readable form. */
  get place(): string {
    if (this.#server === undefined) return `srv:${this.#service}`;
    const name = formatServer(this.#server);
    return this.#address === undefined || this.#address === this.#server.host ? name : `${name} at ${this.#address}`;
  }

  // --- Attempts

  next(): Step {
    if (this.#shortcut !== undefined) {
      this.#server = this.#shortcut.server;
      this.#addressesLeft = [this.#shortcut.address];
      this.#addressCount = 1;
      this.#shortcut = undefined;
    }
    if (this.#addressesLeft.length > 0) return this.#nextAddress();
    if (!this.#serviceDue) return this.#nextServer();
    this.#server = this.#address = undefined;
    this.#addressCount = 1;
    return { kind: 'resolveService', name: this.#service! };
  }

  #nextServer(): Step {
    this.#serviceDue = false;
    this.#server = this.#hosts.next();
    this.#addressCount = 1;
    if (this.#resolves) {
      this.#address = undefined;
      return { kind: 'resolve', host: this.#server.host };
    }
    this.#addressesLeft = [this.#server.host];
    return this.#nextAddress();
  }

  #nextAddress(): Step {
    this.#address = this.#addressesLeft.shift()!;
    const { host, port } = this.#server!;
    return { kind: 'dial', address: { host: this.#address, port, name: host } };
  }

  /**
   * Sets the addresses of the resolved name. Returns the next step; undefined if there are none.
   */
  foundAddresses(addresses: readonly string[]): Step | undefined {
    const inOrder = shuffled(this.#random, [...new Set(addresses)]);
    const lost = inOrder.indexOf(this.#addressLost ?? '');
    if (lost !== -1) inOrder.push(...inOrder.splice(lost, 1));
    this.#addressLost = undefined;
    if (inOrder.length === 0) return undefined;
    this.#addressesLeft = inOrder;
    this.#addressCount = inOrder.length;
    return this.#nextAddress();
  }

  /** Sets the servers of the SRV name. Returns the next step; undefined if there are none. */
  foundServers(records: readonly ServiceRecord[]): Step | undefined {
    const groups = inServiceOrder(records, this.#random);
    if (groups.length === 0) return undefined;
    this.#hosts.renew(groups);
    return this.#nextServer();
  }

  /**
   * The SRV name could not be resolved: continues with the previous list. Returns the next step;
   * undefined if the list is empty.
   */
  foundNoServers(): Step | undefined {
    return this.#hosts.size === 0 ? undefined : this.#nextServer();
  }

  /** The attempt has succeeded. */
  arrived(): void {
    this.#hosts.connected(this.#server!);
    this.#addressesLeft = [];
    this.#addressLost = this.#address;
  }

  /**
   * An attempt has failed. Returns whether all servers have failed; an SRV name is then resolved
   * again.
   */
  failed(): boolean {
    const isRoundOver = this.#addressesLeft.length === 0 && this.#hosts.roundOver;
    if (isRoundOver) this.#serviceDue = this.#service !== undefined;
    return isRoundOver;
  }

  // --- Changes

  /** A server to probe; does not count as an attempt. */
  another(): ServerAddress {
    const server = this.#hosts.next();
    this.#hosts.connected(server);
    return server;
  }

  /** Makes this server the next one. Returns whether it is still in the list. */
  turnTo(server: ServerAddress, address: string): boolean {
    if (!this.#hosts.has(server)) return false;
    this.#shortcut = { server, address };
    return true;
  }

  /**
   * Replaces the list, or the SRV name. Returns whether the current server must be left
   * (`HostList.update`); `isBetween`: there is no current server.
   */
  update(servers: readonly ServerAddress[], isBetween: boolean): boolean {
    const moves = this.#hosts.update(servers, isBetween ? undefined : this.#server);
    this.#service = undefined;
    this.#serviceDue = false;
    if (moves || (this.#shortcut !== undefined && !this.#hosts.has(this.#shortcut.server))) this.#shortcut = undefined;
    return moves;
  }

  /** The next attempt is at another server, even if this one has more addresses. */
  leaveServer(): void {
    this.#addressesLeft = [];
  }
}
