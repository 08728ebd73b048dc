/**
 * Every operation of clients: its opcode, the record of its request, and the record of its reply.
 *
 * `operations.getData.request.read(reader)` is typed; `operationOf(opCode)` finds the same by
 * number, for callers that do not know the operation.
 */
import { ErrorCode, OpCode } from '../constants.ts';
import {
  readChildrenDataPageReply,
  readChildrenPageReply,
  readChildrenPageRequest,
  writeChildrenDataPageReply,
  writeChildrenPageReply,
  writeChildrenPageRequest,
} from './children-pages.ts';
import {
  readCheckStatRequest,
  readFilteredListRequest,
  readFilteredListWithStatsAndDataReply,
  readFilteredListWithStatsAndDataRequest,
  readListRecursiveReply,
  readRecursiveRequest,
  writeCheckStatRequest,
  writeFilteredListRequest,
  writeFilteredListWithStatsAndDataReply,
  writeFilteredListWithStatsAndDataRequest,
  writeListRecursiveReply,
  writeRecursiveRequest,
} from './keeper-extensions.ts';
import {
  readGetLeaderReply,
  readShedReply,
  readShedRequest,
  readTransferLeaderRequest,
  writeGetLeaderReply,
  writeShedReply,
  writeShedRequest,
  writeTransferLeaderRequest,
} from './operator-operations.ts';
import { readMultiReply, readMultiRequest, writeMultiReply, writeMultiRequest } from './multi.ts';
import type { Reader } from '../jute/reader.ts';
import * as replies from './replies.ts';
import * as requests from './requests.ts';
import type { Writer } from '../jute/writer.ts';

/** Decodes and encodes one record. */
export interface Codec<T> {
  read(reader: Reader): T;
  write(writer: Writer, value: T): void;
}

export interface Operation<Request = unknown, Reply = unknown> {
  readonly opCode: OpCode;
  readonly request: Codec<Request>;
  readonly reply: Codec<Reply>;
}

/** No record. */
const none: Codec<undefined> = { read() {}, write() {} };

function codec<T>(read: (reader: Reader) => T, write: (writer: Writer, value: T) => void): Codec<T> {
  return { read, write };
}

const create = codec(requests.readCreateRequest, requests.writeCreateRequest);
const createTTL = codec(requests.readCreateTTLRequest, requests.writeCreateTTLRequest);
const deleteOrCheck = codec(requests.readDeleteRequest, requests.writeDeleteRequest);
const pathAndWatch = codec(requests.readGetDataRequest, requests.writeGetDataRequest);
const path = codec(requests.readPathRequest, requests.writePathRequest);
const checkWatches = codec(requests.readCheckWatchesRequest, requests.writeCheckWatchesRequest);
const childrenPage = codec(readChildrenPageRequest, writeChildrenPageRequest);
const multi = codec(readMultiRequest, writeMultiRequest);
const recursive = codec(readRecursiveRequest, writeRecursiveRequest);

const pathReply = codec(replies.readCreateReply, replies.writeCreateReply);
const create2Reply = codec(replies.readCreate2Reply, replies.writeCreate2Reply);
const statReply = codec(replies.readStatReply, replies.writeStatReply);
const getDataReply = codec(replies.readGetDataReply, replies.writeGetDataReply);
const multiReply = codec(readMultiReply, writeMultiReply);

export const operations = {
  create: { opCode: OpCode.create, request: create, reply: pathReply },
  create2: { opCode: OpCode.create2, request: create, reply: create2Reply },
  createContainer: { opCode: OpCode.createContainer, request: create, reply: create2Reply },
  createTTL: { opCode: OpCode.createTTL, request: createTTL, reply: create2Reply },
  delete: { opCode: OpCode.delete, request: deleteOrCheck, reply: none },
  deleteContainer: { opCode: OpCode.deleteContainer, request: path, reply: none },
  exists: { opCode: OpCode.exists, request: pathAndWatch, reply: statReply },
  getData: { opCode: OpCode.getData, request: pathAndWatch, reply: getDataReply },
  setData: { opCode: OpCode.setData, request: codec(requests.readSetDataRequest, requests.writeSetDataRequest), reply: statReply },
  getACL: { opCode: OpCode.getACL, request: path, reply: codec(replies.readGetACLReply, replies.writeGetACLReply) },
  setACL: { opCode: OpCode.setACL, request: codec(requests.readSetACLRequest, requests.writeSetACLRequest), reply: statReply },
  getChildren: {
    opCode: OpCode.getChildren,
    request: pathAndWatch,
    reply: codec(replies.readGetChildrenReply, replies.writeGetChildrenReply),
  },
  getChildren2: {
    opCode: OpCode.getChildren2,
    request: pathAndWatch,
    reply: codec(replies.readGetChildren2Reply, replies.writeGetChildren2Reply),
  },
  getChildrenPage: {
    opCode: OpCode.getChildrenPage,
    request: childrenPage,
    reply: codec(readChildrenPageReply, writeChildrenPageReply),
  },
  getChildrenDataPage: {
    opCode: OpCode.getChildrenDataPage,
    request: childrenPage,
    reply: codec(readChildrenDataPageReply, writeChildrenDataPageReply),
  },
  filteredList: {
    opCode: OpCode.filteredList,
    request: codec(readFilteredListRequest, writeFilteredListRequest),
    reply: codec(replies.readGetChildren2Reply, replies.writeGetChildren2Reply),
  },
  filteredListWithStatsAndData: {
    opCode: OpCode.filteredListWithStatsAndData,
    request: codec(readFilteredListWithStatsAndDataRequest, writeFilteredListWithStatsAndDataRequest),
    reply: codec(readFilteredListWithStatsAndDataReply, writeFilteredListWithStatsAndDataReply),
  },
  listRecursive: {
    opCode: OpCode.listRecursive,
    request: recursive,
    reply: codec(readListRecursiveReply, writeListRecursiveReply),
  },
  checkNotExists: { opCode: OpCode.checkNotExists, request: deleteOrCheck, reply: none },
  checkStat: { opCode: OpCode.checkStat, request: codec(readCheckStatRequest, writeCheckStatRequest), reply: none },
  createIfNotExists: { opCode: OpCode.createIfNotExists, request: create, reply: pathReply },
  removeRecursive: { opCode: OpCode.removeRecursive, request: recursive, reply: none },
  tryRemove: { opCode: OpCode.tryRemove, request: deleteOrCheck, reply: none },
  getAllChildrenNumber: {
    opCode: OpCode.getAllChildrenNumber,
    request: path,
    reply: codec(replies.readGetAllChildrenNumberReply, replies.writeGetAllChildrenNumberReply),
  },
  getEphemerals: {
    opCode: OpCode.getEphemerals,
    request: codec(requests.readGetEphemeralsRequest, requests.writeGetEphemeralsRequest),
    reply: codec(replies.readGetEphemeralsReply, replies.writeGetEphemeralsReply),
  },
  sync: { opCode: OpCode.sync, request: path, reply: pathReply },
  ping: { opCode: OpCode.ping, request: none, reply: none },
  /** Only as part of a multi. */
  check: { opCode: OpCode.check, request: deleteOrCheck, reply: none },
  multi: { opCode: OpCode.multi, request: multi, reply: multiReply },
  multiRead: { opCode: OpCode.multiRead, request: multi, reply: multiReply },
  reconfig: {
    opCode: OpCode.reconfig,
    request: codec(requests.readReconfigRequest, requests.writeReconfigRequest),
    reply: getDataReply,
  },
  checkWatches: { opCode: OpCode.checkWatches, request: checkWatches, reply: none },
  removeWatches: { opCode: OpCode.removeWatches, request: checkWatches, reply: none },
  addWatch: {
    opCode: OpCode.addWatch,
    request: codec(requests.readAddWatchRequest, requests.writeAddWatchRequest),
    reply: codec(replies.readErrorReply, replies.writeErrorReply),
  },
  setWatches: {
    opCode: OpCode.setWatches,
    request: codec(requests.readSetWatchesRequest, requests.writeSetWatchesRequest),
    reply: none,
  },
  setWatches2: {
    opCode: OpCode.setWatches2,
    request: codec(requests.readSetWatches2Request, requests.writeSetWatches2Request),
    reply: none,
  },
  auth: { opCode: OpCode.auth, request: codec(requests.readAuthRequest, requests.writeAuthRequest), reply: none },
  sasl: {
    opCode: OpCode.sasl,
    request: codec(requests.readSaslRequest, requests.writeSaslRequest),
    reply: codec(replies.readSaslReply, replies.writeSaslReply),
  },
  whoAmI: { opCode: OpCode.whoAmI, request: none, reply: codec(replies.readWhoAmIReply, replies.writeWhoAmIReply) },
  getLeader: { opCode: OpCode.getLeader, request: none, reply: codec(readGetLeaderReply, writeGetLeaderReply) },
  transferLeader: {
    opCode: OpCode.transferLeader,
    request: codec(readTransferLeaderRequest, writeTransferLeaderRequest),
    reply: none,
  },
  shedConnections: {
    opCode: OpCode.shedConnections,
    request: codec(readShedRequest, writeShedRequest),
    reply: codec(readShedReply, writeShedReply),
  },
  closeSession: { opCode: OpCode.closeSession, request: none, reply: none },
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

/** The record of an operation's request. */
export type RequestOf<Name extends OperationName> = (typeof operations)[Name] extends Operation<infer Request, infer _> ? Request : never;
/** The record of an operation's reply. */
export type ReplyOf<Name extends OperationName> = (typeof operations)[Name] extends Operation<infer _, infer Reply> ? Reply : never;

const byOpCode = new Map<number, Operation & { readonly name: OperationName }>();
for (const [name, operation] of Object.entries(operations)) {
  byOpCode.set(operation.opCode, { name: name as OperationName, ...operation });
}

/** The operation with this number, or undefined: a client may send any. */
export function operationOf(opCode: number): (Operation & { readonly name: OperationName }) | undefined {
  return byOpCode.get(opCode);
}

/**
 * The record after a ReplyHeader, or undefined if there is none. An error has no record, except
 * that SASL still sends its token, and that an empty list of results may follow a multiRead refused
 * because it contains writes.
 */
export function readReplyBody(reader: Reader, operation: Operation, err: number): unknown {
  if (err === ErrorCode.Ok) return operation.reply.read(reader);
  const mayHaveBody = operation.opCode === OpCode.sasl || operation.opCode === OpCode.multiRead;
  return mayHaveBody && reader.remaining > 0 ? operation.reply.read(reader) : undefined;
}
