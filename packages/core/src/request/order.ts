/**
 * Who puts writes in order: the server itself, when it stands alone or leads (authority.ts), or the leader that it asks (forwarding.ts).
 * A write stands in its connection's line from the moment it is admitted; its txn comes back when it may be applied, one by one, in the
 * order of zxids. Whoever waits at the head of a line for just that txn is answered.
 */
import type { Millis, Reader, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Job } from './budget.ts';
import type { Proposal, WriteOrigin } from './proposal.ts';
import type { WaitingSync } from './session-order.ts';

/** What a server is, as far as its clients are concerned. */
export type Role = 'standalone' | 'leader' | 'follower' | 'observer';

export interface Order {
  readonly role: Role;
  /** Units of work done so far. */
  readonly work: number;
  /** Requests go to the leader, each with its identities. */
  readonly passesOn: boolean;
  /** Bytes of requests that wait to be passed on, also of clients that have gone. */
  readonly queuedBytes: number;

  /**
   * Brings a write in order; `reader` is placed over its record, and its bytes may be used again after the call. Returns a job when that
   * takes more than one step: while it is under way nothing else may be brought in order, applied or answered.
   */
  write(origin: WriteOrigin, reader: Reader, now: Now): Job | undefined;
  /** The same for a new session. */
  openSession(origin: WriteOrigin, timeoutMs: Millis, now: Now): void;

  /** Everything that anybody has put in order so far is known to have been applied here, without asking: a sync need not wait. */
  readonly isCaughtUp: boolean;
  /** Finds out what has been committed so far. `takeSynced` returns the sync when all of that has been applied; a leader or a learner calls `Server.synced` first. */
  sync(sync: WaitingSync, now: Now): void;
  /** Everything that was committed when the sync came has been handed over, and may not be applied yet. A server that stands alone is never told so. */
  synced(sync: WaitingSync): void;
  /** A sync that waited for nothing but the txns up to `applied`; undefined when there is none. */
  takeSynced(applied: Zxid): WaitingSync | undefined;
  /**
   * A client has proved by its password that the session is its own, and wants to go on with it here. Returns whether it lives; undefined
   * when that is for someone else to say, by `Server.revalidated`.
   */
  revalidate(high: number, low: number, timeoutMs: Millis, now: Now): boolean | undefined;

  /** Every txn up to `zxid` is safe: on our own disk, or with a quorum where there is one. */
  appended(zxid: Zxid): void;
  /** A txn may be applied. */
  readonly hasNext: boolean;
  /** The next one that may be applied, which is the caller's from here on. */
  take(): Proposal;
  /** It has been applied. Forgets at most `max` records of it; returns whether that was all. */
  applied(zxid: Zxid, max?: number): boolean;

  /** Takes everything that has not been applied, whether it may be or not: this order is at its end, and all of it is in the log. */
  rest(): Proposal[];

  /** Ends a session at an operator's word, at the next `wake` or by the leader. Returns false when there is none to end, or it is ending. */
  condemn(high: number, low: number): boolean;
  /**
   * Time has passed: does what the server wants by itself, until `hasEnough`. Everything that had arrived at this server by `heardMs` has been
   * heard: sessions are judged as of then. Returns a job as `write` does.
   */
  wake(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined;
  /** The same of sessions alone, between two long jobs of others: however many there are, they end before the next one begins. */
  endSessions(now: Now, heardMs: Millis, hasEnough: () => boolean): Job | undefined;
  /** When `wake` must be called, on the monotonic clock; undefined for never. */
  deadline(): Millis | undefined;

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void;
}
