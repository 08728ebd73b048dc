import type { Millis } from '@tskeeper/protocol';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import type { Inspect } from './inspect.ts';
import { Inspection } from './inspection.ts';
import type { ClientOutput } from './client-output.ts';
import { Load } from './request/load.ts';
import type { Replica } from './request/replica.ts';
import { SessionTracker } from './session/session-tracker.ts';
import { WatchTable } from './tree/watch-table.ts';

/**
 * What there is to tell while nobody is served: the state, and no clients. It is kept for as long as the state is the same one, since its empty
 * tables are large, and whoever waits for a leader asks often.
 */
export class RestingInspection {
  readonly #tickTimeMs: Millis;
  readonly #out: ClientOutput;
  #last: { readonly replica: Replica; readonly inspect: Inspect } | undefined;

  constructor(tickTimeMs: Millis, out: ClientOutput) {
    this.#tickTimeMs = tickTimeMs;
    this.#out = out;
  }

  of(replica: Replica): Inspect {
    if (this.#last?.replica === replica) return this.#last.inspect;
    const [tracker, watches, load] = [new SessionTracker(this.#tickTimeMs), new WatchTable({ hashSeed: 0 }), new Load()];
    const inspect = new Inspection('looking', replica, tracker, watches, new CnxnTable(this.#out, tracker, watches, load), load);
    this.#last = { replica, inspect };
    return inspect;
  }
}
