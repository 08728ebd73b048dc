import type { Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { WaitingSync } from './session-order.ts';

/** Syncs that wait for nothing but txns to be applied here, in the order of these txns. Those of a session's earlier connections are among them. */
export class SyncsBehind {
  readonly #syncs = new Fifo<{ readonly sync: WaitingSync; readonly behind: Zxid }>();

  push(sync: WaitingSync, behind: Zxid): void {
    this.#syncs.push({ sync, behind });
  }

  /** The next one that waits for no txn behind `applied`. */
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
