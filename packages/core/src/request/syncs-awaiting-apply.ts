import type { Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { PendingSync } from '../pending/pending-request.ts';

/**
 * Syncs that wait only for txns to be applied here, in the order of these txns. They include syncs
 * of a session's earlier connections.
 */
export class SyncsAwaitingApply {
  readonly #syncs = new Fifo<{ readonly sync: PendingSync; readonly afterZxid: Zxid }>();

  push(sync: PendingSync, afterZxid: Zxid): void {
    this.#syncs.push({ sync, afterZxid });
  }

  /** Takes the next sync that waits for no txn after `applied`. */
  take(applied: Zxid): PendingSync | undefined {
    const next = this.#syncs.peek();
    if (next === undefined || next.afterZxid > applied) return undefined;
    this.#syncs.shift();
    return next.sync;
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#syncs.length);
    for (const { sync, afterZxid } of this.#syncs.values()) {
      to.number(sync.cnxn);
      to.number(afterZxid);
    }
  }
}
