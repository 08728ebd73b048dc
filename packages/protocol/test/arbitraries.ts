/** Any value of each record, for property tests. Numbers that are zxids or times stay in the range where they are exact. */
import * as fc from 'fast-check';
import {
  type Acl,
  type ChildWithData,
  type ConnectRequest,
  type ConnectResponse,
  type Id,
  type TxnLogEntry,
  type MultiMember,
  type MultiOp,
  type MultiResult,
  OpCode,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type SnapshotNode,
  type Stat,
  type StatPersisted,
  type Txn,
  type TxnDigest,
  type TxnHeader,
} from '../src/index.ts';

/** Plain objects, as decoders create them. */
function record<T>(fields: { [Key in keyof T]: fc.Arbitrary<T[Key]> }): fc.Arbitrary<T> {
  return fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

export const int32 = fc.integer({ min: -0x80000000, max: 0x7fffffff });
export const long = fc.oneof(fc.maxSafeInteger(), fc.constantFrom(-1, 0, 1, 2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 32, -(2 ** 32)));
export const bigLong = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
/** Any text that UTF-8 can encode: no lone surrogates. */
export const text = fc.string({ unit: 'binary', maxLength: 20 });
const nullableText = fc.option(text);
export const bytes: fc.Arbitrary<Buffer> = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const nullableBytes = fc.option(bytes);
const texts = fc.array(text, { maxLength: 5 });

export const id: fc.Arbitrary<Id> = record({ scheme: nullableText, id: nullableText });
export const acl: fc.Arbitrary<Acl> = record({ perms: int32, id });
const aclList = fc.array(acl, { maxLength: 4 });

export const stat: fc.Arbitrary<Stat> = record({
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int32,
  cversion: int32,
  aversion: int32,
  ephemeralOwner: bigLong,
  dataLength: int32,
  numChildren: int32,
  pzxid: long,
});

export const statPersisted: fc.Arbitrary<StatPersisted> = record({
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int32,
  cversion: int32,
  aversion: int32,
  ephemeralOwnerHigh: int32,
  ephemeralOwnerLow: int32,
  pzxid: long,
});

const readOnly = fc.option(fc.boolean(), { nil: undefined });

export const connectRequest: fc.Arbitrary<ConnectRequest> = record({
  protocolVersion: int32,
  lastZxidSeen: long,
  timeOut: int32,
  sessionId: bigLong,
  passwd: nullableBytes,
  readOnly,
});

export const connectResponse: fc.Arbitrary<ConnectResponse> = record({
  protocolVersion: int32,
  timeOut: int32,
  sessionId: bigLong,
  passwd: nullableBytes,
  readOnly,
});

const create = { path: text, data: nullableBytes, acl: aclList, flags: int32 };
const pathAndVersion = { path: text, version: int32 };
const pathAndWatch = { path: text, watch: fc.boolean() };
const pathAndType = record({ path: text, type: int32 });
const watches = { relativeZxid: long, dataWatches: texts, existWatches: texts, childWatches: texts };

const pathAndLimit = { path: text, limit: fc.integer({ min: 0, max: 0xffffffff }) };

const multiOp: fc.Arbitrary<MultiOp> = fc.oneof(
  record({ kind: fc.constantFrom('create', 'create2', 'createContainer'), ...create }),
  record({ kind: fc.constant('createTTL'), ...create, ttl: long }),
  record({ kind: fc.constantFrom('delete', 'check'), ...pathAndVersion }),
  record({ kind: fc.constant('setData'), path: text, data: nullableBytes, version: int32 }),
  record({ kind: fc.constantFrom('getData', 'getChildren'), ...pathAndWatch }),
  record({ kind: fc.constant('createIfNotExists'), ...create }),
  record({ kind: fc.constantFrom('checkNotExists', 'tryRemove'), ...pathAndVersion }),
  record({ kind: fc.constant('checkStat'), ...pathAndVersion, stat }),
  record({ kind: fc.constant('removeRecursive'), ...pathAndLimit }),
);

const multiResult: fc.Arbitrary<MultiResult> = fc.oneof(
  record({ kind: fc.constant('create'), path: text }),
  record({ kind: fc.constant('create2'), path: text, stat }),
  record({ kind: fc.constant('createIfNotExists'), path: text }),
  record({ kind: fc.constantFrom('delete', 'check', 'checkNotExists', 'checkStat', 'removeRecursive', 'tryRemove') }),
  record({ kind: fc.constant('setData'), stat }),
  record({ kind: fc.constant('getData'), data: nullableBytes, stat }),
  record({ kind: fc.constant('getChildren'), children: texts }),
  record({ kind: fc.constant('error'), err: int32 }),
);

const pageRequest = record({
  ...pathAndWatch,
  afterZxid: long,
  afterName: nullableText,
  untilZxid: long,
  countMax: int32,
  bytesMax: int32,
});
const pageEnd = { isLast: fc.boolean(), lastZxid: long, stat };
const childWithData: fc.Arbitrary<ChildWithData> = fc.oneof(
  record({ name: text, err: fc.constant(0 as const), data: nullableBytes, stat }),
  record({ name: text, err: fc.integer({ min: -127, max: -1 }) }),
);

const path = record({ path: text });
const statReply = record({ stat });
const getDataReply = record({ data: nullableBytes, stat });
const nothing = fc.constant(undefined);
const sidOrNone = fc.option(fc.nat(), { nil: undefined });
const multi = { request: record({ ops: fc.array(multiOp, { maxLength: 6 }) }), reply: record({ results: fc.array(multiResult) }) };
const createRequest = record(create);
const create2Reply = record({ path: text, stat });

/** A request and a reply for each operation. */
export const records: { [Name in OperationName]: { request: fc.Arbitrary<RequestOf<Name>>; reply: fc.Arbitrary<ReplyOf<Name>> } } = {
  create: { request: createRequest, reply: path },
  create2: { request: createRequest, reply: create2Reply },
  createContainer: { request: createRequest, reply: create2Reply },
  createTTL: { request: record({ ...create, ttl: long }), reply: create2Reply },
  delete: { request: record(pathAndVersion), reply: nothing },
  deleteContainer: { request: path, reply: nothing },
  exists: { request: record(pathAndWatch), reply: statReply },
  getData: { request: record(pathAndWatch), reply: getDataReply },
  setData: { request: record({ path: text, data: nullableBytes, version: int32 }), reply: statReply },
  getACL: { request: path, reply: record({ acl: aclList, stat }) },
  setACL: { request: record({ path: text, acl: aclList, version: int32 }), reply: statReply },
  getChildren: { request: record(pathAndWatch), reply: record({ children: texts }) },
  getChildren2: { request: record(pathAndWatch), reply: record({ children: texts, stat }) },
  filteredList: {
    request: record({ ...pathAndWatch, filter: fc.integer({ min: -128, max: 127 }) }),
    reply: record({ children: texts, stat }),
  },
  filteredListWithStatsAndData: {
    request: record({ ...pathAndWatch, filter: fc.integer({ min: -128, max: 127 }), withStat: fc.boolean(), withData: fc.boolean() }),
    reply: record({ children: texts, stat, stats: fc.array(stat, { maxLength: 3 }), data: fc.array(nullableBytes, { maxLength: 3 }) }),
  },
  listRecursive: { request: record(pathAndLimit), reply: record({ children: texts }) },
  checkNotExists: { request: record(pathAndVersion), reply: nothing },
  checkStat: { request: record({ ...pathAndVersion, stat }), reply: nothing },
  createIfNotExists: { request: createRequest, reply: path },
  removeRecursive: { request: record(pathAndLimit), reply: nothing },
  tryRemove: { request: record(pathAndVersion), reply: nothing },
  getChildrenPage: { request: pageRequest, reply: record({ children: texts, ...pageEnd }) },
  getChildrenDataPage: {
    request: pageRequest,
    reply: record({ children: fc.array(childWithData, { maxLength: 4 }), ...pageEnd }),
  },
  getAllChildrenNumber: { request: path, reply: record({ totalNumber: int32 }) },
  getEphemerals: { request: record({ prefixPath: nullableText }), reply: record({ ephemerals: texts }) },
  sync: { request: path, reply: path },
  ping: { request: nothing, reply: nothing },
  check: { request: record(pathAndVersion), reply: nothing },
  multi,
  multiRead: multi,
  reconfig: {
    request: record({ joiningServers: nullableText, leavingServers: nullableText, newMembers: nullableText, curConfigId: long }),
    reply: getDataReply,
  },
  checkWatches: { request: pathAndType, reply: nothing },
  removeWatches: { request: pathAndType, reply: nothing },
  addWatch: { request: record({ path: text, mode: int32 }), reply: record({ err: int32 }) },
  setWatches: { request: record(watches), reply: nothing },
  setWatches2: { request: record({ ...watches, persistentWatches: texts, persistentRecursiveWatches: texts }), reply: nothing },
  auth: { request: record({ type: int32, scheme: nullableText, auth: nullableBytes }), reply: nothing },
  sasl: { request: record({ token: nullableBytes }), reply: record({ token: nullableBytes }) },
  whoAmI: {
    request: nothing,
    reply: record({ clientInfo: fc.array(record({ authScheme: text, user: text }), { maxLength: 4 }) }),
  },
  getLeader: { request: nothing, reply: record({ leader: sidOrNone, epoch: int32 }) },
  transferLeader: { request: record({ target: sidOrNone }), reply: nothing },
  shedConnections: { request: record({ perMille: int32 }), reply: record({ count: int32 }) },
  closeSession: { request: nothing, reply: nothing },
};

const createTxnFields = { path: text, data: nullableBytes, acl: aclList, parentCVersion: int32 };

/** A type with a record that may follow it. */
const memberTxn: fc.Arbitrary<MultiMember> = fc.oneof(
  record({
    type: fc.constantFrom(OpCode.create, OpCode.create2),
    txn: record({ kind: fc.constant('create'), ...createTxnFields, ephemeral: fc.boolean() }),
  }),
  record({
    type: fc.constant(OpCode.createContainer),
    txn: record({ kind: fc.constant('createContainer'), ...createTxnFields }),
  }),
  record({ type: fc.constant(OpCode.createTTL), txn: record({ kind: fc.constant('createTTL'), ...createTxnFields, ttl: long }) }),
  record({
    type: fc.constantFrom(OpCode.delete, OpCode.deleteContainer),
    txn: record({ kind: fc.constant('delete'), path: text }),
  }),
  record({
    type: fc.constantFrom(OpCode.setData, OpCode.reconfig),
    txn: record({ kind: fc.constant('setData'), path: text, data: nullableBytes, version: int32 }),
  }),
  record({ type: fc.constant(OpCode.error), txn: record({ kind: fc.constant('error'), err: int32 }) }),
  record({ type: fc.constant(OpCode.check), txn: record({ kind: fc.constant('check'), path: text, version: int32 }) }),
);

const typedTxn: fc.Arbitrary<{ type: number; txn: Txn }> = fc.oneof(
  { weight: 7, arbitrary: memberTxn },
  record({
    type: fc.constant(OpCode.setACL),
    txn: record({ kind: fc.constant('setACL'), path: text, acl: aclList, version: int32 }),
  }),
  record({ type: fc.constant(OpCode.createSession), txn: record({ kind: fc.constant('createSession'), timeOut: int32 }) }),
  record({
    type: fc.constant(OpCode.closeSession),
    // An ephemeral's path is never empty; readCloseSessionTxn relies on it.
    txn: record({
      kind: fc.constant('closeSession'),
      paths2Delete: fc.option(fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 9 }), { maxLength: 4 })),
    }),
  }),
  record({
    type: fc.constant(OpCode.multi),
    txn: record({ kind: fc.constant('multi'), txns: fc.array(memberTxn, { maxLength: 5 }) }),
  }),
);

const txnDigest: fc.Arbitrary<TxnDigest> = record({ version: fc.constant(2), high: int32, low: int32 });

const txnHeader: fc.Arbitrary<Omit<TxnHeader, 'type'>> = record({
  clientHigh: int32,
  clientLow: int32,
  cxid: int32,
  zxid: long,
  time: long,
});

export const loggedTxn: fc.Arbitrary<TxnLogEntry> = record({
  header: txnHeader,
  typed: typedTxn,
  digest: fc.option(txnDigest, { nil: undefined }),
}).map(({ header, typed, digest }) => ({ header: { ...header, type: typed.type }, txn: typed.txn, digest }));

export const snapshotNode: fc.Arbitrary<SnapshotNode> = record({
  path: text.filter((value) => value !== '/'),
  data: nullableBytes,
  aclKey: long,
  stat: statPersisted,
});
