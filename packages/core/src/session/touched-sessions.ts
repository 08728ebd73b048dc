/**
 * Sessions of other servers' clients that have shown a sign of life, until that is reported. A
 * follower collects them from its observers; the sessions of its own clients are in the tracker.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { SessionTable } from './session-table.ts';

/**
 * Beyond this number a session must be known. A new one may not have been applied here yet; but a
 * faulty observer could report any number of sessions.
 */
const unknownMax = 10_000;

export class TouchedSessions {
  readonly #known: Pick<SessionTable, 'find'>;
  /** Timeouts by both halves of the id: few sessions differ in the upper one. */
  readonly #timeouts = new Map<number, Map<number, Millis>>();
  #count = 0;

  constructor(known: Pick<SessionTable, 'find'>) {
    this.#known = known;
  }

  add(high: number, low: number, timeoutMs: Millis): void {
    if (this.#count >= unknownMax && this.#known.find(high, low) === -1) return;
    let timeouts = this.#timeouts.get(high);
    if (timeouts === undefined) this.#timeouts.set(high, (timeouts = new Map()));
    if (!timeouts.has(low)) this.#count++;
    timeouts.set(low, timeoutMs);
  }

  /** Visits them, and forgets them. */
  take(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    for (const [high, timeouts] of this.#timeouts) for (const [low, timeoutMs] of timeouts) visit(high, low, timeoutMs);
    this.#timeouts.clear();
    this.#count = 0;
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#count);
    const rows: string[] = [];
    for (const [high, timeouts] of this.#timeouts) for (const [low, timeoutMs] of timeouts) rows.push(`${high} ${low} ${timeoutMs}`);
    for (const row of rows.sort()) to.text(row);
  }
}
