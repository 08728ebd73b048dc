/** What a run leaves behind for the checkers: everything clients sent and saw, what became of the server, and the log in the end. */
import type { LoggedTxn, Millis, OperationName, SessionId, Zxid } from '@tskeeper/protocol';

export interface Request {
  /** Of the session; together they name the request, since a client never uses an xid twice. Pings all have the same. */
  readonly session: SessionId;
  readonly xid: number;
  readonly name: OperationName;
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
  /** The client's address and port. */
  readonly key: string;
  readonly openedMs: Millis;
  /** What the handshake asked for; 0 for a new session. */
  readonly asked: SessionId;
  /** The session it carries; undefined as long as there is no answer, 0 when it was refused. */
  session: SessionId | undefined;
  timeoutMs: Millis;
  shakenMs: Millis;
  readonly requests: Request[];
  /** In the order they arrived. */
  readonly items: Item[];
  closedMs: Millis | undefined;
}

export interface ProcessRecord {
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

export interface Recording {
  readonly cnxns: CnxnRecord[];
  readonly processes: ProcessRecord[];
  /** When a whole frame from a client reached the machine, by the connection's key. */
  readonly arrivals: Map<string, Millis[]>;
  /** What no checker needs to look for: frames that cannot be read, requests never answered, a server that does not start. */
  readonly faults: string[];
  /** The whole log, as the last process left it. Times are of the monotonic clock. */
  log: { readonly atMs: Millis; readonly logged: LoggedTxn }[];
  /** How long servers have stood still, all in all. */
  pausedMs: Millis;
  /** Requests may be made to wait for others; then a session also counts as heard of when their turn comes. */
  readonly holdsRequests: boolean;
  /** Connections may not be read while much is under way; then what has arrived may not have been heard. */
  readonly stopsReading: boolean;
  readonly tickMs: Millis;
  endedMs: Millis;
}

export function newRecording(tickMs: Millis, holdsRequests: boolean, stopsReading: boolean): Recording {
  return {
    cnxns: [],
    processes: [],
    arrivals: new Map(),
    faults: [],
    log: [],
    pausedMs: 0,
    holdsRequests,
    stopsReading,
    tickMs,
    endedMs: 0,
  };
}
