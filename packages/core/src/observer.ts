import type { Millis, SessionId, Sid, Zxid } from '@tskeeper/protocol';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import type { CloseReason, CnxnId } from './client-output.ts';
import type { StepKind } from './request/budget.ts';
import type { NamespaceId } from './tree/namespace-table.ts';

/** What an operator should hear of, once, in words. The runtime logs it. */
export type Notice =
  | {
      readonly kind: 'quotaSoftLimit';
      readonly path: string;
      readonly what: 'count' | 'bytes';
      readonly usage: number;
      readonly limit: number;
    }
  | { readonly kind: 'digestMismatch'; readonly zxid: Zxid }
  | { readonly kind: 'containerSwept'; readonly path: string };

/** The option of a limit at which requests, bytes or connections wait until there is room, without an error to a client. */
export type Limit =
  | 'globalOutstandingLimit'
  | 'inFlightBytesMax'
  | 'identityBytesPerAddressMax'
  | 'snapSyncsMax'
  | 'diffSyncsMax'
  | 'heldBytesMax'
  | 'halfOpenMax'
  | 'readingStopsBytes'
  | 'framesPerGo'
  | 'framesPerTurn'
  | 'sliceBytes'
  | 'fullBytes'
  | 'packetsPerGo'
  | 'messagesPerGo';

/**
 * Hears what happens, in order, and may neither answer nor throw. Metrics, the audit log, the slow log and traces hang on it, so that
 * no decision is mixed with its bookkeeping. Calls are made on the request path: an implementation counts and returns.
 */
export interface Observer {
  cnxnOpened(cnxn: CnxnId, context: CnxnContext): void;
  /** `reason` is undefined when the other side went away by itself; `session` is 0 when the connection never had one. */
  cnxnClosed(cnxn: CnxnId, reason: CloseReason | undefined, context: CnxnContext, session: SessionId): void;
  /** A provider has judged credentials. `id` is what would stand in an ACL, empty when refused. */
  authenticated(cnxn: CnxnId, scheme: string, id: string, accepted: boolean): void;
  /** A request has been decoded and its session touched. `frameBytes` includes the length prefix; `waitedMs` runs from its arrival. */
  admitted(cnxn: CnxnId, opCode: number, frameBytes: number, waitedMs: Millis): void;
  /** The request that is next must wait, since too many are under way. Told whenever that is found to be so. */
  heldBack(): void;
  /** Something waits because a limit is reached. Called each time that is found to be so. */
  limitMet(limit: Limit): void;
  /** A request's turn has come and its connection is gone. Unless it is dropped for that, a write is carried out and nobody answered. */
  stale(dropped: boolean): void;
  /** A request was turned away before it was judged: throttled, oversized, stale, or on a session that is gone. */
  refused(cnxn: CnxnId, opCode: number, errorCode: number): void;
  /** A write that is being judged will change a znode. */
  changeRecorded(): void;
  /** So many recorded changes have been applied. */
  changesForgotten(count: number): void;
  /** A hard limit of a quota has made the server refuse a write. */
  quotaExceeded(namespace: NamespaceId): void;
  /** A write has its zxid and goes to the log. `bytes` is the size of the log entry's txn bytes, `judgedMs` how long judging it took. */
  proposed(zxid: Zxid, txnType: number, bytes: number, judgedMs: Millis): void;
  /**
   * A txn has changed the tree, or an error txn has taken its turn. `errorCode` is 0 for a change. `ageMs` runs from the txn's time on the
   * wall clock, and is negative when that has been set back.
   */
  applied(zxid: Zxid, txnType: number, errorCode: number, ageMs: Millis): void;
  /** From now on this number stands for this namespace, and no longer for the one it may have stood for before. */
  namespaceNamed(namespace: NamespaceId, name: string): void;
  /** Data, Stat or children of a znode have been read: so many bytes of its path, its data or its children's names, and its Stat. */
  znodeRead(namespace: NamespaceId, bytes: number): void;
  /** A znode has been created, deleted or given data: so many bytes of path and data. */
  znodeWritten(namespace: NamespaceId, bytes: number): void;
  /** A reply has been written. `latencyMs` runs from the request's arrival. `write` tells what took a zxid from what did not. */
  replied(cnxn: CnxnId, opCode: number, errorCode: number, latencyMs: Millis, bytes: number, write: boolean): void;
  /** One change has fired `count` watches. */
  watchesFired(eventType: number, count: number): void;
  /** A watch event has been written: of a watch that fired, or for a client that came back and has missed it. */
  eventSent(cnxn: CnxnId, bytes: number): void;
  /** A createSession has been applied, here as at every server of the ensemble. */
  sessionOpened(session: SessionId, timeoutMs: Millis): void;
  /** A client's handshake has been accepted by this server: its session is new, or resumes over this connection. */
  sessionAccepted(session: SessionId, timeoutMs: Millis, context: CnxnContext, isNew: boolean): void;
  /**
   * A closeSession has been applied, here as at every server of the ensemble. `timeoutMs` is that of the session when it was created;
   * `context` is that of the session's connection to this server, undefined when it has none.
   */
  sessionClosed(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined): void;
  /** A session was taken up again by a new connection, or refused to it, and the client is told. `replied` is for new sessions only. */
  sessionRevalidated(session: SessionId, accepted: boolean, context: CnxnContext): void;
  /** A leader was asked by a learner whether a session lives, and has answered. */
  sessionValidated(session: SessionId, lives: boolean): void;
  roleChanged(role: 'standalone' | 'leader' | 'follower' | 'observer' | 'looking' | 'read-only'): void;
  /** An election has ended after `lookedMs`: this server goes by `leader`, which may be itself. */
  elected(leader: Sid, lookedMs: Millis): void;
  /** This server serves in an epoch, as its leader or as a learner. Its history ended with `historyEnd` when it began to. */
  epochBegun(epoch: number, historyEnd: Zxid): void;
  /** This server leads or learns no more; `reason` is for the operator. Everything in its log has been applied. */
  roleEnded(reason: string): void;
  /** Every txn up to `zxid` is durable in the log of a server of an ensemble. */
  logged(zxid: Zxid): void;
  /** The log has been cut behind `zxid`; or the leader's snapshot as of `zxid` has taken the place of everything on disk. */
  historyReplaced(by: 'trunc' | 'snap', zxid: Zxid): void;
  /**
   * A leader begins to bring a learner to its history: with which packet, where what follows is taken from, and how many learners it sends a
   * snapshot at that moment. `isBehind`: the tree that is sent has not yet got all that is committed.
   */
  learnerSynchronised(by: 'diff' | 'trunc' | 'snap', from: 'memory' | 'log' | 'tree', snapshotsUnderWay: number, isBehind: boolean): void;
  /** A step has ended with work of this kind left over, which goes on in the next one. */
  stepEnded(kind: StepKind): void;
  /** A request or a commit takes more than one step. The server starts no other, and ends no session, before `jobEnded`. */
  jobBegan(): void;
  jobEnded(): void;
  /** A long write has to wait until less is proposed and not applied; `passedOn` by a learner. */
  longWriteWaits(passedOn: boolean): void;
  notice(notice: Notice): void;
}

/** The default: nobody listens. */
export const silentObserver: Observer = {
  cnxnOpened() {},
  cnxnClosed() {},
  authenticated() {},
  admitted() {},
  heldBack() {},
  limitMet() {},
  stale() {},
  refused() {},
  changeRecorded() {},
  changesForgotten() {},
  quotaExceeded() {},
  proposed() {},
  applied() {},
  namespaceNamed() {},
  znodeRead() {},
  znodeWritten() {},
  replied() {},
  watchesFired() {},
  eventSent() {},
  sessionOpened() {},
  sessionAccepted() {},
  sessionClosed() {},
  sessionRevalidated() {},
  sessionValidated() {},
  roleChanged() {},
  elected() {},
  epochBegun() {},
  roleEnded() {},
  logged() {},
  historyReplaced() {},
  learnerSynchronised() {},
  stepEnded() {},
  jobBegan() {},
  jobEnded() {},
  longWriteWaits() {},
  notice() {},
};
