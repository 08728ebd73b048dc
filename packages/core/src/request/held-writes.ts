/**
 * Writes that wait while the leader gives up the lead, in order of arrival: they have no zxid and
 * are not validated. If the leader goes on as before they are ordered then; otherwise they have no
 * effect, and their clients see ConnectionLoss.
 *
 * How many can wait is limited by the server that has received them, as for any requests that are
 * not answered: `bytes` counts like bytes on the way to a leader.
 */
import type { Millis, Reader } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import { fingerprintWriteOrigin, type WriteOrigin } from '../pending/proposal.ts';

export interface HeldWrite {
  readonly origin: WriteOrigin;
  /** A copy. */
  readonly record: Buffer;
  /** For a new session; otherwise undefined. */
  readonly sessionTimeoutMs: Millis | undefined;
  /** `SessionTracker.moveCountOf` when it arrived. */
  readonly sessionMoves: number;
}

const noRecord = Buffer.alloc(0);

export class HeldWrites {
  readonly #waiting = new Fifo<HeldWrite>();
  /** Whether the leader is giving up the lead. */
  isHolding = false;
  /** Total bytes of the records and identities that wait. */
  bytes = 0;

  /** A write that arrives now must wait: for the leader, or after others that do. */
  get mustHold(): boolean {
    return this.isHolding || this.#waiting.length > 0;
  }

  /** Whether a write may be ordered now. */
  get canTake(): boolean {
    return !this.isHolding && this.#waiting.length > 0;
  }

  /** `reader` is placed over the record; undefined for a new session. */
  push(origin: WriteOrigin, reader: Reader | undefined, sessionTimeoutMs: Millis | undefined, sessionMoves: number): void {
    const record = reader === undefined ? noRecord : Buffer.from(reader.bytes.subarray(reader.offset, reader.limit));
    this.#waiting.push({ origin, record, sessionTimeoutMs, sessionMoves });
    this.bytes += record.length + origin.identities.bytes;
  }

  /** The oldest. The caller checks `canTake` first. */
  take(): HeldWrite {
    const held = this.#waiting.shift();
    if (held === undefined) throw new Error('take() was called, but no write waits');
    this.bytes -= held.record.length + held.origin.identities.bytes;
    return held;
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.isHolding ? 1 : 0);
    to.number(this.#waiting.length);
    for (const { origin, record, sessionTimeoutMs = -1, sessionMoves } of this.#waiting.values()) {
      fingerprintWriteOrigin(to, origin);
      to.text(record.toString('hex'));
      to.number(sessionTimeoutMs);
      to.number(sessionMoves);
    }
  }
}
