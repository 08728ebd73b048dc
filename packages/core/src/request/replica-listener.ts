/**
 * What a change of the replica means for the clients of this server: watch events, and the end of
 * their sessions. A txn has these effects at every server, whichever server received its request.
 */
import { sessionIdOf, type Millis, type Zxid } from '@tskeeper/protocol';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Observer } from '../observer.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { AclId } from '../tree/acl-table.ts';
import type { NamespaceId } from '../tree/namespace-table.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import { isCloseSession } from '../pending/proposal.ts';
import type { ChangeListener } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Job } from '../step-budget.ts';
import type { WatchNotifier } from './watch-notifier.ts';

export interface ReplicaListenerParts {
  readonly watches: WatchTable;
  readonly cnxns: CnxnTable;
  readonly tracker: SessionTracker;
  readonly replyWriter: ReplyWriter;
  readonly notifier: WatchNotifier;
  readonly observer: Observer;
}

export class ReplicaListener implements ChangeListener {
  readonly #parts: ReplicaListenerParts;

  constructor(parts: ReplicaListenerParts) {
    this.#parts = parts;
  }

  get isListening(): boolean {
    return this.#parts.watches.count > 0;
  }

  get workUnits(): number {
    return this.#parts.replyWriter.workUnits;
  }

  znodeChanged(path: string, eventType: number, zxid: Zxid, acl: AclId, parentAcl: AclId | undefined): Job | undefined {
    return this.#parts.notifier.znodeChanged(path, eventType, zxid, acl, parentAcl);
  }

  znodeWritten(namespace: NamespaceId, bytes: number): void {
    this.#parts.observer.znodeWritten(namespace, bytes);
  }

  sessionOpened(high: number, low: number, timeoutMs: Millis): void {
    this.#parts.observer.sessionOpened(sessionIdOf(high, low), timeoutMs);
  }

  /** A closeSession has been applied, whichever server received it. */
  sessionClosed(high: number, low: number, cxid: number): void {
    const { observer, cnxns, tracker } = this.#parts;
    const slot = tracker.sessions.find(high, low);
    if (slot === -1) return;
    const cnxn = cnxns.get(tracker.sessions.cnxnOf(slot));
    const timeoutMs = tracker.sessions.timeoutMs(slot);
    tracker.remove(slot);
    // The client may be gone.
    observer.sessionClosed(sessionIdOf(high, low), cxid === 0, timeoutMs, cnxn?.context);
    if (cnxn === undefined) return;
    cnxn.slot = -1;
    // A client that sent this closeSession here still gets its reply. A client that sent another
    // one, through a server that the session has left, never would.
    const waitsForReply = cnxn.pendingRequests.some((one) => one.kind === 'write' && isCloseSession(one) && one.cxid === cxid);
    if (!waitsForReply) cnxns.close(cnxn, 'session expired');
  }
}
