import type { Millis } from '@tskeeper/protocol';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import type { Inspector } from './inspector.ts';
import { ServerInspector } from './server-inspector.ts';
import type { ClientOutput } from './client-output.ts';
import { Load } from './pending/load.ts';
import type { Replica } from './request/replica.ts';
import { SessionTracker } from './session/session-tracker.ts';
import { WatchTable } from './tree/watch-table.ts';

/**
 * Implements `Inspector` while no clients are served: the state, and no clients. The object is
 * reused while the replica is the same, since its empty tables are large, and clients that wait for
 * a leader ask often.
 */
export class IdleInspector {
  readonly #tickTimeMs: Millis;
  readonly #out: ClientOutput;
  #last: { readonly replica: Replica; readonly inspect: Inspector } | undefined;

  constructor(tickTimeMs: Millis, out: ClientOutput) {
    this.#tickTimeMs = tickTimeMs;
    this.#out = out;
  }

  inspectorOf(replica: Replica): Inspector {
    if (this.#last?.replica === replica) return this.#last.inspect;
    const [tracker, watches, load] = [new SessionTracker(this.#tickTimeMs), new WatchTable({ hashSeed: 0 }), new Load()];
    const inspect = new ServerInspector('looking', replica, tracker, watches, new CnxnTable(this.#out, tracker, watches, load), load);
    this.#last = { replica, inspect };
    return inspect;
  }
}
