import type { Millis, SessionId, Sid, Zxid } from '@tskeeper/protocol';
import type { CnxnContext } from './cnxn-context.ts';
import type { CnxnId } from './client-output.ts';
import type { QuotaTotals } from './tree/data-tree.ts';

/**
 * The state of a server for operators, as plain values and without side effects. Four letter words,
 * the admin port, metrics and the console all render these and use nothing else. Lists that can be
 * long are iterated, never built.
 */
export interface Inspector {
  role(): 'standalone' | 'leader' | 'follower' | 'observer' | 'looking' | 'read-only';
  lastZxid(): Zxid;
  /** As ZooKeeper counts: it has the root under two keys, so an empty tree has 5. */
  nodeCount(): number;
  /** Bytes of all paths and data, as ZooKeeper's approximate_data_size. */
  approximateDataBytes(): number;
  ephemeralCount(): number;
  /** Entries of the data and child watch tables together. */
  watchCount(): number;
  /** Limits and usage of the quotas of each namespace; a namespace is the first name of a path. */
  quotaTotals(): Iterable<QuotaTotals>;
  /** Requests admitted and not yet answered. */
  outstandingRequests(): number;
  /** Global sessions, of which every server of the ensemble knows. */
  sessionCount(): number;
  /** Sessions of which only this server knows (localSessionsEnabled). */
  localSessionCount(): number;
  /** All global sessions in no order, with the timeouts at their creation. */
  sessions(): Iterable<{ readonly session: SessionId; readonly timeoutMs: Millis }>;
  /**
   * True from its first txn to its last: a session that is being created is not included, one that
   * is being closed still is. True also for a local session of this server.
   */
  hasSession(session: SessionId): boolean;
  cnxnCount(): number;
  cnxns(): Iterable<CnxnInfo>;
  cnxn(id: CnxnId): CnxnInfo | undefined;
  /**
   * Global sessions by the time at which their bucket is due, on the monotonic clock, soonest first.
   * At a learner only those of its own clients; the leader decides when they expire.
   */
  sessionExpiry(): Iterable<{ readonly dueMs: Millis; readonly sessions: readonly SessionId[] }>;
  /** The same for local sessions; undefined unless they are enabled. */
  localSessionExpiry(): Iterable<{ readonly dueMs: Millis; readonly sessions: readonly SessionId[] }> | undefined;
  /** Ephemeral paths by owner. */
  ephemerals(): Iterable<{ readonly session: SessionId; readonly paths: Iterable<string> }>;
  /** Of the data watch table, as wchs, wchc and wchp show it. */
  watchSummary(): { readonly cnxns: number; readonly paths: number; readonly watches: number };
  watchesByCnxn(): Iterable<{ readonly cnxn: CnxnId; readonly session: SessionId; readonly paths: Iterable<string> }>;
  watchesByPath(): Iterable<{ readonly path: string; readonly sessions: Iterable<SessionId> }>;
  /** The digests remembered at every 128th zxid, oldest first, at most 1024. */
  digests(): Iterable<{ readonly zxid: Zxid; readonly digestVersion: number; readonly digest: bigint }>;
  /** Resets the counters of each connection (crst). */
  resetCnxnStats(): void;
  /** Additional state of a server of an ensemble; undefined for a standalone server. */
  ensemble(): EnsembleStatus | undefined;
  /** The observers that receive each commit from this leader or follower (obsr). */
  observers(): Iterable<ObserverStatus>;
  /** Resets the counters of each observer (orst). */
  resetObserverStats(): void;
}

/** The state of a server in its ensemble. */
export interface EnsembleStatus {
  readonly sid: Sid;
  /** ZooKeeper's name for it, whether or not clients are served. */
  readonly state: 'looking' | 'leading' | 'following' | 'observing';
  /** The current phase of Zab. */
  readonly phase: 'election' | 'discovery' | 'synchronization' | 'broadcast';
  /** How this server is being synchronised with its leader; undefined at all other times. */
  readonly syncMode: 'diff' | 'trunc' | 'snap' | undefined;
  /** The leader, which may be this server; undefined while it is looking. */
  readonly leader: Sid | undefined;
  /** The number of voters. */
  readonly voterCount: number;
  /** The active configuration, as in /zookeeper/config. */
  readonly configText: string;
  /**
   * A later configuration that the log has, or that a reconfiguration proposes, and that is not active
   * yet; undefined if there is none.
   */
  readonly pendingConfigText: string | undefined;
  /** A leader's view of its learners; undefined unless it leads and serves. */
  readonly leading: LeaderStatus | undefined;
  /**
   * The server that an observer learns from: its leader, or a follower that accepts observers;
   * undefined for other servers.
   */
  readonly learnerMaster: Sid | undefined;
  /**
   * How many observers receive each commit from this follower; undefined if it is none that accepts
   * observers.
   */
  readonly observersOfFollower: number | undefined;
}

/** An observer, as its leader or the follower that it learns from sees it. */
export interface ObserverStatus {
  /** The stream; the port knows its address and what waits for it. */
  readonly channel: number;
  /** Negative if it has none. */
  readonly sid: Sid;
  /** On the monotonic clock. */
  readonly connectedMs: Millis;
  readonly packetsReceived: number;
  /** Of these, requests of its clients. */
  readonly requestsReceived: number;
  /** The last txn that it has been informed of. */
  readonly lastZxid: Zxid;
}

export interface LeaderStatus {
  /** On the monotonic clock. */
  readonly sinceMs: Millis;
  /** Servers that have introduced themselves, synchronised or not. */
  readonly learners: number;
  /** Followers that receive each proposal, including those that do not vote. */
  readonly syncedFollowers: number;
  readonly syncedNonVotingFollowers: number;
  readonly syncedObservers: number;
  /** Syncs that wait for a commit, or for a quorum to confirm the leader. */
  readonly pendingSyncs: number;
  /** The server to which the lead is being given; undefined while it is given to none. */
  readonly transferTarget: Sid | undefined;
}

/** One connection as cons shows it. */
export interface CnxnInfo {
  readonly id: CnxnId;
  readonly context: CnxnContext;
  /** 0 before the handshake. */
  readonly session: SessionId;
  readonly sessionTimeoutMs: Millis;
  readonly establishedWallMs: Millis;
  readonly outstandingRequests: number;
  readonly packetsReceived: number;
  readonly packetsSent: number;
  /** Opcode of the last request, undefined before the first. */
  readonly lastOpCode: number | undefined;
  /** -1 before the first request that has one. */
  readonly lastCxid: number;
  readonly lastZxid: Zxid;
  /** On the monotonic clock. */
  readonly lastResponseMs: Millis;
  readonly lastLatencyMs: Millis;
  readonly minLatencyMs: Millis;
  /** Whole milliseconds, rounded down; 0 before the first reply. */
  readonly averageLatencyMs: Millis;
  readonly maxLatencyMs: Millis;
}
