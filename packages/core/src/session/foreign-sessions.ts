/**
 * What a leader knows of the local sessions of its learners: nothing but which ids they may have.
 *
 * A learner forwards the writes of its local sessions like any others, and nothing in a REQUEST
 * says what kind of session it comes from. So a leader with local sessions accepts writes of a
 * session that it does not know, unless the top byte of the id says that this server itself created
 * the session (ZooKeeper's LeaderSessionTracker does the same). A global session that has ended
 * since this server leads is unknown too, and a request of it may still be on its way from a server
 * that the session has left. Its last ids are remembered here, so that no such request takes effect
 * after the end of its session.
 */
import type { Fingerprint } from '../fingerprint.ts';
import { Fifo } from '../fifo.ts';
import { type SessionSlot, SessionTable } from './session-table.ts';

/** About 1.5 MB. */
const rememberedMax = 65_536;

export class ForeignSessions {
  readonly #serverId: number;
  readonly #rememberedMax: number;
  /** Global sessions that have ended, created by other servers. */
  readonly #ended = new SessionTable();
  /** The slots of `#ended`, oldest first. */
  readonly #order = new Fifo<SessionSlot>();

  /** @param serverId the top byte of the ids that this server assigns. */
  constructor(serverId: number, max = rememberedMax) {
    this.#serverId = serverId & 0xff;
    this.#rememberedMax = max;
  }

  /** Whether a session that this server does not know may be a local session of another one. */
  mayExist(high: number, low: number): boolean {
    return high >>> 24 !== this.#serverId && this.#ended.find(high, low) === -1;
  }

  /** A global session has ended. */
  remember(high: number, low: number): void {
    if (!this.mayExist(high, low)) return;
    if (this.#order.length >= this.#rememberedMax) this.#ended.remove(this.#order.shift()!);
    this.#order.push(this.#ended.open(high, low, 0));
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    to.number(this.#order.length);
    for (const slot of this.#order.values()) to.text(`${this.#ended.high(slot)} ${this.#ended.low(slot)}`);
  }
}
