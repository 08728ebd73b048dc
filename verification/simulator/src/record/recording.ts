/**
 * The evidence of a run for the checkers: everything that clients sent and saw, what happened to
 * each server process, and the final log. It is taken at the wire and at the disk, so it works for
 * any client and knows nothing of how a server works.
 */
import type { LocalSessionMode } from '@tskeeper/core';
import {
  type ConnectRequest,
  type TxnLogEntry,
  type Millis,
  OpCode,
  type OperationName,
  type SessionId,
  type Sid,
  sessionIdOf,
  type Zxid,
} from '@tskeeper/protocol';
import type { EnsembleServer } from './quorum-rule.ts';
import type { PeerEvent } from './peer-event.ts';

export interface Request {
  /**
   * Number of the request in its session. A client never uses an xid twice, apart from those shared
   * by pings, auth and setWatches; but a process that resumes another's session may reuse its xids
   * (replay/request-of-txn.ts).
   */
  readonly session: SessionId;
  readonly xid: number;
  readonly opCode: number;
  /** Undefined if no operation has this opcode. */
  readonly name: OperationName | undefined;
  readonly record: unknown;
  readonly sentMs: Millis;
  /** Undefined for good if the connection broke: the outcome is unknown then. */
  reply: Reply | undefined;
  /**
   * The closeSession of a session that is not in the log: a local one. Its reply keeps its place
   * like that of a read. Set when the log has been read.
   */
  closesLocally?: boolean | undefined;
}

export interface Reply {
  readonly atMs: Millis;
  readonly zxid: Zxid;
  readonly err: number;
  readonly body: unknown;
}

export type Item =
  | { readonly kind: 'reply'; readonly atMs: Millis; readonly xid: number; readonly zxid: Zxid; readonly request: Request }
  | { readonly kind: 'event'; readonly atMs: Millis; readonly zxid: Zxid; readonly type: number; readonly path: string };

/** One connection, as its client saw it. */
export interface CnxnRecord {
  readonly client: string;
  readonly server: string;
  /**
   * The client's address, and the unique key of the connection, which is empty until it is
   * established.
   */
  readonly address: string;
  key: string;
  /** The port of the server. Undefined if every server has only one. */
  readonly port?: number | undefined;
  readonly openedMs: Millis;
  /** Undefined until the client has sent it. */
  handshake: ConnectRequest | undefined;
  /** The session that it has; undefined until there is a reply, 0 if it was refused. */
  session: SessionId | undefined;
  passwd: Buffer | undefined;
  timeoutMs: Millis;
  handshakeMs: Millis;
  readonly requests: Request[];
  /** In the order of arrival. */
  readonly items: Item[];
  closedMs: Millis | undefined;
  /** When the client sent bytes that are not a request: its later bytes have no meaning. */
  malformedMs: Millis | undefined;
  /** In read-only mode: the zxid of the state that the server has shown all the time. */
  readonly shownZxid?: Zxid;
}

export function newCnxnRecord(cnxn: Pick<CnxnRecord, 'client' | 'server' | 'address' | 'port' | 'openedMs'>): CnxnRecord {
  return {
    ...cnxn,
    key: '',
    handshake: undefined,
    session: undefined,
    passwd: undefined,
    timeoutMs: 0,
    handshakeMs: 0,
    requests: [],
    items: [],
    closedMs: undefined,
    malformedMs: undefined,
  };
}

export interface ProcessRecord {
  readonly server: string;
  readonly startedMs: Millis;
  /** When clients could connect. */
  servingMs: Millis | undefined;
  /** When it reported a fatal error, and which. */
  failedMs: Millis | undefined;
  failure: string;
  /** Bytes handed to the network after that. */
  sentAfterFailure: number;
  /** When it was asked to close, and when it was gone. */
  closingMs: Millis | undefined;
  endedMs: Millis | undefined;
}

export function newProcessRecord(server: string, startedMs: Millis): ProcessRecord {
  return {
    server,
    startedMs,
    servingMs: undefined,
    failedMs: undefined,
    failure: '',
    sentAfterFailure: 0,
    closingMs: undefined,
    endedMs: undefined,
  };
}

/** The offset of a server's wall clock from the world's time, from that moment on. */
export interface WallClock {
  readonly server: string;
  readonly fromMs: Millis;
  readonly offsetMs: Millis;
}

/** What a server holds once no session is left. */
export interface LeftoverCounts {
  readonly server: string;
  /** No session is left, so all counts must be 0. */
  readonly watches: number;
  readonly sessions: number;
  readonly cnxns: number;
  readonly ephemerals: number;
  readonly outstanding: number;
}

/** The state of a server of an ensemble when no work is pending. */
export interface QuiescentState {
  readonly server: string;
  readonly lastZxid: Zxid;
  readonly znodes: number;
  readonly bytes: number;
  readonly ephemerals: number;
  readonly sessions: number;
  /** Its active configuration, where that can change. */
  readonly configText?: string | undefined;
  readonly role?: string | undefined;
  /** By zxid. */
  readonly digests: ReadonlyMap<Zxid, bigint>;
}

/** The state to which a start from this snapshot and the log after it leads. */
export interface SnapshotState {
  readonly file: string;
  readonly lastZxid: Zxid;
  /** By path: everything that is stored for a znode, as one text. */
  readonly znodes: ReadonlyMap<string, string>;
  readonly sessions: ReadonlyMap<SessionId, Millis>;
  readonly digest: bigint;
  /** The zxid in the file's name, and the digest of the file's content. */
  readonly content: { readonly zxid: Zxid; readonly digest: bigint };
}

/** A state before the first start, for runs that begin near the end of a counter. */
export interface SeedState {
  readonly zxid: Zxid;
  readonly wallMs: Millis;
  /**
   * Persistent and, without `data`, empty; `creates` is the number of children created so far. A
   * record of such a number is in /zookeeper/sequences.
   */
  readonly znodes: readonly { readonly path: string; readonly creates: number; readonly data?: string }[];
}

/** The children that a client of the library got, page by page. */
export interface Listing {
  readonly client: string;
  readonly path: string;
  /** The last txns that the client had seen before and afterwards. */
  readonly fromZxid: Zxid;
  readonly toZxid: Zxid;
  readonly fromMs: Millis;
  readonly toMs: Millis;
  readonly names: readonly string[];
}

export interface RunLimits {
  readonly tickMs: Millis;
  readonly minSessionTimeoutMs: Millis;
  readonly maxSessionTimeoutMs: Millis;
  readonly extendedTypesEnabled: boolean;
  readonly containerMaxNeverUsedIntervalMs: Millis;
  readonly enforceQuota?: boolean | undefined;
  readonly localSessions?: LocalSessionMode | undefined;
  readonly watchesPerCnxnMax?: number | undefined;
  readonly juteMaxBuffer?: number | undefined;
  readonly keeperExtensions?: boolean | undefined;
  readonly wideSequences?: boolean | undefined;
  /** The identity that is super. */
  readonly superDigest?: string | undefined;
  /** Users of SASL, with their passwords. */
  readonly saslUsers?: Readonly<Record<string, string>> | undefined;
  /** Whether clients may change the membership, and how many voters there must be. */
  readonly reconfigEnabled?: boolean | undefined;
  readonly votersMin?: number | undefined;
  /** The server that an oracle may let continue alone where it is one of two voters; undefined: there is no oracle. */
  readonly oracleSid?: Sid | undefined;
  readonly multiAddressEnabled?: boolean | undefined;
  readonly identitiesPerCnxnMax?: number | undefined;
  readonly identityBytesPerCnxnMax?: number | undefined;
  /** The longest txn that servers with these limits read back from a disk, or from each other. */
  readonly txnBytesMax: number;
  /** For an ensemble: how long a server may be silent before it is dropped. */
  readonly syncLimitTicks?: number | undefined;
  /** The run takes place in real time, on a machine that does other work. */
  readonly isRealTime?: boolean | undefined;
}

export interface Recording {
  readonly limits: RunLimits;
  seedState: SeedState;
  readonly cnxns: CnxnRecord[];
  /**
   * Connections that a server in read-only mode answered. They are not among the others: such a
   * server promises less.
   */
  readonly readOnlyCnxns: CnxnRecord[];
  readonly processes: ProcessRecord[];
  readonly wallClocks: WallClock[];
  /** How often the budget of a step ran out, by the kind of work left over. */
  readonly stepsYielded: Map<string, number>;
  /**
   * Number of long writes that were delayed until fewer txns were outstanding: of the server's own
   * clients, and of a learner's.
   */
  readonly longWritesQueued: { own: number; passedOn: number };
  /** How often limits were reached, by the names of their options. */
  readonly limitsReached: Map<string, number>;
  /**
   * By connection key: the opcodes of writes that a server has turned away (ThrottledOp). The
   * client may not have received the reply.
   */
  readonly throttledOps: Map<string, number[]>;
  /** The keys of connections that a server has closed, or has seen the client close. */
  readonly endedCnxns: Set<string>;
  /**
   * By connection key: when a complete frame from a client reached a server's machine. Frames that
   * arrive after the server has closed the connection do not count: they are not read.
   */
  readonly frameArrivals: Map<string, Millis[]>;
  /** By connection key: when a part of a frame arrived. */
  readonly partialArrivals: Map<string, Millis[]>;
  /**
   * Violations found without a checker: unreadable frames, requests without a reply, a server that
   * does not start.
   */
  readonly violations: string[];
  /**
   * The whole log, in the order of zxids. Times are those of the world; `bytes` is the length of a
   * txn in the log.
   */
  log: { readonly atMs: Millis; readonly bytes: number; readonly logged: TxnLogEntry }[];
  /** Reconfigurations in some log that are not part of the history. */
  abandonedReconfigs: readonly { readonly zxid: Zxid; readonly text: string }[];
  readonly snapshots: SnapshotState[];
  readonly leftovers: LeftoverCounts[];
  /** The states of all servers of an ensemble at one moment, each time. */
  readonly quiescentStates: (readonly QuiescentState[])[];
  /** Clients that use the client library. */
  readonly libraryClients: Set<string>;
  /** What the library reported to them. */
  readonly clientDeliveries: ClientDelivery[];
  /** Listings of children that the library has finished. */
  readonly listings: Listing[];
  /** Sessions that an operator has ended, or asked a server to end. */
  readonly endedByOperator: Set<SessionId>;
  /** Servers that were short of memory at some time. */
  readonly memoryPressuredServers: Set<string>;
  /** When servers worked on a single request or commit for longer than one step. */
  readonly jobs: { readonly server: string; readonly fromMs: Millis; readonly toMs: Millis }[];
  /** When servers were paused. */
  readonly pauses: { readonly server: string; readonly fromMs: Millis; readonly toMs: Millis }[];
  /** What servers of an ensemble did among themselves. */
  readonly peerEvents: PeerEvent[];
  /** The servers by name, and whether they vote. Empty for standalone servers. */
  readonly ensemble: Map<string, EnsembleServer>;
  /** The longest delay between two servers, in each direction, that is there all the time. */
  linkDistanceMs: Millis;
  /** The answers of the oracle to the server that it favours, from the first on. */
  readonly oracleAnswers: { readonly atMs: Millis; readonly isYes: boolean }[];
  /** The content of /zookeeper/config; undefined for standalone servers. */
  configText: string | undefined;
  /**
   * Times when a fault between two machines, or of one of them, kept messages from passing as fast
   * as they should.
   */
  readonly disturbances: Disturbance[];
  /** What was done to the world, above all faults. */
  readonly annotations: { readonly atMs: Millis; readonly text: string }[];
  /**
   * A peer has used a server's id, or sent requests as those of clients: no guarantee to clients
   * can be checked.
   */
  isImpersonated: boolean;
  endedMs: Millis;
}

/** A link that is cut or slow, or a machine that is. */
export interface Disturbance {
  readonly machines: readonly string[];
  readonly fromMs: Millis;
  toMs: Millis;
}

/**
 * A report of a client library to its caller: a reply, by ZooKeeper's name of the error or by its
 * outcome; an event; that a session has expired; or that the client itself has closed, and how many
 * calls it had not settled.
 */
export interface ClientDelivery {
  readonly client: string;
  readonly atMs: Millis;
  readonly kind: 'reply' | 'event' | 'expired' | 'closed';
  readonly text: string;
  /** For a write: its value, which is unique. */
  readonly key?: string | undefined;
}

export function newRecording(limits: RunLimits): Recording {
  return {
    limits,
    seedState: { zxid: 0, wallMs: 0, znodes: [] },
    cnxns: [],
    readOnlyCnxns: [],
    processes: [],
    wallClocks: [],
    stepsYielded: new Map(),
    longWritesQueued: { own: 0, passedOn: 0 },
    limitsReached: new Map(),
    throttledOps: new Map(),
    endedCnxns: new Set(),
    frameArrivals: new Map(),
    partialArrivals: new Map(),
    violations: [],
    log: [],
    abandonedReconfigs: [],
    snapshots: [],
    leftovers: [],
    quiescentStates: [],
    libraryClients: new Set(),
    clientDeliveries: [],
    listings: [],
    endedByOperator: new Set(),
    memoryPressuredServers: new Set(),
    jobs: [],
    pauses: [],
    peerEvents: [],
    ensemble: new Map(),
    linkDistanceMs: 0,
    oracleAnswers: [],
    configText: undefined,
    disturbances: [],
    annotations: [],
    isImpersonated: false,
    endedMs: 0,
  };
}

/** Marks the requests that ended local sessions. `log` is complete. */
export function markLocalCloses({ cnxns, limits, log }: Recording): void {
  if ((limits.localSessions ?? 'disabled') === 'disabled') return;
  const global = new Set<SessionId>();
  for (const { logged } of log) {
    const { type, clientHigh, clientLow } = logged.header;
    if (type === OpCode.createSession) global.add(sessionIdOf(clientHigh, clientLow));
  }
  for (const { requests } of cnxns) {
    for (const request of requests) {
      if (request.name === 'closeSession' && request.reply !== undefined && !global.has(request.session)) request.closesLocally = true;
    }
  }
}
