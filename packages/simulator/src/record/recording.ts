/**
 * What a run leaves behind for the checkers: everything clients sent and saw, what became of each server process, and the log in the end.
 * It is taken at the wire and at the disk, so it holds for any client and knows nothing of how a server works.
 */
import type { ConnectRequest, LoggedTxn, Millis, OperationName, SessionId, Zxid } from '@tskeeper/protocol';
import type { EnsembleServer } from './quorum-rule.ts';
import type { PeerEvent } from './peer-event.ts';

export interface Request {
  /**
   * Of the session. A client never uses an xid twice, but for those that pings, auth and setWatches share; but a process that goes on with another's
   * session may use those of the other again (replay/whose-txn.ts).
   */
  readonly session: SessionId;
  readonly xid: number;
  readonly opCode: number;
  /** Undefined when no operation has this opcode. */
  readonly name: OperationName | undefined;
  readonly record: unknown;
  readonly sentMs: Millis;
  /** Undefined for ever when the connection broke: the outcome is not known then. */
  reply: Reply | undefined;
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
  /** The client's address; and what tells the connection from all others, which is empty until it is there. */
  readonly address: string;
  key: string;
  readonly openedMs: Millis;
  /** Undefined until the client has sent it. */
  handshake: ConnectRequest | undefined;
  /** The session it carries; undefined as long as there is no answer, 0 when it was refused. */
  session: SessionId | undefined;
  passwd: Buffer | undefined;
  timeoutMs: Millis;
  shakenMs: Millis;
  readonly requests: Request[];
  /** In the order they arrived. */
  readonly items: Item[];
  closedMs: Millis | undefined;
  /** When the client sent what is no request: from there on nothing it sends is anybody's. */
  garbledMs: Millis | undefined;
}

export function newCnxnRecord(cnxn: Pick<CnxnRecord, 'client' | 'server' | 'address' | 'openedMs'>): CnxnRecord {
  return {
    ...cnxn,
    key: '',
    handshake: undefined,
    session: undefined,
    passwd: undefined,
    timeoutMs: 0,
    shakenMs: 0,
    requests: [],
    items: [],
    closedMs: undefined,
    garbledMs: undefined,
  };
}

export interface ProcessRecord {
  readonly server: string;
  readonly startedMs: Millis;
  /** When clients could connect. */
  servingMs: Millis | undefined;
  /** When it said that it could not go on, and why. */
  failedMs: Millis | undefined;
  failure: string;
  /** Bytes handed to the network after that. */
  sentAfterFailure: number;
  /** When it was told to close, and when it was gone. */
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

/** What a server's wall clock showed beyond the world's own time, from that moment on. */
export interface WallClock {
  readonly server: string;
  readonly fromMs: Millis;
  readonly offsetMs: Millis;
}

/** What a server says of itself once everything has come to rest. */
export interface RestingServer {
  readonly server: string;
  /** No session is left: nothing that belongs to one may be there. */
  readonly watches: number;
  readonly sessions: number;
  readonly cnxns: number;
  readonly ephemerals: number;
  readonly outstanding: number;
}

/** What a server of an ensemble has when nothing happens any more. */
export interface QuietState {
  readonly server: string;
  readonly lastZxid: Zxid;
  readonly znodes: number;
  readonly bytes: number;
  readonly ephemerals: number;
  readonly sessions: number;
  /** By zxid. */
  readonly digests: ReadonlyMap<Zxid, bigint>;
}

/** The state that a start from this snapshot and the log behind it comes to. */
export interface SnapshotState {
  readonly file: string;
  readonly lastZxid: Zxid;
  /** By path: everything that is kept of a znode, as one text. */
  readonly znodes: ReadonlyMap<string, string>;
  readonly sessions: ReadonlyMap<SessionId, Millis>;
  readonly digest: bigint;
  /** The txn that the file is named after, and the digest of what is in it. */
  readonly content: { readonly zxid: Zxid; readonly digest: bigint };
}

/** A state that is there before the first start, for runs that begin near the end of a counter. */
export interface Beginning {
  readonly zxid: Zxid;
  readonly wallMs: Millis;
  /** Persistent and empty; `creates` is how many children it has had. */
  readonly znodes: readonly { readonly path: string; readonly creates: number }[];
}

export interface LimitsOfRun {
  readonly tickMs: Millis;
  readonly minSessionTimeoutMs: Millis;
  readonly maxSessionTimeoutMs: Millis;
  readonly extendedTypesEnabled: boolean;
  readonly containerMaxNeverUsedIntervalMs: Millis;
  readonly enforceQuota?: boolean | undefined;
  readonly watchesPerCnxnMax?: number | undefined;
  readonly identitiesPerCnxnMax?: number | undefined;
  readonly identityBytesPerCnxnMax?: number | undefined;
  /** The longest txn that servers of these limits read back from a disk, or from each other. */
  readonly txnBytesMax: number;
  /** Of an ensemble: for how long a server may be silent before it is given up. */
  readonly syncLimitTicks?: number | undefined;
  /** They live in real time, on a machine that has other things to do. */
  readonly clientsMayBeLate?: boolean | undefined;
}

export interface Recording {
  readonly limits: LimitsOfRun;
  beginning: Beginning;
  readonly cnxns: CnxnRecord[];
  readonly processes: ProcessRecord[];
  readonly wallClocks: WallClock[];
  /** How often the budget of a step ran out, by what was left over. */
  readonly stepsEnded: Map<string, number>;
  /** How many long writes had to wait until less was proposed and not applied: of clients of the server itself, and of a learner's. */
  readonly longWritesWaited: { own: number; passedOn: number };
  /** Bounds that made somebody wait, and how often, by the names of their options. */
  readonly limitsMet: Map<string, number>;
  /** The opcodes of writes that a server has refused to take on (ThrottledOp), by the connection's key. Its client may never have heard of it. */
  readonly turnedAway: Map<string, number[]>;
  /** The keys of the connections that a server has closed, or has seen the client close. */
  readonly ended: Set<string>;
  /** When a whole frame from a client reached a server's machine, by the connection's key. What comes after the server has closed the connection does not count: it is not read. */
  readonly arrivals: Map<string, Millis[]>;
  /** When a part of one did. */
  readonly fragments: Map<string, Millis[]>;
  /** What no checker needs to look for: frames that cannot be read, requests never answered, a server that does not start. */
  readonly faults: string[];
  /** The whole log, in the order of zxids. Times are those of the world; `bytes` is how long a txn is there. */
  log: { readonly atMs: Millis; readonly bytes: number; readonly logged: LoggedTxn }[];
  readonly snapshots: SnapshotState[];
  readonly resting: RestingServer[];
  /** All servers of an ensemble at one moment, each time. */
  readonly quietStates: (readonly QuietState[])[];
  /** Those who use the client library. */
  readonly libraryClients: Set<string>;
  /** What they were told by it. */
  readonly told: ToldRecord[];
  /** Servers that were short of memory at some time. */
  readonly shortages: Set<string>;
  /** When servers worked on a single request or commit for longer than one step. */
  readonly jobs: { readonly server: string; readonly fromMs: Millis; readonly toMs: Millis }[];
  /** When servers did not run. */
  readonly pauses: { readonly server: string; readonly fromMs: Millis; readonly toMs: Millis }[];
  /** What servers of an ensemble did among themselves. */
  readonly peers: PeerEvent[];
  /** The servers by name, and whether they vote. Empty for servers that stand alone. */
  readonly ensemble: Map<string, EnsembleServer>;
  /** What stands in /zookeeper/config; undefined for servers that stand alone. */
  configText: string | undefined;
  /** When something was wrong between two machines, or with one of them, that keeps word from passing as fast as it should. */
  readonly disturbances: Disturbance[];
  /** What was done to the world: faults, above all. */
  readonly noted: { readonly atMs: Millis; readonly text: string }[];
  /** Somebody has borne the number of a server, or asked for things on behalf of clients: nothing that clients were promised can be judged. */
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
 * Something a client library told its caller: an answer, by ZooKeeper's word for it or what became of it otherwise; an event; that a session has
 * expired; or that it is over itself, and how many calls it has not answered by then.
 */
export interface ToldRecord {
  readonly client: string;
  readonly atMs: Millis;
  readonly kind: 'answer' | 'event' | 'expired' | 'over';
  readonly text: string;
  /** Of a write: its value, which occurs once. */
  readonly key?: string | undefined;
}

export function newRecording(limits: LimitsOfRun): Recording {
  return {
    limits,
    beginning: { zxid: 0, wallMs: 0, znodes: [] },
    cnxns: [],
    processes: [],
    wallClocks: [],
    stepsEnded: new Map(),
    longWritesWaited: { own: 0, passedOn: 0 },
    limitsMet: new Map(),
    turnedAway: new Map(),
    ended: new Set(),
    arrivals: new Map(),
    fragments: new Map(),
    faults: [],
    log: [],
    snapshots: [],
    resting: [],
    quietStates: [],
    libraryClients: new Set(),
    told: [],
    shortages: new Set(),
    jobs: [],
    pauses: [],
    peers: [],
    ensemble: new Map(),
    configText: undefined,
    disturbances: [],
    noted: [],
    isImpersonated: false,
    endedMs: 0,
  };
}
