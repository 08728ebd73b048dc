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
import type { ResolvedAddress, ServerAddress, SrvRecord } from '../transport.ts';
import type { HostProvider } from './host-provider.ts';
import { orderSrvRecords } from './srv-order.ts';

/** The next step of an attempt. After a look-up, `found...` returns the following step. */
export type DialStep =
  | { readonly kind: 'resolveSrv'; readonly name: string }
  | { readonly kind: 'resolve'; readonly host: string }
  | { readonly kind: 'dial'; readonly address: ResolvedAddress };

export interface DialPlanOptions {
  /** The SRV name, until a list replaces it; undefined if a list is given. */
  readonly srvName: string | undefined;
  /** Whether the client resolves names; otherwise the transport receives them as they are. */
  readonly resolvesNames: boolean;
}

export class DialPlan {
  readonly #hostProvider: HostProvider;
  readonly #random: Random;
  readonly #resolvesNames: boolean;
  #server: ServerAddress | undefined;
  /**
   * The address of the server that is dialled, or was last; `#addressesToTry` are the ones to dial
   * if it fails.
   */
  #address: string | undefined;
  #addressesToTry: string[] = [];
  #addressCount = 1;
  /** The address of a lost connection, which is tried last among those of its name. */
  #lostAddress: string | undefined;
  /** The SRV name, and whether to resolve it before the next attempt. */
  #srvName: string | undefined;
  #isSrvLookupDue: boolean;
  /** A server to dial next, out of turn. */
  #preferred: { readonly server: ServerAddress; readonly address: string } | undefined;

  constructor(hosts: HostProvider, random: Random, { srvName, resolvesNames }: DialPlanOptions) {
    this.#hostProvider = hosts;
    this.#random = random;
    this.#resolvesNames = resolvesNames;
    this.#srvName = srvName;
    this.#isSrvLookupDue = srvName !== undefined;
  }

  // --- State

  /** The server that is tried, or was last; undefined while an SRV name is resolved. */
  get server(): ServerAddress | undefined {
    return this.#server;
  }

  /** In the order in which they are tried. Empty until an SRV name has been resolved. */
  get servers(): readonly ServerAddress[] {
    return this.#hostProvider.servers;
  }

  /**
   * The number of servers, and of addresses of the current one, that share the session's time; at
   * least 1.
   */
  get shares(): { readonly servers: number; readonly addresses: number } {
    return { servers: Math.max(1, this.#hostProvider.size), addresses: this.#addressCount };
  }

  /** The current name has other addresses. */
  get hasAddressesToTry(): boolean {
    return this.#addressesToTry.length > 0;
  }

  /** The next attempt is at a server that was found by a probe, not after the loss of one. */
  get hasPreferred(): boolean {
    return this.#preferred !== undefined;
  }

  /** The current target in readable form. */
  get description(): string {
    if (this.#server === undefined) return `srv:${this.#srvName}`;
    const name = formatServer(this.#server);
    return this.#address === undefined || this.#address === this.#server.host ? name : `${name} at ${this.#address}`;
  }

  // --- Attempts

  nextStep(): DialStep {
    if (this.#preferred !== undefined) {
      this.#server = this.#preferred.server;
      this.#addressesToTry = [this.#preferred.address];
      this.#addressCount = 1;
      this.#preferred = undefined;
    }
    if (this.#addressesToTry.length > 0) return this.#nextAddress();
    if (!this.#isSrvLookupDue) return this.#nextServer();
    this.#server = this.#address = undefined;
    this.#addressCount = 1;
    return { kind: 'resolveSrv', name: this.#srvName! };
  }

  #nextServer(): DialStep {
    this.#isSrvLookupDue = false;
    this.#server = this.#hostProvider.next();
    this.#addressCount = 1;
    if (this.#resolvesNames) {
      this.#address = undefined;
      return { kind: 'resolve', host: this.#server.host };
    }
    this.#addressesToTry = [this.#server.host];
    return this.#nextAddress();
  }

  #nextAddress(): DialStep {
    this.#address = this.#addressesToTry.shift()!;
    const { host, port } = this.#server!;
    return { kind: 'dial', address: { host: this.#address, port, name: host } };
  }

  /**
   * Sets the addresses of the resolved name. Returns the next step; undefined if there are none.
   */
  addressesResolved(addresses: readonly string[]): DialStep | undefined {
    const inOrder = shuffled(this.#random, [...new Set(addresses)]);
    const lost = inOrder.indexOf(this.#lostAddress ?? '');
    if (lost !== -1) inOrder.push(...inOrder.splice(lost, 1));
    this.#lostAddress = undefined;
    if (inOrder.length === 0) return undefined;
    this.#addressesToTry = inOrder;
    this.#addressCount = inOrder.length;
    return this.#nextAddress();
  }

  /** Sets the servers of the SRV name. Returns the next step; undefined if there are none. */
  srvResolved(records: readonly SrvRecord[]): DialStep | undefined {
    const groups = orderSrvRecords(records, this.#random);
    if (groups.length === 0) return undefined;
    this.#hostProvider.replace(groups);
    return this.#nextServer();
  }

  /**
   * The SRV name could not be resolved: continues with the previous list. Returns the next step;
   * undefined if the list is empty.
   */
  srvLookupFailed(): DialStep | undefined {
    return this.#hostProvider.size === 0 ? undefined : this.#nextServer();
  }

  /** The attempt has succeeded. */
  connected(): void {
    this.#hostProvider.onConnected(this.#server!);
    this.#addressesToTry = [];
    this.#lostAddress = this.#address;
  }

  /**
   * An attempt has failed. Returns whether all servers have failed; an SRV name is then resolved
   * again.
   */
  attemptFailed(): boolean {
    const isRoundOver = this.#addressesToTry.length === 0 && this.#hostProvider.isRoundOver;
    if (isRoundOver) this.#isSrvLookupDue = this.#srvName !== undefined;
    return isRoundOver;
  }

  // --- Changes

  /** A server to probe; does not count as an attempt. */
  nextToProbe(): ServerAddress {
    const server = this.#hostProvider.next();
    this.#hostProvider.onConnected(server);
    return server;
  }

  /** Makes this server the next one. Returns whether it is still in the list. */
  prefer(server: ServerAddress, address: string): boolean {
    if (!this.#hostProvider.has(server)) return false;
    this.#preferred = { server, address };
    return true;
  }

  /**
   * Replaces the list, or the SRV name. Returns whether the current server must be left
   * (`HostProvider.updateServerList`); `isBetweenAttempts`: there is no current server.
   */
  updateServerList(servers: readonly ServerAddress[], isBetweenAttempts: boolean): boolean {
    const moves = this.#hostProvider.updateServerList(servers, isBetweenAttempts ? undefined : this.#server);
    this.#srvName = undefined;
    this.#isSrvLookupDue = false;
    if (moves || (this.#preferred !== undefined && !this.#hostProvider.has(this.#preferred.server))) this.#preferred = undefined;
    return moves;
  }

  /** The next attempt is at another server, even if this one has more addresses. */
  skipServer(): void {
    this.#addressesToTry = [];
  }
}
