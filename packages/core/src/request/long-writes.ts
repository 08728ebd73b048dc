/**
 * Writes that take long, and wait until less is proposed and not yet applied, or at a learner until less of them is on its way to the leader. What
 * stands in the order of all writes has to be applied before anything behind it, so a short write waits for no more than that, and for the one
 * long write that is being judged.
 *
 * Those of an address take turns with those of other addresses, and those that learners pass on take turns by session, since a leader does
 * not know the address: who has had least goes first. What a session asks for behind a long write waits with it: of a client of this server as
 * early frames of its connection, of another server's here.
 */
import { type SessionId, sessionIdOf } from '@tskeeper/protocol';
import { Cnxn } from '../cnxn/cnxn.ts';
import { Fifo } from '../fifo.ts';
import { FairQueue, Turn } from './fair-queue.ts';
import type { ForwardedRequest } from './proposal.ts';

/** Of those that do not wait at the moment so many are remembered, with what they have had. Behind that all of them begin as newcomers. */
const idleMax = 1024;

/** So many connections of an address keep their turn when they have gone: nothing else bounds what they hold. */
const goneMax = 8;

/** A request that a learner has passed on, of a session that had moved so often by then. `units` is 0 where it is a short one. */
export interface WaitingRequest {
  readonly request: ForwardedRequest;
  readonly moves: number;
  readonly units: number;
}

class Party {
  readonly turn = new Turn();
  /** Of an address: connections whose first early frame is a long write, in the order they came. */
  readonly cnxns = new Map<Cnxn, number>();
  /** Those of them that have gone. */
  readonly gone = new Set<Cnxn>();
  /** Of a session: a long write, and what came behind it. */
  readonly requests = new Fifo<WaitingRequest>();
  /** Short ones of it are on their way, and nothing may overtake them. */
  isResting = false;
}

/** Whose turn it is: a connection, or a request and the short ones behind it. What follows those waits until `resume`. */
export type LongWrite =
  | { readonly kind: 'cnxn'; readonly cnxn: Cnxn }
  | { readonly kind: 'forwarded'; readonly requests: readonly WaitingRequest[] };

export class LongWrites {
  readonly #turns = new FairQueue<Party>();
  /** By the name of the address, or the id of the session. */
  readonly #parties = new Map<string | SessionId, Party>();
  /** Requests that learners have passed on. */
  #requests = 0;

  /** Whether no long write waits. */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** Addresses and sessions of which is known what they have had. */
  get known(): number {
    return this.#parties.size;
  }

  /** A long write did not have to wait. */
  begun(by: Cnxn | ForwardedRequest, units: number): void {
    const key = by instanceof Cnxn ? by.address.name : sessionIdOf(by.sessionHigh, by.sessionLow);
    this.#turns.charge(this.#party(key), units);
  }

  push(cnxn: Cnxn, units: number): void {
    const party = this.#party(cnxn.address.name);
    party.cnxns.set(cnxn, units);
    this.#turns.push(party);
  }

  /** Whether something of a session waits here, so that what it asks for next has to wait behind it. */
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

  /** What followed the long write of a session has been let in. */
  resume(high: number, low: number): void {
    const party = this.#parties.get(sessionIdOf(high, low));
    if (party === undefined) return;
    party.isResting = false;
    if (party.requests.length > 0) this.#turns.push(party);
  }

  /** The other side of a connection has gone. Returns whether its long write keeps its turn. */
  keeps(cnxn: Cnxn): boolean {
    const party = this.#parties.get(cnxn.address.name);
    if (party === undefined || party.gone.size >= goneMax || !party.cnxns.has(cnxn)) return false;
    party.gone.add(cnxn);
    return true;
  }

  /** We have given the connection up, or it cannot keep its turn. */
  remove(cnxn: Cnxn): void {
    if (this.isEmpty) return;
    const party = this.#parties.get(cnxn.address.name);
    if (party?.cnxns.delete(cnxn) === true && party.cnxns.size === 0) this.#turns.remove(party);
  }

  take(): LongWrite {
    const party = this.#turns.take();
    if (party === undefined) throw new Error('no long write waits');
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
