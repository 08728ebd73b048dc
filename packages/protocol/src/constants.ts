/**
 * The numbers of the client protocol, under ZooKeeper's names (ZooDefs, KeeperException.Code,
 * Watcher.Event).
 */

export const OpCode = {
  notification: 0,
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getACL: 6,
  setACL: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  deleteContainer: 20,
  createTTL: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  /** Of ClickHouse Keeper; see client/keeper-extensions.ts. */
  filteredList: 500,
  checkNotExists: 501,
  createIfNotExists: 502,
  removeRecursive: 503,
  checkStat: 504,
  tryRemove: 505,
  filteredListWithStatsAndData: 506,
  listRecursive: 507,
  /** Ours, like all that begin with the bytes `tk`; see client/children-pages.ts. */
  getChildrenPage: 0x746b_0001,
  getChildrenDataPage: 0x746b_0002,
  /** Ours, for operators: `tk` and 1; see client/operator-operations.ts. */
  getLeader: 0x746b_0101,
  transferLeader: 0x746b_0102,
  shedConnections: 0x746b_0103,
  /**
   * Ours, between servers: a multi that contains operations of Keeper, which a learner forwards. No
   * client sends it.
   */
  keeperMulti: 0x746b_0201,
  createSession: -10,
  closeSession: -11,
  error: -1,
} as const;
export type OpCode = (typeof OpCode)[keyof typeof OpCode];

/**
 * Result codes by the names that users know; the texts after "KeeperErrorCode = " are in
 * error-text.ts.
 */
export const ErrorCode = {
  Ok: 0,
  SystemError: -1,
  RuntimeInconsistency: -2,
  DataInconsistency: -3,
  ConnectionLoss: -4,
  MarshallingError: -5,
  Unimplemented: -6,
  OperationTimeout: -7,
  BadArguments: -8,
  UnknownSession: -12,
  NewConfigNoQuorum: -13,
  ReconfigInProgress: -14,
  ApiError: -100,
  NoNode: -101,
  NoAuth: -102,
  BadVersion: -103,
  NoChildrenForEphemerals: -108,
  NodeExists: -110,
  NotEmpty: -111,
  SessionExpired: -112,
  InvalidCallback: -113,
  InvalidACL: -114,
  AuthFailed: -115,
  SessionMoved: -118,
  NotReadOnly: -119,
  EphemeralOnLocalSession: -120,
  NoWatcher: -121,
  RequestTimeout: -122,
  ReconfigDisabled: -123,
  SessionClosedRequireSaslAuth: -124,
  QuotaExceeded: -125,
  ThrottledOp: -127,
} as const;
/** One of the numbers of `ErrorCode`. */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** xids that are not from a client's counter. */
export const Xid = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/**
 * The permissions of an ACL, as bits to be added (ZooDefs.Perms). `create` and `delete` apply to
 * children.
 */
export const Perms = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

export const EventType = {
  none: -1,
  nodeCreated: 1,
  nodeDeleted: 2,
  nodeDataChanged: 3,
  nodeChildrenChanged: 4,
  dataWatchRemoved: 5,
  childWatchRemoved: 6,
  persistentWatchRemoved: 7,
} as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

export const KeeperState = {
  unknown: -1,
  disconnected: 0,
  noSyncConnected: 1,
  syncConnected: 3,
  authFailed: 4,
  connectedReadOnly: 5,
  saslAuthenticated: 6,
  closed: 7,
  expired: -112,
} as const;

/** The type in checkWatches and removeWatches requests. */
export const WatcherType = { children: 1, data: 2, any: 3, persistent: 4, persistentRecursive: 5 } as const;

export const AddWatchMode = { persistent: 0, persistentRecursive: 1 } as const;

/** The flags of a create request. */
export const CreateMode = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentWithTtl: 5,
  persistentSequentialWithTtl: 6,
} as const;

/** jute.maxbuffer's default: the largest frame either side accepts, in bytes. */
export const juteMaxBufferDefault = 0xfffff;
