import type { Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { WaitingSync } from './session-order.ts';

/**
 * Syncs that wait only for txns to be applied here, in the order of these txns. They include syncs
 * of a session's earlier connections.
 */
export class SyncsBehind {
  readonly #syncs = new Fifo<{ readonly sync: WaitingSync; readonly behind: Zxid }>();

  push(sync: WaitingSync, behind: Zxid): void {
    this.#syncs.push({ sync, behind });
  }

  /** Takes the next sync that waits for no txn after `applied`. */
  take(applied: Zxid): WaitingSync | undefined {
    const next = this.#syncs.peek();
    if (next === undefined || next.behind > applied) return undefined;
    this.#syncs.shift();
    return next.sync;
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#syncs.length);
    for (const { sync, behind } of this.#syncs.values()) {
      to.number(sync.cnxn);
      to.number(behind);
    }
  }
}
