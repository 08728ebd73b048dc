/**
 * Orders writes: on the server itself if it is standalone or the leader (local-sequencer.ts), or
 * through the leader (leader-forwarder.ts). A write enters its connection's queue when it is
 * admitted; its txn is returned when it may be applied, one at a time, in zxid order. The write at
 * the head of a queue that caused the txn is answered.
 */
import type { Millis, Reader, Sid, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { Job } from '../step-budget.ts';
import type { Proposal, WriteOrigin } from '../pending/proposal.ts';
import type { PendingSync } from '../pending/pending-request.ts';

/** The role of a server as its clients see it. */
export type Role = 'standalone' | 'leader' | 'follower' | 'observer' | 'read-only';

export interface WriteSequencer {
  readonly role: Role;
  /**
   * Whether the server is in read-only mode: it has no leader, orders no write, and its sessions
   * are local to it.
   */
  readonly isReadOnly: boolean;
  /** Units of work done so far. */
  readonly workUnits: number;
  /** Whether requests are forwarded to the leader, each with its identities. */
  readonly forwardsToLeader: boolean;
  /** Bytes of requests that wait to be forwarded, including those of disconnected clients. */
  readonly queuedBytes: number;
  /** The server that leads; undefined for a standalone server. */
  readonly leader: Sid | undefined;
  /** Whether a request for another leader can be ordered. */
  readonly acceptsTransfers: boolean;
  /**
   * Whether writes of ClickHouse Keeper can be ordered, and multis with its operations, if this
   * server has its extensions.
   */
  readonly acceptsKeeperWrites: boolean;

  /**
   * Orders a write; `reader` is placed over its record, and its bytes may be reused after the call.
   * Returns a job if that takes more than one step: while the job runs, nothing else may be
   * ordered, applied or answered.
   */
  submitWrite(origin: WriteOrigin, reader: Reader, now: Now): Job | undefined;
  /** The write that the running job validates; undefined if it validates none. */
  readonly preparingWrite: WriteOrigin | undefined;
  /** Orders the txn of a new session. */
  openSession(origin: WriteOrigin, timeoutMs: Millis, now: Now): void;

  /**
   * All writes ordered so far are known to have been applied here, without asking another server: a
   * sync need not wait.
   */
  readonly isCaughtUp: boolean;
  /**
   * Finds out what has been committed so far. `takeSynced` returns the sync when all of it has been
   * applied; a leader or a learner calls `Server.synced` first.
   */
  sync(sync: PendingSync, now: Now): void;
  /**
   * All txns that were committed when the sync arrived have been delivered, but may not be applied
   * yet. Never called for a standalone server.
   */
  synced(sync: PendingSync): void;
  /** Takes a sync that waited only for txns up to `applied`; undefined if there is none. */
  takeSynced(applied: Zxid): PendingSync | undefined;
  /**
   * A client has proved by its password that it owns the session, and wants to resume it here.
   * Returns whether the session is alive; undefined if another server decides that, by
   * `Server.revalidated`.
   */
  revalidate(session: SessionRef, timeoutMs: Millis, now: Now): boolean | undefined;

  /** Every txn up to `zxid` is durable: on our own disk, or on a quorum in an ensemble. */
  appended(zxid: Zxid): void;
  /** Whether a txn may be applied. */
  readonly hasCommitted: boolean;
  /** Takes the next txn that may be applied. The caller owns it. */
  takeCommitted(): Proposal;
  /**
   * The txn has been applied. Forgets at most `max` of its records; returns whether none is left.
   */
  forgetApplied(zxid: Zxid, max?: number): boolean;

  /**
   * Takes every txn that has not been applied, committed or not: this order ends, and all of them
   * are in the log.
   */
  drainUnapplied(): Proposal[];

  /**
   * Expires a session on request of an operator, at the next `wake` or by the leader. Returns false
   * if there is no such session, or it is ending already.
   */
  expireNow(session: SessionRef): boolean;
  /**
   * Time has passed: does the server's own work, until `isBudgetSpent`. All input that had arrived
   * at this server by `inputWatermarkMs` has been delivered: sessions expire as of that time.
   * Returns a job as `submitWrite` does.
   */
  wake(now: Now, inputWatermarkMs: Millis, isBudgetSpent: () => boolean): Job | undefined;
  /**
   * Expires sessions only, between two long jobs of clients: all that are due, however many, before
   * the next job starts.
   */
  expireSessions(now: Now, inputWatermarkMs: Millis, isBudgetSpent: () => boolean): Job | undefined;
  /** When `wake` must be called, on the monotonic clock; undefined for never. */
  deadline(): Millis | undefined;

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void;
}
