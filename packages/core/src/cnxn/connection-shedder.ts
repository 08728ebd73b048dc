/**
 * Closes a share of the connections on request of an operator, so that their clients connect to
 * other servers: after a rolling restart the server that was restarted last has almost none, and
 * the others have too many. Sessions move with their clients, except local ones, which end.
 *
 * Each connection has the same chance (selection sampling, with a cursor: no list is built). They
 * are closed a few at a time, since each client then makes a handshake somewhere. A connection is
 * read no more once it is chosen, and is closed when it has been sent all replies that it waits for.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { msUntil } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { Random } from '../random.ts';
import type { Cnxn } from './cnxn.ts';
import type { CnxnTable } from './cnxn-table.ts';

/** 500 connections a second: a handshake costs a server about 50 µs. */
const intervalMs: Millis = 20;
const closedPerIntervalMax = 10;
const visitedPerIntervalMax = 2000;
/** How long a chosen connection has for its last replies, as a write needs a quorum's disks. */
const lastRepliesMs: Millis = 2000;

export class ConnectionShedder {
  readonly #cnxns: CnxnTable;
  readonly #random: Random;
  readonly #observer: Observer;
  #cursor: Iterator<Cnxn> | undefined;
  /** Connections that the cursor has not visited, and how many of them are to be closed. */
  #unvisited = 0;
  #wanted = 0;
  #except: Cnxn | undefined;
  #nextMs: Millis = 0;
  /** Chosen ones that wait for replies, and until when. */
  readonly #leaving = new Map<Cnxn, Millis>();

  constructor(cnxns: CnxnTable, random: Random, observer: Observer) {
    this.#cnxns = cnxns;
    this.#random = random;
    this.#observer = observer;
  }

  /**
   * Begins to close `share` (0 to 1) of the connections, except one; an earlier call that is not
   * finished is forgotten. Returns how many will be closed.
   */
  shed(share: number, except: Cnxn | undefined, now: Now): number {
    this.#except = except;
    this.#unvisited = this.#cnxns.size - (except === undefined ? 0 : 1);
    this.#wanted = Math.round(share * this.#unvisited);
    this.#cursor = this.#wanted > 0 ? this.#cnxns.all()[Symbol.iterator]() : undefined;
    this.#nextMs = now.elapsedMs;
    if (this.#wanted > 0) this.#observer.notice({ kind: 'shedBegan', count: this.#wanted, cnxnCount: this.#unvisited });
    return this.#wanted;
  }

  wake(now: Now): void {
    if ((this.#cursor === undefined && this.#leaving.size === 0) || now.elapsedMs < this.#nextMs) return;
    this.#nextMs = now.elapsedMs + intervalMs;
    if (this.#cursor !== undefined) this.#choose(now);
    for (const [cnxn, untilMs] of this.#leaving) {
      if (!cnxn.isClosed && now.elapsedMs < untilMs && !cnxn.isAnswered) continue;
      this.#leaving.delete(cnxn);
      this.#cnxns.close(cnxn, 'shed');
    }
  }

  #choose(now: Now): void {
    for (let visited = 0, chosen = 0; visited < visitedPerIntervalMax && chosen < closedPerIntervalMax; visited++) {
      const next = this.#wanted > 0 && this.#unvisited > 0 ? this.#cursor!.next() : undefined;
      if (next === undefined || next.done === true) {
        this.#cursor = undefined;
        return;
      }
      const cnxn = next.value;
      // The connection over which the operator asks for it.
      if (cnxn === this.#except) continue;
      const isChosen = this.#random.uint32() % this.#unvisited < this.#wanted;
      this.#unvisited--;
      if (!isChosen) continue;
      this.#wanted--;
      chosen++;
      if (cnxn.isClosed) continue;
      cnxn.isLeaving = true;
      this.#leaving.set(cnxn, now.elapsedMs + lastRepliesMs);
    }
  }

  deadline(): Millis | undefined {
    return this.#cursor === undefined && this.#leaving.size === 0 ? undefined : this.#nextMs;
  }

  fingerprint(to: Fingerprint, nowMs: Millis): void {
    to.number(this.#wanted);
    to.number(this.#unvisited);
    to.number(this.#leaving.size);
    to.number(msUntil(this.deadline(), nowMs));
  }
}
