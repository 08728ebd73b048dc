/**
 * The operations of the reference model in wire form: requests as a client sends them, replies and
 * events as it reads them. Decoding is strict: a frame with anything missing or left over throws.
 */
import { OpCode } from '@tskeeper/protocol';
import type {
  Body,
  ConnectRequest,
  ConnectResponse,
  Data,
  Message,
  MultiResult as ModelResult,
  Operation,
  OperationKind,
  PageChild,
  ReadStep,
  WriteStep,
} from '@tskeeper/simulator';
import { frameOf } from './frames.ts';
import {
  type EventMessage,
  type FrameMessage,
  type HandshakeReply,
  readHandshakeReply,
  readMessage,
  type ReplyMessage,
} from './messages.ts';
import { type MultiResult, type PageChildValue, readEvent, readReply, type ReplyValue } from './replies.ts';
import { type Fields, handshakeBody, record, requestBody } from './requests.ts';

export function opCodeOf(operation: Operation): number {
  if (operation.kind === 'unknown' || operation.kind === 'undecodable') return operation.opCode;
  return OpCode[operation.kind];
}

const bytesOf = (data: Data): Buffer | null => (data === null ? null : Buffer.from(data, 'latin1'));
const textOf = (bytes: Buffer | null): Data => (bytes === null ? null : bytes.toString('latin1'));

function fieldsOf(operation: Operation): Fields {
  switch (operation.kind) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createIfNotExists':
      return record.create(operation.path, bytesOf(operation.data), operation.acl, operation.flags);
    case 'createTTL': {
      const { path, data, acl, flags, ttl } = operation;
      return record.createTTL(path, bytesOf(data), acl, flags, BigInt(ttl));
    }
    case 'delete':
    case 'check':
    case 'checkNotExists':
    case 'tryRemove':
      return record.pathAndInt(operation.path, operation.version);
    case 'checkStat':
      return record.checkStat(operation.path, operation.version, operation.stat);
    case 'removeRecursive':
    case 'listRecursive':
      return record.pathAndInt(operation.path, operation.limit | 0);
    case 'filteredListWithStatsAndData': {
      const { path, watch, filter, withStat, withData } = operation;
      return record.filteredListWithStatsAndData(path, watch, filter, withStat, withData);
    }
    case 'setData':
      return record.setData(operation.path, bytesOf(operation.data), operation.version);
    case 'setACL':
      return record.setACL(operation.path, operation.acl, operation.version);
    case 'exists':
    case 'getData':
    case 'getChildren':
    case 'getChildren2':
      return record.pathAndWatch(operation.path, operation.watch);
    case 'filteredList':
      return record.filteredList(operation.path, operation.watch, operation.filter);
    case 'getChildrenPage':
    case 'getChildrenDataPage':
      return record.childrenPage(operation);
    case 'getACL':
    case 'sync':
    case 'getAllChildrenNumber':
    case 'deleteContainer':
      return record.pathOnly(operation.path);
    case 'getEphemerals':
      return record.pathOnly(operation.prefixPath);
    case 'ping':
    case 'whoAmI':
    case 'closeSession':
    case 'unknown':
      return record.nothing();
    case 'multi':
    case 'multiRead':
      return record.multi(operation.steps.map((step: WriteStep | ReadStep) => ({ type: opCodeOf(step), fields: fieldsOf(step) })));
    case 'reconfig':
      return record.reconfig(operation.joiningServers, operation.leavingServers, operation.newMembers, operation.curConfigId);
    case 'checkWatches':
    case 'removeWatches':
      return record.pathAndInt(operation.path, operation.type);
    case 'addWatch':
      return record.pathAndInt(operation.path, operation.mode);
    case 'setWatches':
      return record.setWatches(operation.relativeZxid, [operation.dataWatches, operation.existWatches, operation.childWatches]);
    case 'setWatches2':
      return record.setWatches(operation.relativeZxid, [
        operation.dataWatches,
        operation.existWatches,
        operation.childWatches,
        operation.persistentWatches,
        operation.persistentRecursiveWatches,
      ]);
    case 'auth':
      return record.auth(operation.scheme, bytesOf(operation.auth));
    case 'sasl':
      return record.token(bytesOf(operation.token));
    case 'getLeader':
    case 'transferLeader':
    case 'shedConnections':
      throw new Error('no client of these tests sends a request of operators');
    case 'undecodable':
      return record.bytes(bytesOf(operation.bytes)!);
    default:
      operation satisfies never;
      throw new Error('no such operation');
  }
}

/** A whole frame, including its length. */
export function encodeRequest(xid: number, operation: Operation): Buffer {
  return frameOf(requestBody(xid, opCodeOf(operation), fieldsOf(operation)));
}

/** A whole frame, including its length. */
export function encodeConnect(request: ConnectRequest): Buffer {
  return frameOf(handshakeBody({ ...request, passwd: bytesOf(request.passwd) }));
}

export function decodeConnectResponse(frame: Buffer): ConnectResponse {
  const message = readHandshakeReply(frame);
  return message.kind === 'handshake' ? connectResponseOf(message) : fail('handshake', frame);
}

/** `kindOf` returns the operation of an xid. Throws unless the frame is exactly such a reply. */
export function decodeMessage(frame: Buffer, kindOf: (xid: number) => OperationKind): Message {
  return operationMessageOf(readMessage(frame), kindOf);
}

/** The same for a message of which the header is decoded. */
export function operationMessageOf(message: FrameMessage, kindOf: (xid: number) => OperationKind): Message {
  switch (message.kind) {
    case 'handshake':
      return connectResponseOf(message);
    case 'reply':
      return replyOf(message, kindOf(message.xid));
    case 'event':
      return eventOf(message);
    default:
      return fail('message', message.bytes);
  }
}

function connectResponseOf({ timeOut, sessionId, passwd, readOnly, rest }: HandshakeReply): ConnectResponse {
  if (rest.length > 0) fail('handshake', rest);
  const response = { kind: 'connected', timeOut, sessionId, passwd: textOf(passwd) } as const;
  return readOnly === undefined ? response : { ...response, readOnly };
}

function replyOf({ xid, zxid, err, body }: ReplyMessage, kind: OperationKind): Message {
  if (body.length === 0) return { kind: 'reply', xid, zxid, err, body: null };
  // An opcode that is not one of the protocol's has no record.
  const isKnown = kind !== 'unknown' && kind !== 'undecodable';
  const value = isKnown ? readReply(OpCode[kind], 0, body) : fail(`reply to ${kind}`, body);
  if (value.rest !== undefined || value.unreadable !== undefined) fail(`reply to ${kind}`, body);
  return { kind: 'reply', xid, zxid, err, body: bodyOf(value) };
}

function eventOf({ zxid, err, body }: EventMessage): Message {
  if (err !== 0) throw new Error(`a watch event with error ${err}`);
  const event = readEvent(body);
  if ('unreadable' in event || event.rest !== undefined) return fail('event', body);
  if (event.path === null) return fail('event', body);
  return { kind: 'event', zxid, type: event.type, state: event.state, path: event.path };
}

function bodyOf(value: ReplyValue): Body {
  const { path, stat, data, acl, children, contents, page, ephemerals, totalNumber, err, clientInfo, token, results } = value;
  return {
    ...(path === undefined ? {} : { path }),
    ...(stat === undefined ? {} : { stat }),
    ...(data === undefined ? {} : { data: textOf(data) }),
    ...(acl === undefined ? {} : { acl: listed(acl) }),
    ...(children === undefined ? {} : { children: textsOf(children) }),
    ...(contents === undefined ? {} : { contents: contents.map(pageChildOf) }),
    ...(page === undefined ? {} : { page: { ...page, children: page.children.map(pageChildOf) } }),
    ...(ephemerals === undefined ? {} : { ephemerals: textsOf(ephemerals) }),
    ...(totalNumber === undefined ? {} : { totalNumber }),
    ...(err === undefined ? {} : { err }),
    ...(clientInfo === undefined
      ? {}
      : { clientInfo: listed(clientInfo).map(({ authScheme, user }) => ({ authScheme: textIn(authScheme), user: textIn(user) })) }),
    ...(token === undefined ? {} : { token: textOf(token) }),
    ...(results === undefined ? {} : { results: results.map(resultOf) }),
  };
}

function pageChildOf({ name, err, data, stat }: PageChildValue): PageChild {
  return {
    name: textIn(name),
    ...(err === undefined ? {} : { err }),
    ...(data === undefined ? {} : { data: textOf(data) }),
    ...(stat === undefined ? {} : { stat }),
  };
}

function resultOf({ type, err, value }: MultiResult): ModelResult {
  return value === undefined ? { type, err } : { type, err, body: bodyOf(value) };
}

function listed<T>(list: readonly T[] | null): readonly T[] {
  if (list === null) throw new Error('null in place of a list');
  return list;
}

function textIn(text: string | null): string {
  if (text === null) throw new Error('null in place of a text');
  return text;
}

function textsOf(list: readonly (string | null)[] | null): readonly string[] {
  return listed(list).map(textIn);
}

function fail(what: string, bytes: Buffer): never {
  throw new Error(`a malformed ${what}: ${bytes.toString('hex')}`);
}
