/**
 * Where the next attempt at a connection goes: over the servers of the list, over all addresses of each name, and ahead of that to the servers of an SRV
 * name, where one stands for the list.
 *
 *     SRV name ──look-up──> servers ──next──> name ──look-up──> addresses ──next──> dial
 *        ^                     ^ │                                 ^ │
 *        └───all in vain───────┘ └──────────────all in vain────────┘ └─ in vain: the next one
 */
import { type Random, shuffled } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import type { DialledAddress, ServerAddress, ServiceRecord } from '../transport.ts';
import type { HostList } from './host-list.ts';
import { inServiceOrder } from './service.ts';

/** What is to be done for an attempt. A look-up is followed by `found...` and another step. */
export type Step =
  | { readonly kind: 'resolveService'; readonly name: string }
  | { readonly kind: 'resolve'; readonly host: string }
  | { readonly kind: 'dial'; readonly address: DialledAddress };

export interface RouteOptions {
  /** The SRV name whose servers are meant, until others are named; undefined when the list is given. */
  readonly service: string | undefined;
  /** Whether names are looked up here; else they are dialled as they are. */
  readonly resolves: boolean;
}

export class Route {
  readonly #hosts: HostList;
  readonly #random: Random;
  readonly #resolves: boolean;
  #server: ServerAddress | undefined;
  /** Of the server: the one that is dialled, or was last, and those that are to be dialled if it fails. */
  #address: string | undefined;
  #addressesLeft: string[] = [];
  #addressCount = 1;
  /** Of a connection that was lost: the last to be tried of its name. */
  #addressLost: string | undefined;
  /** Whether, and by which name, the list itself is to be looked up before the next attempt. */
  #service: string | undefined;
  #serviceDue: boolean;
  /** To be dialled next, out of turn. */
  #shortcut: { readonly server: ServerAddress; readonly address: string } | undefined;

  constructor(hosts: HostList, random: Random, { service, resolves }: RouteOptions) {
    this.#hosts = hosts;
    this.#random = random;
    this.#resolves = resolves;
    this.#service = service;
    this.#serviceDue = service !== undefined;
  }

  // --- What others may know

  /** The server that is tried, or was last; undefined while an SRV name is looked up. */
  get server(): ServerAddress | undefined {
    return this.#server;
  }

  /** In the order in which they are tried in turn. Empty while an SRV name has not been looked up. */
  get servers(): readonly ServerAddress[] {
    return this.#hosts.servers;
  }

  /** How many servers, and how many addresses of this one, share the time of the session; at least 1. */
  get shares(): { readonly servers: number; readonly addresses: number } {
    return { servers: Math.max(1, this.#hosts.size), addresses: this.#addressCount };
  }

  /** The name that is tried has other addresses. */
  get hasAddressesLeft(): boolean {
    return this.#addressesLeft.length > 0;
  }

  /** The next attempt is at a server that was found by looking rather than by losing one. */
  get hasShortcut(): boolean {
    return this.#shortcut !== undefined;
  }

  /** What is tried, for people to read. */
  get place(): string {
    if (this.#server === undefined) return `srv:${this.#service}`;
    const name = formatServer(this.#server);
    return this.#address === undefined || this.#address === this.#server.host ? name : `${name} at ${this.#address}`;
  }

  // --- The way

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

  /** The name that was looked up has these. The step that follows; undefined when there are none. */
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

  /** The SRV name has these. The step that follows; undefined when there are none. */
  foundServers(records: readonly ServiceRecord[]): Step | undefined {
    const groups = inServiceOrder(records, this.#random);
    if (groups.length === 0) return undefined;
    this.#hosts.renew(groups);
    return this.#nextServer();
  }

  /** The SRV name could not be looked up. The list as it was is better than none: the step that follows; undefined when there is none. */
  foundNoServers(): Step | undefined {
    return this.#hosts.size === 0 ? undefined : this.#nextServer();
  }

  /** The attempt has succeeded. */
  arrived(): void {
    this.#hosts.connected(this.#server!);
    this.#addressesLeft = [];
    this.#addressLost = this.#address;
  }

  /** An attempt was in vain. Returns whether all servers have been tried in vain; an SRV name is then looked up again. */
  failed(): boolean {
    const isRoundOver = this.#addressesLeft.length === 0 && this.#hosts.roundOver;
    if (isRoundOver) this.#serviceDue = this.#service !== undefined;
    return isRoundOver;
  }

  // --- Other ways

  /** A server to look at apart from the way; no attempt, and not counted as one. */
  another(): ServerAddress {
    const server = this.#hosts.next();
    this.#hosts.connected(server);
    return server;
  }

  /** Goes there next. Returns whether that server is still in the list. */
  turnTo(server: ServerAddress, address: string): boolean {
    if (!this.#hosts.has(server)) return false;
    this.#shortcut = { server, address };
    return true;
  }

  /**
   * Goes by another list, also in place of an SRV name. Returns whether the present server is to be left (`HostList.update`); `isBetween`: there is none.
   */
  update(servers: readonly ServerAddress[], isBetween: boolean): boolean {
    const moves = this.#hosts.update(servers, isBetween ? undefined : this.#server);
    this.#service = undefined;
    this.#serviceDue = false;
    if (moves || (this.#shortcut !== undefined && !this.#hosts.has(this.#shortcut.server))) this.#shortcut = undefined;
    return moves;
  }

  /** The next attempt is at another server, whatever addresses this one has. */
  leaveServer(): void {
    this.#addressesLeft = [];
  }
}
