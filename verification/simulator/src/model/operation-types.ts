/**
 * What a client can request and receive, as plain values. The reference model, the generator and
 * the wire codec of these tests share these shapes and nothing else.
 *
 * Data is text of one character per byte (latin1), so that values are easy to compare, print and
 * shrink.
 */

export interface AclEntry {
  readonly perms: number;
  readonly scheme: string | null;
  readonly id: string | null;
}

export type Data = string | null;
export type Path = string | null;

export interface CreateFields {
  readonly path: Path;
  readonly data: Data;
  readonly acl: readonly AclEntry[] | null;
  readonly flags: number;
}

export type WriteStep =
  | ({ readonly kind: 'create' | 'create2' | 'createContainer' } & CreateFields)
  | ({ readonly kind: 'createTTL'; readonly ttl: number } & CreateFields)
  | { readonly kind: 'delete'; readonly path: Path; readonly version: number }
  | { readonly kind: 'setData'; readonly path: Path; readonly data: Data; readonly version: number }
  | { readonly kind: 'check'; readonly path: Path; readonly version: number }
  | KeeperStep;

/** Operations of ClickHouse Keeper that may be steps of a multi. */
export type KeeperStep =
  | ({ readonly kind: 'createIfNotExists' } & CreateFields)
  | { readonly kind: 'checkNotExists' | 'tryRemove'; readonly path: Path; readonly version: number }
  | { readonly kind: 'removeRecursive'; readonly path: Path; readonly limit: number }
  | { readonly kind: 'checkStat'; readonly path: Path; readonly version: number; readonly stat: Stat };

export type ReadStep = { readonly kind: 'getData' | 'getChildren'; readonly path: Path; readonly watch: boolean };

export interface PageFields {
  readonly path: Path;
  readonly watch: boolean;
  readonly afterZxid: number;
  readonly afterName: string | null;
  readonly untilZxid: number;
  readonly countMax: number;
  readonly bytesMax: number;
}

/** A child of a page; `data` and `stat` only where they were requested and may be read. */
export interface PageChild {
  readonly name: string;
  readonly err?: number;
  readonly data?: Data;
  readonly stat?: Stat;
}

/** Children in their order, and whether no more follow. */
export interface Page {
  readonly children: readonly PageChild[];
  readonly isLast: boolean;
  readonly lastZxid: number;
}

export interface WatchLists {
  readonly dataWatches: readonly string[];
  readonly existWatches: readonly string[];
  readonly childWatches: readonly string[];
}

export type Operation =
  | WriteStep
  | ReadStep
  | { readonly kind: 'setACL'; readonly path: Path; readonly acl: readonly AclEntry[] | null; readonly version: number }
  | { readonly kind: 'exists' | 'getChildren2'; readonly path: Path; readonly watch: boolean }
  | { readonly kind: 'filteredList'; readonly path: Path; readonly watch: boolean; readonly filter: number }
  | {
      readonly kind: 'filteredListWithStatsAndData';
      readonly path: Path;
      readonly watch: boolean;
      readonly filter: number;
      readonly withStat: boolean;
      readonly withData: boolean;
    }
  | { readonly kind: 'listRecursive'; readonly path: Path; readonly limit: number }
  | ({ readonly kind: 'getChildrenPage' | 'getChildrenDataPage' } & PageFields)
  | { readonly kind: 'getACL' | 'sync' | 'getAllChildrenNumber' | 'deleteContainer'; readonly path: Path }
  | { readonly kind: 'getEphemerals'; readonly prefixPath: Path }
  | { readonly kind: 'ping' | 'whoAmI' | 'closeSession' }
  /** Requests of operators, which no client of these tests sends. */
  | { readonly kind: 'getLeader' | 'transferLeader' | 'shedConnections' }
  | { readonly kind: 'multi' | 'multiRead'; readonly steps: readonly (WriteStep | ReadStep)[] }
  | {
      readonly kind: 'reconfig';
      readonly joiningServers: string | null;
      readonly leavingServers: string | null;
      readonly newMembers: string | null;
      readonly curConfigId: number;
    }
  | { readonly kind: 'checkWatches' | 'removeWatches'; readonly path: string; readonly type: number }
  | { readonly kind: 'addWatch'; readonly path: string; readonly mode: number }
  | ({ readonly kind: 'setWatches'; readonly relativeZxid: number } & WatchLists)
  | ({
      readonly kind: 'setWatches2';
      readonly relativeZxid: number;
      readonly persistentWatches: readonly string[];
      readonly persistentRecursiveWatches: readonly string[];
    } & WatchLists)
  | { readonly kind: 'auth'; readonly scheme: string | null; readonly auth: Data }
  | { readonly kind: 'sasl'; readonly token: Data }
  /** An opcode that no server knows, with an arbitrary payload. */
  | { readonly kind: 'unknown'; readonly opCode: number }
  /** A known opcode whose record is truncated: `bytes` is what is left of it. */
  | { readonly kind: 'undecodable'; readonly opCode: number; readonly bytes: string };

export type OperationKind = Operation['kind'];

export interface Stat {
  readonly czxid: number;
  readonly mzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: number;
}

/**
 * The record after a reply header. Lists without a defined order are sorted on both sides before
 * they are compared.
 */
export interface Body {
  readonly path?: string | null;
  readonly data?: Data;
  readonly stat?: Stat;
  readonly children?: readonly string[];
  /** Of a list with Stats and data; `stat` and `data` only where they were requested. */
  readonly contents?: readonly PageChild[];
  readonly page?: Page;
  readonly acl?: readonly AclEntry[];
  readonly ephemerals?: readonly string[];
  readonly totalNumber?: number;
  readonly clientInfo?: readonly { readonly authScheme: string; readonly user: string }[];
  readonly err?: number;
  readonly token?: Data;
  readonly results?: readonly MultiResult[];
}

export interface MultiResult {
  readonly type: number;
  readonly err: number;
  readonly body?: Body;
}

export interface Reply {
  readonly kind: 'reply';
  readonly xid: number;
  readonly zxid: number;
  readonly err: number;
  readonly body: Body | null;
}

export interface WatchEvent {
  readonly kind: 'event';
  readonly zxid: number;
  readonly type: number;
  readonly state: number;
  readonly path: string;
}

export interface ConnectRequest {
  readonly protocolVersion: number;
  readonly lastZxidSeen: number;
  readonly timeOut: number;
  readonly sessionId: bigint;
  readonly passwd: Data;
  /** Very old clients do not send it. */
  readonly readOnly?: boolean;
}

export interface ConnectResponse {
  readonly kind: 'connected';
  readonly timeOut: number;
  readonly sessionId: bigint;
  readonly passwd: Data;
  readonly readOnly?: boolean;
}

/** The server closes the connection after it has sent everything before. */
export interface Closed {
  readonly kind: 'closed';
}

export type Message = Reply | WatchEvent | ConnectResponse | Closed;
