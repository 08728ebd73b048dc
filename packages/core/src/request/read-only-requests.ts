/**
 * Answers the requests that a server in read-only mode does not carry out, and those that end a
 * local session. ZooKeeper's ReadOnlyRequestProcessor decides which these are.
 *
 * They are answered in the place of a read, in the order of their connection's requests.
 */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import { isWrite } from '../pending/proposal.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Request } from './request.ts';

export class ReadOnlyRequests {
  readonly #tracker: SessionTracker;
  readonly #cnxns: CnxnTable;
  /** Sessions are local to this server; otherwise they are not its own, and it ends none. */
  readonly #endsSessions: boolean;

  constructor(tracker: SessionTracker, cnxns: CnxnTable, hasLocalSessions: boolean) {
    this.#tracker = tracker;
    this.#cnxns = cnxns;
    this.#endsSessions = hasLocalSessions;
  }

  /** Answers a request that is not a read. Returns false for an operation that is unknown here. */
  answer(request: Request, replies: ReadReplies): boolean {
    if (request.opCode === OpCode.closeSession && this.#endsSessions) this.#closeSession(request, replies);
    else if (isRefused(request.opCode)) replies.error(request, ErrorCode.NotReadOnly);
    else return false;
    return true;
  }

  #closeSession(request: Request, replies: ReadReplies): void {
    const { cnxn } = request;
    const { slot } = cnxn;
    replies.ok(request);
    this.#cnxns.close(cnxn, 'closed by the client');
    this.#tracker.remove(slot);
  }
}

/**
 * A client's own deleteContainer is known to ZooKeeper, and so refused like any other write. A
 * check outside a multi is not: it closes the connection, as everywhere. A sync is a promise about
 * the ensemble, which this server cannot give.
 */
function isRefused(opCode: number): boolean {
  return isWrite(opCode) || opCode === OpCode.sync || opCode === OpCode.deleteContainer;
}
