/**
 * Writes that take long. They wait until fewer units are proposed and not yet applied, or at a
 * learner until fewer bytes are on the way to the leader. A txn must be applied before any later
 * one, so a short write waits for no more than those units and the one long write being validated.
 *
 * Addresses take turns; writes that learners forward take turns by session, since a leader does not
 * know the address. The party with the least usage is first. Requests that a session sends after a
 * long write wait with it: those of a client of this server as early frames of its connection,
 * those of other servers here.
 */
import { type SessionId, sessionIdOf } from '@tskeeper/protocol';
import { Cnxn } from '../cnxn/cnxn.ts';
import { Fifo } from '../fifo.ts';
import { FairQueue, Turn } from './fair-queue.ts';
import type { ForwardedRequest } from './proposal.ts';

/**
 * The usage of this many parties that do not wait is remembered. Beyond that, all of them start
 * again.
 */
const idleMax = 1024;

/**
 * At most this many connections of an address keep their turn after they have closed: no other
 * limit bounds their memory.
 */
const goneMax = 8;

/**
 * A request forwarded by a learner; `moves` is how often its session had moved by then. `units` is
 * 0 for a short request.
 */
export interface WaitingRequest {
  readonly request: ForwardedRequest;
  readonly moves: number;
  readonly units: number;
}

class Party {
  readonly turn = new Turn();
  /** For an address: connections whose first early frame is a long write, in order of arrival. */
  readonly cnxns = new Map<Cnxn, number>();
  /** Those of them that are closed. */
  readonly gone = new Set<Cnxn>();
  /** For a session: a long write and the requests after it. */
  readonly requests = new Fifo<WaitingRequest>();
  /** Its short requests are being admitted, and nothing may overtake them. */
  isResting = false;
}

/**
 * The party whose turn it is: a connection, or a request and the short ones after it. The requests
 * that follow wait until `resume`.
 */
export type LongWrite =
  | { readonly kind: 'cnxn'; readonly cnxn: Cnxn }
  | { readonly kind: 'forwarded'; readonly requests: readonly WaitingRequest[] };

export class LongWrites {
  readonly #turns = new FairQueue<Party>();
  /** By the name of the address, or the id of the session. */
  readonly #parties = new Map<string | SessionId, Party>();
  /** Number of waiting requests that learners forwarded. */
  #requests = 0;

  /** Whether no long write waits. */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** Number of addresses and sessions whose usage is remembered. */
  get known(): number {
    return this.#parties.size;
  }

  /** A long write started without waiting. */
  begun(by: Cnxn | ForwardedRequest, units: number): void {
    const key = by instanceof Cnxn ? by.address.name : sessionIdOf(by.sessionHigh, by.sessionLow);
    this.#turns.charge(this.#party(key), units);
  }

  push(cnxn: Cnxn, units: number): void {
    const party = this.#party(cnxn.address.name);
    party.cnxns.set(cnxn, units);
    this.#turns.push(party);
  }

  /** Whether a request of this session waits here, so that its next request must wait too. */
  hasRequestsOf(high: number, low: number): boolean {
    return this.#requests > 0 && (this.#parties.get(sessionIdOf(high, low))?.requests.length ?? 0) > 0;
  }

  pushForwarded(waiting: WaitingRequest): void {
    const { sessionHigh, sessionLow } = waiting.request;
    const party = this.#party(sessionIdOf(sessionHigh, sessionLow));
    party.requests.push(waiting);
    this.#requests++;
    if (!party.isResting) this.#turns.push(party);
  }

  /** The short requests that followed the long write of a session have been admitted. */
  resume(high: number, low: number): void {
    const party = this.#parties.get(sessionIdOf(high, low));
    if (party === undefined) return;
    party.isResting = false;
    if (party.requests.length > 0) this.#turns.push(party);
  }

  /** The client of a connection has disconnected. Returns whether its long write keeps its turn. */
  keeps(cnxn: Cnxn): boolean {
    const party = this.#parties.get(cnxn.address.name);
    if (party === undefined || party.gone.size >= goneMax || !party.cnxns.has(cnxn)) return false;
    party.gone.add(cnxn);
    return true;
  }

  /** The server has closed the connection, or it cannot keep its turn. */
  remove(cnxn: Cnxn): void {
    if (this.isEmpty) return;
    const party = this.#parties.get(cnxn.address.name);
    if (party?.cnxns.delete(cnxn) === true && party.cnxns.size === 0) this.#turns.remove(party);
  }

  take(): LongWrite {
    const party = this.#turns.take();
    if (party === undefined) throw new Error('take() was called without a waiting long write');
    for (const [cnxn, units] of party.cnxns) {
      party.cnxns.delete(cnxn);
      party.gone.delete(cnxn);
      this.#turns.charge(party, units);
      if (party.cnxns.size > 0) this.#turns.push(party);
      return { kind: 'cnxn', cnxn };
    }
    const first = party.requests.shift()!;
    this.#turns.charge(party, first.units);
    const requests = [first];
    while (party.requests.peek()?.units === 0) requests.push(party.requests.shift()!);
    this.#requests -= requests.length;
    party.isResting = requests.length > 1;
    if (!party.isResting && party.requests.length > 0) this.#turns.push(party);
    return { kind: 'forwarded', requests };
  }

  #party(key: string | SessionId): Party {
    let party = this.#parties.get(key);
    if (party === undefined) {
      if (this.#parties.size >= idleMax + this.#turns.length) this.#forgetIdle();
      this.#parties.set(key, (party = new Party()));
    }
    return party;
  }

  #forgetIdle(): void {
    for (const [key, { turn, isResting }] of this.#parties) if (turn.place === -1 && !isResting) this.#parties.delete(key);
  }
}
