import type { Millis, SessionId, Sid, Zxid } from '@tskeeper/protocol';
import type { CnxnContext } from './cnxn-context.ts';
import type { CloseReason, CnxnId } from './client-output.ts';
import type { StepKind } from './step-budget.ts';
import type { RoleEndReason } from './role-end.ts';
import type { TransferEnd } from './transfer-outcome.ts';
import type { NamespaceId } from './tree/namespace-table.ts';

/** An event for operators. The runtime logs it once, in words. */
export type Notice =
  | {
      readonly kind: 'quotaSoftLimit';
      readonly path: string;
      readonly what: 'count' | 'bytes';
      readonly usage: number;
      readonly limit: number;
    }
  | { readonly kind: 'digestMismatch'; readonly zxid: Zxid }
  | { readonly kind: 'containerSwept'; readonly path: string }
  /** This leader begins to give the lead to another server; `byPriority`: by itself. */
  | { readonly kind: 'transferBegan'; readonly target: Sid; readonly byPriority: boolean }
  /** `heldMs`: how long clients' writes waited for it. */
  | { readonly kind: 'transferEnded'; readonly target: Sid; readonly outcome: TransferEnd; readonly heldMs: Millis }
  /** This server begins to close that many connections, so that their clients connect elsewhere. */
  | { readonly kind: 'shedBegan'; readonly count: number; readonly cnxnCount: number };

/**
 * The option of a limit at which requests, bytes or connections wait until there is room, without
 * an error to a client.
 */
export type LimitName =
  | 'globalOutstandingLimit'
  | 'inFlightBytesMax'
  | 'identityBytesPerAddressMax'
  | 'snapSyncsMax'
  | 'diffSyncsMax'
  | 'heldBytesMax'
  | 'halfOpenMax'
  | 'outputHighWaterBytes'
  | 'framesPerQuantum'
  | 'framesPerTurn'
  | 'sliceBytes'
  | 'learnerOutputHighWaterBytes'
  | 'packetsPerQuantum'
  | 'messagesPerQuantum';

/**
 * Receives events in order, and must neither call back nor throw. Metrics, the audit log, the slow
 * log and traces implement it, so that no decision is mixed with its bookkeeping. Calls are made on
 * the request path: an implementation counts and returns.
 */
export interface Observer {
  cnxnOpened(cnxn: CnxnId, context: CnxnContext): void;
  /**
   * `reason` is undefined if the client disconnected; `session` is 0 if the connection never had
   * one.
   */
  cnxnClosed(cnxn: CnxnId, reason: CloseReason | undefined, context: CnxnContext, session: SessionId): void;
  /** A client has proved an identity; `id` is in the form used in an ACL. */
  authenticated(cnxn: CnxnId, scheme: string, id: string): void;
  /** A client has named the ensemble that it means to talk to. */
  ensembleNamed(verdict: 'right' | 'wrong' | 'not compared'): void;
  /** The credentials of a client were refused. `reason` is a clause for the log. */
  authenticationRefused(cnxn: CnxnId, scheme: string, reason: string, context: CnxnContext): void;
  /**
   * A request has been decoded and its session touched. `frameBytes` includes the length prefix;
   * `waitedMs` runs from its arrival.
   */
  admitted(cnxn: CnxnId, opCode: number, frameBytes: number, waitedMs: Millis): void;
  /** The next request must wait, since too many are outstanding. Called each time this is found. */
  requestThrottled(): void;
  /** Something waits because a limit is reached. Called each time this is found. */
  limitReached(limit: LimitName): void;
  /**
   * The connection of a request has closed before its turn. A write is performed without a reply,
   * unless it is dropped.
   */
  staleRequest(isDropped: boolean): void;
  /**
   * A request was refused before it was validated: throttled, oversized, stale, or on a closed
   * session.
   */
  requestRejected(cnxn: CnxnId, opCode: number, errorCode: number): void;
  /** A write that is being validated will change a znode. */
  changeQueued(): void;
  /** `count` recorded changes have been applied. */
  changesRemoved(count: number): void;
  /** The server has refused a write because of a hard limit of a quota. */
  quotaExceeded(namespace: NamespaceId): void;
  /**
   * A write has its zxid and is appended to the log. `bytes` is the size of the log entry's txn
   * bytes, `prepareMs` the duration of its validation.
   */
  proposed(zxid: Zxid, txnType: number, bytes: number, prepareMs: Millis): void;
  /**
   * A txn has changed the tree, or an error txn has had its turn. `errorCode` is 0 for a change.
   * `ageMs` runs from the txn's wall-clock time, and is negative if the clock has been set back.
   */
  applied(zxid: Zxid, txnType: number, errorCode: number, ageMs: Millis): void;
  /** From now on this number means this namespace, and no longer an earlier one. */
  namespaceAssigned(namespace: NamespaceId, name: string): void;
  /**
   * Data, Stat or children of a znode have been read; `bytes` is the size of its path, its data or
   * its children's names, and its Stat.
   */
  znodeRead(namespace: NamespaceId, bytes: number): void;
  /** A znode has been created, deleted or given data; `bytes` is the size of path and data. */
  znodeWritten(namespace: NamespaceId, bytes: number): void;
  /**
   * A reply has been written. `latencyMs` runs from the request's arrival. `write`: whether it took
   * a zxid.
   */
  replied(cnxn: CnxnId, opCode: number, errorCode: number, latencyMs: Millis, bytes: number, write: boolean): void;
  /** One change has fired `count` watches. */
  watchesFired(eventType: number, count: number): void;
  /**
   * A watch event has been written: for a watch that fired, or for a reconnected client that missed
   * it.
   */
  eventSent(cnxn: CnxnId, bytes: number): void;
  /** A createSession has been applied, here as on every server of the ensemble. */
  sessionOpened(session: SessionId, timeoutMs: Millis): void;
  /** A new session that only this server knows; no txn creates it. */
  localSessionOpened(session: SessionId, timeoutMs: Millis): void;
  /**
   * A local session is about to become global, since it creates an ephemeral. `sessionOpened`
   * follows when its createSession has been applied, with this timeout.
   */
  sessionUpgraded(session: SessionId, timeoutMs: Millis): void;
  /** A local session wanted to create an ephemeral and may not become global. */
  ephemeralRefused(session: SessionId): void;
  /**
   * A local session has timed out, or its client has closed it. `context` is that of its
   * connection, or undefined. All others end without this call when the role of the server ends.
   */
  localSessionClosed(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined): void;
  /**
   * This server has accepted a client's handshake: its session is new, or resumes over this
   * connection.
   */
  sessionAccepted(session: SessionId, timeoutMs: Millis, context: CnxnContext, isNew: boolean): void;
  /**
   * A closeSession has been applied, here as on every server of the ensemble. `timeoutMs` is that
   * at the session's creation; `context` is that of the session's connection to this server, or
   * undefined.
   */
  sessionClosed(session: SessionId, expired: boolean, timeoutMs: Millis, context: CnxnContext | undefined): void;
  /**
   * A session was resumed by a new connection, or refused to it, and the client gets the reply.
   * `replied` is called for new sessions only.
   */
  sessionRevalidated(session: SessionId, accepted: boolean, context: CnxnContext): void;
  /** A leader has answered a learner whether a session is alive. */
  sessionValidated(session: SessionId, lives: boolean): void;
  roleChanged(role: 'standalone' | 'leader' | 'follower' | 'observer' | 'looking' | 'read-only'): void;
  /**
   * The read-only mode that `roleChanged` has reported is over, before the role changes again or
   * the mode begins anew.
   */
  readOnlyEnded(): void;
  /** An election has ended after `electionMs` with `leader`, which may be this server. */
  elected(leader: Sid, electionMs: Millis): void;
  /** There is no election: the last leader has named the next, which may be this server. */
  leaderAppointed(leader: Sid): void;
  /**
   * This server serves in an epoch, as its leader or as a learner. `historyEnd` was the end of its
   * history at the start.
   */
  epochStarted(epoch: number, historyEnd: Zxid): void;
  /**
   * This server no longer leads or learns; `text` says why, for the operator. Everything in its log
   * has been applied.
   */
  roleEnded(reason: RoleEndReason, text: string): void;
  /** Every txn up to `zxid` is durable in the log of a server of an ensemble. */
  txnDurable(zxid: Zxid): void;
  /**
   * The log has been truncated after `zxid`; or the leader's snapshot of `zxid` has replaced
   * everything on disk.
   */
  historyReplaced(by: 'trunc' | 'snap', zxid: Zxid): void;
  /**
   * A leader starts to synchronise a learner: with which packet, from which source, and to how many
   * learners it is sending snapshots. `isBehind`: the tree being sent does not contain all
   * committed txns yet.
   */
  learnerSyncStarted(by: 'diff' | 'trunc' | 'snap', from: 'memory' | 'log' | 'tree', activeSnapshotCount: number, isBehind: boolean): void;
  /** A step has ended with work of this kind left for the next one. */
  stepYielded(kind: StepKind): void;
  /**
   * A request or a commit takes more than one step. The server starts no other, and ends no
   * session, before `jobEnded`.
   */
  jobBegan(): void;
  jobEnded(): void;
  /**
   * A long write must wait until fewer units are proposed and not applied. `isForwarded`: a learner
   * forwarded it.
   */
  longWriteQueued(isForwarded: boolean): void;
  notice(notice: Notice): void;
}

/** The default: ignores all events. */
export const silentObserver: Observer = {
  cnxnOpened() {},
  cnxnClosed() {},
  authenticated() {},
  ensembleNamed() {},
  authenticationRefused() {},
  admitted() {},
  requestThrottled() {},
  limitReached() {},
  staleRequest() {},
  requestRejected() {},
  changeQueued() {},
  changesRemoved() {},
  quotaExceeded() {},
  proposed() {},
  applied() {},
  namespaceAssigned() {},
  znodeRead() {},
  znodeWritten() {},
  replied() {},
  watchesFired() {},
  eventSent() {},
  sessionOpened() {},
  localSessionOpened() {},
  sessionUpgraded() {},
  ephemeralRefused() {},
  localSessionClosed() {},
  sessionAccepted() {},
  sessionClosed() {},
  sessionRevalidated() {},
  sessionValidated() {},
  roleChanged() {},
  readOnlyEnded() {},
  elected() {},
  leaderAppointed() {},
  epochStarted() {},
  roleEnded() {},
  txnDurable() {},
  historyReplaced() {},
  learnerSyncStarted() {},
  stepYielded() {},
  jobBegan() {},
  jobEnded() {},
  longWriteQueued() {},
  notice() {},
};
