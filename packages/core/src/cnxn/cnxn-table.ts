/**
 * The connections of a server. All code that closes a connection does it here.
 */
import type { Millis } from '@tskeeper/protocol';
import type { CloseReason, CnxnId, ClientOutput } from '../client-output.ts';
import { AddressLoad, type Load } from '../pending/load.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import { Cnxn } from './cnxn.ts';
import type { CnxnContext } from '../cnxn-context.ts';

export class CnxnTable {
  readonly #cnxns = new Map<CnxnId, Cnxn>();
  readonly #addresses = new Map<string, AddressLoad>();
  readonly #out: ClientOutput;
  readonly #tracker: SessionTracker;
  readonly #watches: WatchTable;
  readonly #load: Load;

  constructor(out: ClientOutput, tracker: SessionTracker, watches: WatchTable, load: Load) {
    this.#out = out;
    this.#tracker = tracker;
    this.#watches = watches;
    this.#load = load;
  }

  get size(): number {
    return this.#cnxns.size;
  }

  get(id: CnxnId): Cnxn | undefined {
    return this.#cnxns.get(id);
  }

  all(): Iterable<Cnxn> {
    return this.#cnxns.values();
  }

  open(id: CnxnId, context: CnxnContext, wallMs: Millis): void {
    const { remoteAddress } = context;
    let address = this.#addresses.get(remoteAddress);
    if (address === undefined) this.#addresses.set(remoteAddress, (address = new AddressLoad(remoteAddress)));
    address.cnxnCount++;
    this.#cnxns.set(id, new Cnxn(id, context, address, wallMs));
  }

  /** Closes a connection once its output has been sent. */
  close(cnxn: Cnxn, reason: CloseReason): void {
    if (cnxn.isClosed) return;
    this.#detach(cnxn);
    cnxn.closeReason = reason;
    this.#out.close(cnxn.id, reason);
  }

  /**
   * Removes a closed connection; its id may be reused. `keepsDeferredFrames`: its early frames keep
   * waiting for the turn of a long write.
   */
  remove(cnxn: Cnxn, keepsDeferredFrames = false): void {
    this.#detach(cnxn, keepsDeferredFrames);
    this.#cnxns.delete(cnxn.id);
    if (--cnxn.addressLoad.cnxnCount === 0) this.#addresses.delete(cnxn.addressLoad.name);
  }

  /** From here on the connection gets no events and no replies. Its session lives on. */
  #detach(cnxn: Cnxn, keepsDeferredFrames = false): void {
    if (cnxn.isClosed) return;
    cnxn.authPendingAtClose = cnxn.state === 'parked';
    cnxn.hasDroppedRequest = !keepsDeferredFrames && cnxn.deferredFrames.length > 0;
    cnxn.state = 'closed';
    if (cnxn.slot !== -1 && this.#tracker.sessions.cnxnOf(cnxn.slot) === cnxn.id) {
      // A write that is being applied has its txn already.
      this.#tracker.addStrayWrites(cnxn.slot, cnxn.pendingWriteCount - (cnxn.isOldestWriteCommitted ? 1 : 0));
    }
    this.#load.pendingDropped(cnxn.pendingRequests.takeAll(), cnxn.addressLoad);
    if (!keepsDeferredFrames) this.#load.pendingDropped(cnxn.deferredFrames.takeAll(), cnxn.addressLoad);
    cnxn.pendingWriteCount = 0;
    cnxn.isOldestWriteCommitted = false;
    cnxn.pendingLongReadCount = 0;
    this.#watches.removeAll(cnxn.id);
    if (cnxn.slot !== -1 && this.#tracker.sessions.cnxnOf(cnxn.slot) === cnxn.id) this.#tracker.setCnxn(cnxn.slot, -1);
    cnxn.slot = -1;
  }
}
