/**
 * Which servers of a small world reach each other. A cut between two servers lasts until it heals;
 * connection attempts over it get no answer, or are refused. A set of servers is a mask, with one
 * bit for each sid.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { ascending } from './ascending.ts';
import type { SmallServer } from './small-server.ts';

type Cut = 'unanswered' | 'refused';

function maskOf(...sids: Sid[]): number {
  return sids.reduce((mask, sid) => mask | (1 << (sid - 1)), 0);
}

export class SmallNetwork {
  readonly #servers: readonly SmallServer[];
  /** By mask of a pair: whether a connection attempt is refused or gets no answer. */
  readonly #cuts = new Map<number, Cut>();

  constructor(servers: readonly SmallServer[]) {
    this.#servers = servers;
  }

  members(mask: number): SmallServer[] {
    return this.#servers.filter(({ sid }) => (mask & maskOf(sid)) !== 0);
  }

  cut(a: Sid, b: Sid, how: Cut): void {
    this.#cuts.set(maskOf(a, b), how);
  }

  heal(a: Sid, b: Sid): void {
    this.#cuts.delete(maskOf(a, b));
  }

  healAll(): void {
    this.#cuts.clear();
  }

  /** The pairs that are cut, the oldest cut first. */
  *cutPairs(): Iterable<readonly [Sid, Sid]> {
    for (const mask of this.#cuts.keys()) {
      const [a, b] = this.members(mask);
      yield [a!.sid, b!.sid];
    }
  }

  cutBetween(a: Sid, b: Sid): Cut | undefined {
    return this.#cuts.get(maskOf(a, b));
  }

  isCut(a: Sid, b: Sid): boolean {
    return this.#cuts.has(maskOf(a, b));
  }

  /** Whether all of these servers reach each other, if they are up. */
  isWhole(mask: number): boolean {
    for (const cut of this.#cuts.keys()) if ((cut & mask) === cut) return false;
    return true;
  }

  /** Whether the host of `to` answers, but refuses connections: nothing listens there. */
  refuses(from: Sid, to: Sid): boolean {
    const cut = this.cutBetween(from, to);
    return cut === 'refused' || (cut === undefined && this.#servers[to - 1]!.peer === undefined);
  }

  /** Whether another server is up that gives this one no answer. */
  hasUnreachablePeer(sid: Sid): boolean {
    return this.#servers.some((other) => other.sid !== sid && other.peer !== undefined && this.cutBetween(sid, other.sid) === 'unanswered');
  }

  fingerprint(to: Fingerprint): void {
    for (const mask of ascending(this.#cuts.keys())) {
      to.number(mask);
      to.text(this.#cuts.get(mask)!);
    }
  }
}
