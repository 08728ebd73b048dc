/**
 * The result of a replay, for the checkers: the txns with their requests, what every connection
 * should have received, and the final state of the model.
 */
import type { Millis, SessionId, Zxid } from '@tskeeper/protocol';
import type { AclEntry, Data, Stat } from '../model/operation-types.ts';
import type { CnxnRecord, Request } from '../record/recording.ts';
import type { Answer } from './answer.ts';
import type { QuotaDecision } from './quota-checker.ts';

export interface ReplayedTxn {
  readonly zxid: Zxid;
  readonly atMs: Millis;
  readonly session: SessionId;
  readonly type: number;
  /**
   * The request; undefined for what the server does by itself: creating a session, closing an
   * expired one, sweeping.
   */
  readonly request: Request | undefined;
  /** Neither requested by a client nor something that a server does by itself. */
  readonly isUnexplained: boolean;
  /** The result in the log, and the expected one. Both 0 for success. */
  readonly loggedErr: number;
  readonly expectedErr: number;
}

export interface SessionLife {
  readonly id: SessionId;
  readonly openedZxid: Zxid;
  readonly openedMs: Millis;
  readonly timeoutMs: Millis;
  closedZxid: Zxid;
  closedMs: Millis;
  closedBy: 'client' | 'server' | undefined;
  /** Its ephemerals when it ended. */
  ephemerals: readonly string[];
}

export interface Expectation {
  readonly request: Request;
  readonly answer: Answer;
}

/** A connection did not receive what it should have, at one place in its stream. */
export interface Discrepancy {
  /**
   * `late`: a reply shows a change whose event is still due. `twice`, `unexpected`: an event that
   * is not due. `order`: an event that is due, but after another. `persistent`: any of these, under
   * a persistent or recursive watch. `restored`: any of these, for events of restored watches.
   */
  readonly kind: 'late' | 'twice' | 'unexpected' | 'order' | 'persistent' | 'restored';
  readonly text: string;
}

/** A container or a TTL znode that the server deleted by itself. */
export interface Sweep {
  readonly zxid: Zxid;
  readonly path: string;
  readonly isDue: boolean;
}

export interface DigestAt {
  readonly zxid: Zxid;
  readonly logged: bigint;
  readonly expected: bigint;
}

/** An event as it was sent, and whether its receiver may read the znode. */
export interface DeliveredEvent {
  readonly cnxn: CnxnRecord;
  readonly path: string;
  readonly zxid: Zxid;
  readonly mayRead: boolean;
}

export interface Replay {
  readonly txns: readonly ReplayedTxn[];
  readonly sessions: ReadonlyMap<SessionId, SessionLife>;
  /** For every write in the log, and for every read with a reply. */
  readonly writes: readonly Expectation[];
  readonly reads: readonly Expectation[];
  readonly discrepancies: readonly Discrepancy[];
  readonly events: readonly DeliveredEvent[];
  readonly sweeps: readonly Sweep[];
  readonly digests: readonly DigestAt[];
  readonly quotaDecisions: readonly QuotaDecision[];
  readonly lastZxid: Zxid;
  /** The tree and the sessions at the end. */
  readonly contents: ReadonlyMap<string, { readonly stat: Stat; readonly data: Data; readonly acl: readonly AclEntry[] }>;
  readonly liveSessions: ReadonlyMap<SessionId, Millis>;
  readonly digest: bigint;
  /** Txns that may have come from another request than the one they were traced to. */
  readonly doubtful: readonly DoubtfulTxn[];
}

/**
 * A txn that came from one of several requests with one session and one xid, none of which has a
 * reply.
 */
export interface DoubtfulTxn {
  readonly zxid: Zxid;
  /** The connections over which the other requests were sent. */
  readonly others: readonly string[];
}

/** For doubtful txns, by zxid: the connection over which the request was sent. */
export type Tracing = ReadonlyMap<Zxid, string>;
