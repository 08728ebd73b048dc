/**
 * The order in which servers are tried. It is shuffled once, so that clients spread over an
 * ensemble whatever the order in the connect string; then it is used round robin, so that a client
 * that has lost one server tries another.
 *
 * The list can change while a client is open. Then each client decides at random whether it moves,
 * so that all clients together spread evenly over the new list without knowing each other (the rule
 * of ZOOKEEPER-1355, as in ZooKeeper's own client). Servers are compared by host and port as text,
 * without name resolution.
 */
import type { Random } from '../clock.ts';
import { shuffled, uniform } from '../clock.ts';
import type { ServerAddress } from '../transport.ts';

/** A client that moves to a server of a new list: in random order, and each server once. */
interface Rebalancing {
  /** Not in the list before. */
  readonly added: ServerAddress[];
  readonly retained: ServerAddress[];
  /** Probability of choosing a fresh server while there are both. */
  readonly addedProbability: number;
}

export class HostProvider {
  readonly #random: Random;
  /**
   * Groups are tried one after the other, and servers within a group in turn. There is one group,
   * except for the priorities of an SRV name.
   */
  #groups: readonly (readonly ServerAddress[])[];
  #order: readonly ServerAddress[];
  #index = -1;
  /** Attempts since the last success, or since the list changed. */
  #attempts = 0;
  #rebalancing: Rebalancing | undefined;

  /** The list may be empty until `replace` is called. */
  constructor(servers: readonly ServerAddress[], random: Random) {
    this.#random = random;
    this.#groups = [shuffled(random, distinct(servers))];
    this.#order = this.#groups.flat();
  }

  get size(): number {
    return this.#order.length;
  }

  /**
   * In the order in which they are tried, starting with the next one unless the client is moving.
   */
  get servers(): readonly ServerAddress[] {
    const next = this.#index + 1;
    return [...this.#order.slice(next), ...this.#order.slice(0, next)];
  }

  has(server: ServerAddress): boolean {
    return includes(this.#order, server);
  }

  /** The list must not be empty. */
  next(): ServerAddress {
    this.#attempts++;
    return this.#nextWhileRebalancing() ?? this.#nextInTurn();
  }

  #nextInTurn(): ServerAddress {
    this.#index = (this.#index + 1) % this.#order.length;
    return this.#order[this.#index]!;
  }

  #nextWhileRebalancing(): ServerAddress | undefined {
    const move = this.#rebalancing;
    if (move === undefined) return undefined;
    const { added, retained, addedProbability } = move;
    const isFresh = uniform(this.#random, 1) < addedProbability;
    const server = (isFresh ? added.pop() : retained.pop()) ?? added.pop() ?? retained.pop();
    // All have failed: continue in turn.
    if (server === undefined) this.#rebalancing = undefined;
    return server;
  }

  /**
   * An attempt at this server has succeeded. After it is lost, the next server of its group is
   * tried first.
   */
  onConnected(to: ServerAddress): void {
    this.#attempts = 0;
    this.#rebalancing = undefined;
    this.#groups = this.#groups.map((group) => {
      const at = group.findIndex((server) => isSameServer(server, to));
      return [...group.slice(at + 1), ...group.slice(0, at + 1)];
    });
    this.#order = this.#groups.flat();
    this.#index = -1;
  }

  /** Whether the last attempt completed a round: each server has been tried without success. */
  get isRoundOver(): boolean {
    return this.size === 0 || (this.#attempts > 0 && this.#attempts % this.size === 0);
  }

  /**
   * Replaces the list with the result of a look-up: groups, and servers within a group, are tried
   * in this order. The client does not move.
   */
  replace(groups: readonly (readonly ServerAddress[])[]): void {
    this.#groups = groups;
    this.#order = groups.flat();
    this.#reset();
  }

  /**
   * Replaces the list. `inUse` is the server that the client is connected to, or tries to connect
   * to; undefined between two attempts, when the client counts as one of the server that would be
   * next. Returns whether the client must go to another server; then `next` returns it.
   *
   * With S servers before and N now, of which K stay: every server had 1/S of the clients and
   * should have 1/N. If N is larger, a client of a staying server leaves it with probability 1 -
   * S/N, and all clients that leave, by chance or because their server is gone, go to the N - K
   * fresh servers. Otherwise no client leaves a staying server; of the (S - K)/S that must leave,
   * the fraction K(S - N) / N(S - K) goes to the K staying servers, which brings these to 1/N each.
   */
  updateServerList(servers: readonly ServerAddress[], inUse: ServerAddress | undefined): boolean {
    const before = this.#order;
    const current = inUse ?? this.#peekNext();
    const now = shuffled(this.#random, distinct(servers));
    const isTrying = inUse !== undefined && this.#attempts > 0;
    this.#groups = [now];
    this.#order = now;
    this.#reset();
    if (current === undefined) return false;

    const grows = now.length > before.length;
    const stays = includes(now, current) && (!grows || uniform(this.#random, 1) >= 1 - before.length / now.length);
    if (stays) {
      const others = now.filter((server) => !isSameServer(server, current));
      this.#order = inUse === undefined ? [current, ...others] : [...others, current];
      this.#groups = [this.#order];
      // The attempt in progress is part of the new round.
      if (isTrying) this.#attempts = 1;
      return false;
    }
    const retained = now.filter((server) => includes(before, server));
    const added = now.filter((server) => !includes(before, server));
    const [S, N, K] = [before.length, now.length, retained.length];
    this.#rebalancing = { added, retained, addedProbability: grows ? 1 : 1 - (K * (S - N)) / (N * (S - K)) };
    return true;
  }

  #reset(): void {
    this.#index = -1;
    this.#attempts = 0;
    this.#rebalancing = undefined;
  }

  /** The server that `next` would return. */
  #peekNext(): ServerAddress | undefined {
    return this.#nextWhileRebalancing() ?? this.#order[(this.#index + 1) % this.#order.length];
  }
}

function isSameServer(a: ServerAddress, b: ServerAddress): boolean {
  return a.port === b.port && a.host === b.host;
}

function includes(servers: readonly ServerAddress[], server: ServerAddress): boolean {
  return servers.some((each) => isSameServer(each, server));
}

/** Removes duplicates. */
function distinct(servers: readonly ServerAddress[]): ServerAddress[] {
  return servers.filter((server, at) => servers.findIndex((each) => isSameServer(each, server)) === at);
}
