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
import type { SessionId } from '@tskeeper/protocol';
import { Cnxn } from '../cnxn/cnxn.ts';
import { Fifo } from '../fifo.ts';
import { idOfSession, type SessionRef } from '../session/session-ref.ts';
import { FairQueue, FairShare } from './fair-queue.ts';
import type { ForwardedRequest } from '../pending/proposal.ts';

/**
 * The usage of this many parties that do not wait is remembered. Beyond that, all of them start
 * again.
 */
const idleFlowsMax = 1024;

/**
 * At most this many connections of an address keep their turn after they have closed: no other
 * limit bounds their memory.
 */
const disconnectedCnxnsMax = 8;

/**
 * A request forwarded by a learner; `sessionMoves` is how often its session had moved by then.
 * `units` is 0 for a short request.
 */
export interface QueuedForward {
  readonly request: ForwardedRequest;
  readonly sessionMoves: number;
  readonly units: number;
}

class Flow {
  readonly share = new FairShare();
  /** For an address: connections whose first early frame is a long write, in order of arrival. */
  readonly cnxns = new Map<Cnxn, number>();
  /** Those of them that are closed. */
  readonly disconnected = new Set<Cnxn>();
  /** For a session: a long write and the requests after it. */
  readonly requests = new Fifo<QueuedForward>();
  /** Its short requests are being admitted, and nothing may overtake them. */
  isPaused = false;
}

/**
 * The party whose turn it is: a connection, or a request and the short ones after it. The requests
 * that follow wait until `resume`.
 */
export type LongWriteTurn =
  | { readonly kind: 'cnxn'; readonly cnxn: Cnxn }
  | { readonly kind: 'forwarded'; readonly requests: readonly QueuedForward[] };

export class LongWriteQueue {
  readonly #flowQueue = new FairQueue<Flow>();
  /** By the name of the address, or the id of the session. */
  readonly #flows = new Map<string | SessionId, Flow>();
  /** Number of waiting requests that learners forwarded. */
  #forwardedCount = 0;

  /** Whether no long write waits. */
  get isEmpty(): boolean {
    return this.#flowQueue.length === 0;
  }

  /** Number of addresses and sessions whose usage is remembered. */
  get flowCount(): number {
    return this.#flows.size;
  }

  /** A long write started without waiting. */
  chargeStarted(by: Cnxn | ForwardedRequest, units: number): void {
    const key = by instanceof Cnxn ? by.addressLoad.name : idOfSession(by);
    this.#flowQueue.charge(this.#flowOf(key), units);
  }

  push(cnxn: Cnxn, units: number): void {
    const party = this.#flowOf(cnxn.addressLoad.name);
    party.cnxns.set(cnxn, units);
    this.#flowQueue.push(party);
  }

  /** Whether a request of this session waits here, so that its next request must wait too. */
  hasRequestsOf(session: SessionRef): boolean {
    return this.#forwardedCount > 0 && (this.#flows.get(idOfSession(session))?.requests.length ?? 0) > 0;
  }

  pushForwarded(waiting: QueuedForward): void {
    const party = this.#flowOf(idOfSession(waiting.request));
    party.requests.push(waiting);
    this.#forwardedCount++;
    if (!party.isPaused) this.#flowQueue.push(party);
  }

  /** The short requests that followed the long write of a session have been admitted. */
  resume(session: SessionRef): void {
    const party = this.#flows.get(idOfSession(session));
    if (party === undefined) return;
    party.isPaused = false;
    if (party.requests.length > 0) this.#flowQueue.push(party);
  }

  /** The client of a connection has disconnected. Returns whether its long write keeps its turn. */
  keepsTurn(cnxn: Cnxn): boolean {
    const party = this.#flows.get(cnxn.addressLoad.name);
    if (party === undefined || party.disconnected.size >= disconnectedCnxnsMax || !party.cnxns.has(cnxn)) return false;
    party.disconnected.add(cnxn);
    return true;
  }

  /** The server has closed the connection, or it cannot keep its turn. */
  remove(cnxn: Cnxn): void {
    if (this.isEmpty) return;
    const party = this.#flows.get(cnxn.addressLoad.name);
    if (party?.cnxns.delete(cnxn) === true && party.cnxns.size === 0) this.#flowQueue.remove(party);
  }

  take(): LongWriteTurn {
    const party = this.#flowQueue.take();
    if (party === undefined) throw new Error('take() was called without a waiting long write');
    for (const [cnxn, units] of party.cnxns) {
      party.cnxns.delete(cnxn);
      party.disconnected.delete(cnxn);
      this.#flowQueue.charge(party, units);
      if (party.cnxns.size > 0) this.#flowQueue.push(party);
      return { kind: 'cnxn', cnxn };
    }
    const first = party.requests.shift()!;
    this.#flowQueue.charge(party, first.units);
    const requests = [first];
    while (party.requests.peek()?.units === 0) requests.push(party.requests.shift()!);
    this.#forwardedCount -= requests.length;
    party.isPaused = requests.length > 1;
    if (!party.isPaused && party.requests.length > 0) this.#flowQueue.push(party);
    return { kind: 'forwarded', requests };
  }

  #flowOf(key: string | SessionId): Flow {
    let party = this.#flows.get(key);
    if (party === undefined) {
      if (this.#flows.size >= idleFlowsMax + this.#flowQueue.length) this.#dropIdleFlows();
      this.#flows.set(key, (party = new Flow()));
    }
    return party;
  }

  #dropIdleFlows(): void {
    for (const [key, { share, isPaused }] of this.#flows) if (share.heapIndex === -1 && !isPaused) this.#flows.delete(key);
  }
}
