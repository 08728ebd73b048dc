/** The connections of clients: their identities, their session and the paths that they watch. */
import type { Id } from './access-rules.ts';
import type { Outbox } from './outbox.ts';
import { WatchTable } from './watch-table.ts';

export interface Cnxn {
  readonly identities: Id[];
  readonly dataWatches: WatchTable;
  readonly childWatches: WatchTable;
  session: bigint | undefined;
}

/** The connections by their number, as they were at one moment. */
type SavedCnxns = Map<number, Cnxn>;

export class Connections {
  readonly #outbox: Outbox;
  #cnxns: SavedCnxns = new Map();

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  open(cnxn: number, remoteAddress: string): void {
    this.#cnxns.set(cnxn, {
      identities: [{ scheme: 'ip', id: remoteAddress }],
      dataWatches: new WatchTable(),
      childWatches: new WatchTable(),
      session: undefined,
    });
  }

  has(cnxn: number): boolean {
    return this.#cnxns.has(cnxn);
  }

  /** The state of a connection that exists. */
  get(cnxn: number): Cnxn {
    return this.#cnxns.get(cnxn)!;
  }

  entries(): Iterable<[number, Cnxn]> {
    return this.#cnxns;
  }

  /** The server closes the connection. */
  close(cnxn: number): void {
    this.#outbox.send(cnxn, { kind: 'closed' });
    this.#cnxns.delete(cnxn);
  }

  /** The connection is gone; nothing more can be sent. */
  drop(cnxn: number): void {
    this.#cnxns.delete(cnxn);
  }

  save(): SavedCnxns {
    const saved: SavedCnxns = new Map();
    for (const [id, cnxn] of this.#cnxns) {
      saved.set(id, { ...cnxn, dataWatches: cnxn.dataWatches.copy(), childWatches: cnxn.childWatches.copy() });
    }
    return saved;
  }

  /** Goes back to a saved state, which must not be used afterwards. */
  restore(saved: SavedCnxns): void {
    this.#cnxns = saved;
  }
}
