/**
 * In which order servers are tried: shuffled once, so that clients spread over an ensemble whatever order its servers are written in, and
 * then round and round, so that a client that has lost one server goes on to another.
 *
 * The list can be changed under a living client. Then each client decides for itself, by chance, whether it moves, so that all of them
 * together are spread evenly over the new list though none knows of another (the rule of ZOOKEEPER-1355, as in ZooKeeper's own client).
 * Servers are told apart by host and port as they are written: no look-up decides whether two names are one server.
 */
import type { Random } from '../clock.ts';
import { shuffled, uniform } from '../clock.ts';
import type { ServerAddress } from '../transport.ts';

/** A client on its way to its place in a new list: by chance, and each server once. */
interface Move {
  /** Not in the list before. */
  readonly fresh: ServerAddress[];
  readonly kept: ServerAddress[];
  /** Of choosing a fresh one, for as long as there are both. */
  readonly freshChance: number;
}

export class HostList {
  readonly #random: Random;
  /** Groups are tried one after the other, servers in a group in turn. One group, but for the priorities of an SRV name. */
  #groups: readonly (readonly ServerAddress[])[];
  #order: readonly ServerAddress[];
  #at = -1;
  /** Attempts since one succeeded, or since the list was changed. */
  #tried = 0;
  #move: Move | undefined;

  /** May be empty until `renew` is called. */
  constructor(servers: readonly ServerAddress[], random: Random) {
    this.#random = random;
    this.#groups = [shuffled(random, distinct(servers))];
    this.#order = this.#groups.flat();
  }

  get size(): number {
    return this.#order.length;
  }

  /** In the order in which they are tried, from the next one on unless the client is moving. */
  get servers(): readonly ServerAddress[] {
    const next = this.#at + 1;
    return [...this.#order.slice(next), ...this.#order.slice(0, next)];
  }

  has(server: ServerAddress): boolean {
    return includes(this.#order, server);
  }

  /** Not to be asked of an empty list. */
  next(): ServerAddress {
    this.#tried++;
    return this.#nextOfMove() ?? this.#nextInTurn();
  }

  #nextInTurn(): ServerAddress {
    this.#at = (this.#at + 1) % this.#order.length;
    return this.#order[this.#at]!;
  }

  #nextOfMove(): ServerAddress | undefined {
    const move = this.#move;
    if (move === undefined) return undefined;
    const { fresh, kept, freshChance } = move;
    const isFresh = uniform(this.#random, 1) < freshChance;
    const server = (isFresh ? fresh.pop() : kept.pop()) ?? fresh.pop() ?? kept.pop();
    // All have been tried in vain: from here on in turn.
    if (server === undefined) this.#move = undefined;
    return server;
  }

  /** An attempt at this server has succeeded. When it is lost, the next one of its group comes first. */
  connected(to: ServerAddress): void {
    this.#tried = 0;
    this.#move = undefined;
    this.#groups = this.#groups.map((group) => {
      const at = group.findIndex((server) => isSame(server, to));
      return [...group.slice(at + 1), ...group.slice(0, at + 1)];
    });
    this.#order = this.#groups.flat();
    this.#at = -1;
  }

  /** Whether the attempt that was made last was the last of a round: each server has been tried in vain. */
  get roundOver(): boolean {
    return this.size === 0 || (this.#tried > 0 && this.#tried % this.size === 0);
  }

  /** Another list in place of this one, as a look-up gave it: groups are tried in this order, and servers within a group. Nobody moves. */
  renew(groups: readonly (readonly ServerAddress[])[]): void {
    this.#groups = groups;
    this.#order = groups.flat();
    this.#begin();
  }

  /**
   * Another list in place of this one. `inUse` is the server that the client is connected to, or is trying to connect to; undefined when
   * it is between two attempts, and then it counts as a client of the server that would have been next. Returns whether it has to go to
   * another server; if so, `next` says to which.
   *
   * With S servers before and N now, of which K stay: every server had 1/S of the clients and is to have 1/N. When N is larger, a client of
   * a server that stays leaves it with the chance 1 - S/N, and all who leave, or have to, go to the N - K fresh ones. Else nobody leaves a
   * server that stays; of the (S - K)/S who have to, so many go to the K that these come to 1/N each: K(S - N) / N(S - K).
   */
  update(servers: readonly ServerAddress[], inUse: ServerAddress | undefined): boolean {
    const before = this.#order;
    const place = inUse ?? this.#upcoming();
    const now = shuffled(this.#random, distinct(servers));
    const isTrying = inUse !== undefined && this.#tried > 0;
    this.#groups = [now];
    this.#order = now;
    this.#begin();
    if (place === undefined) return false;

    const grows = now.length > before.length;
    const stays = includes(now, place) && (!grows || uniform(this.#random, 1) >= 1 - before.length / now.length);
    if (stays) {
      const others = now.filter((server) => !isSame(server, place));
      this.#order = inUse === undefined ? [place, ...others] : [...others, place];
      this.#groups = [this.#order];
      // What is being tried is a part of the round that begins here.
      if (isTrying) this.#tried = 1;
      return false;
    }
    const kept = now.filter((server) => includes(before, server));
    const fresh = now.filter((server) => !includes(before, server));
    const [S, N, K] = [before.length, now.length, kept.length];
    this.#move = { fresh, kept, freshChance: grows ? 1 : 1 - (K * (S - N)) / (N * (S - K)) };
    return true;
  }

  #begin(): void {
    this.#at = -1;
    this.#tried = 0;
    this.#move = undefined;
  }

  /** What `next` would give. */
  #upcoming(): ServerAddress | undefined {
    return this.#nextOfMove() ?? this.#order[(this.#at + 1) % this.#order.length];
  }
}

function isSame(a: ServerAddress, b: ServerAddress): boolean {
  return a.port === b.port && a.host === b.host;
}

function includes(servers: readonly ServerAddress[], server: ServerAddress): boolean {
  return servers.some((each) => isSame(each, server));
}

/** A server that is named twice is one server. */
function distinct(servers: readonly ServerAddress[]): ServerAddress[] {
  return servers.filter((server, at) => servers.findIndex((each) => isSame(each, server)) === at);
}
