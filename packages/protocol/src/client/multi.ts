/**
 * Several operations in one request: multi, which is atomic and writes, and multiRead, which is
 * neither.
 *
 * On the wire each operation and each result follows a small header of its own, and a last header
 * with `done` set ends the list. The kinds here are named after the opcodes in those headers. The
 * server decides whether a list may mix reads with writes.
 */
import { OpCode } from '../constants.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import type { Reader } from '../jute/reader.ts';
import {
  type Create2Reply,
  type CreateReply,
  type GetChildrenReply,
  type GetDataReply,
  readCreate2Reply,
  readCreateReply,
  readGetChildrenReply,
  readGetDataReply,
  readStatReply,
  type StatReply,
  writeCreate2Reply,
  writeCreateReply,
  writeGetChildrenReply,
  writeGetDataReply,
  writeStatReply,
} from './replies.ts';
import {
  type CreateRequest,
  type CreateTTLRequest,
  type DeleteRequest,
  type GetDataRequest,
  readCreateRequest,
  readCreateTTLRequest,
  readDeleteRequest,
  readGetDataRequest,
  readSetDataRequest,
  type SetDataRequest,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeGetDataRequest,
  writeSetDataRequest,
} from './requests.ts';
import {
  type CheckStatRequest,
  readCheckStatRequest,
  readRecursiveRequest,
  type RecursiveRequest,
  writeCheckStatRequest,
  writeRecursiveRequest,
} from './keeper-extensions.ts';
import type { Writer } from '../jute/writer.ts';

export interface MultiHeader {
  readonly type: number;
  readonly done: boolean;
  readonly err: number;
}

export type MultiOp =
  | ({ readonly kind: 'create' | 'create2' | 'createContainer' } & CreateRequest)
  | ({ readonly kind: 'createTTL' } & CreateTTLRequest)
  | ({ readonly kind: 'delete' | 'check' } & DeleteRequest)
  | ({ readonly kind: 'setData' } & SetDataRequest)
  | ({ readonly kind: 'getData' | 'getChildren' } & GetDataRequest)
  | KeeperMultiOp;

/** Operations of ClickHouse Keeper, which ZooKeeper does not accept in a multi. */
export type KeeperMultiOp =
  | ({ readonly kind: 'createIfNotExists' } & CreateRequest)
  | ({ readonly kind: 'checkNotExists' | 'tryRemove' } & DeleteRequest)
  | ({ readonly kind: 'checkStat' } & CheckStatRequest)
  | ({ readonly kind: 'removeRecursive' } & RecursiveRequest);

export interface MultiRequest {
  readonly ops: readonly MultiOp[];
}

export type MultiResult =
  | ({ readonly kind: 'create' } & CreateReply)
  /** Also the result of createContainer and createTTL. */
  | ({ readonly kind: 'create2' } & Create2Reply)
  | ({ readonly kind: 'createIfNotExists' } & CreateReply)
  | { readonly kind: 'delete' | 'check' | 'checkNotExists' | 'checkStat' | 'removeRecursive' | 'tryRemove' }
  | ({ readonly kind: 'setData' } & StatReply)
  | ({ readonly kind: 'getData' } & GetDataReply)
  | ({ readonly kind: 'getChildren' } & GetChildrenReply)
  /**
   * In a failed multi, every result is an error: 0 before the failed operation,
   * RuntimeInconsistency after it.
   */
  | { readonly kind: 'error'; readonly err: number };

export interface MultiReply {
  readonly results: readonly MultiResult[];
}

export const multiHeaderBytes = 9;

/** ZooKeeper's clients send -1 in requests, where an error has no meaning. */
const noErr = -1;

export function readMultiHeader(reader: Reader): MultiHeader {
  return { type: reader.int32(), done: reader.boolean(), err: reader.int32() };
}

export function writeMultiHeader(writer: Writer, header: MultiHeader): void {
  writer.int32(header.type);
  writer.boolean(header.done);
  writer.int32(header.err);
}

/** The header that ends a list, in requests and replies. */
export function writeMultiEnd(writer: Writer): void {
  writer.int32(-1);
  writer.boolean(true);
  writer.int32(noErr);
}

function readMultiOp(reader: Reader, type: number, at: number): MultiOp {
  switch (type) {
    case OpCode.create:
      return { kind: 'create', ...readCreateRequest(reader) };
    case OpCode.create2:
      return { kind: 'create2', ...readCreateRequest(reader) };
    case OpCode.createContainer:
      return { kind: 'createContainer', ...readCreateRequest(reader) };
    case OpCode.createTTL:
      return { kind: 'createTTL', ...readCreateTTLRequest(reader) };
    // One request may contain tens of thousands of these, so they are not copied from another
    // record.
    case OpCode.delete:
      return { kind: 'delete', path: reader.ustring(), version: reader.int32() };
    case OpCode.check:
      return { kind: 'check', path: reader.ustring(), version: reader.int32() };
    case OpCode.setData:
      return { kind: 'setData', ...readSetDataRequest(reader) };
    case OpCode.getData:
      return { kind: 'getData', ...readGetDataRequest(reader) };
    case OpCode.getChildren:
      return { kind: 'getChildren', ...readGetDataRequest(reader) };
    case OpCode.createIfNotExists:
      return { kind: 'createIfNotExists', ...readCreateRequest(reader) };
    case OpCode.checkNotExists:
      return { kind: 'checkNotExists', ...readDeleteRequest(reader) };
    case OpCode.tryRemove:
      return { kind: 'tryRemove', ...readDeleteRequest(reader) };
    case OpCode.checkStat:
      return { kind: 'checkStat', ...readCheckStatRequest(reader) };
    case OpCode.removeRecursive:
      return { kind: 'removeRecursive', ...readRecursiveRequest(reader) };
    default:
      throw new ProtocolError(`an operation of a multi, not ${type}`, at);
  }
}

/**
 * The next operation, or undefined at the end of the list: for lists too long to be decoded in one
 * step.
 */
export function readMultiRequestOp(reader: Reader): MultiOp | undefined {
  const at = reader.offset;
  const header = readMultiHeader(reader);
  return header.done ? undefined : readMultiOp(reader, header.type, at);
}

export function readMultiRequest(reader: Reader): MultiRequest {
  const ops: MultiOp[] = [];
  for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) ops.push(op);
  return { ops };
}

function writeMultiOp(writer: Writer, op: MultiOp): void {
  writer.int32(OpCode[op.kind]);
  writer.boolean(false);
  writer.int32(noErr);
  switch (op.kind) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createIfNotExists':
      writeCreateRequest(writer, op);
      break;
    case 'createTTL':
      writeCreateTTLRequest(writer, op);
      break;
    case 'delete':
    case 'check':
    case 'checkNotExists':
    case 'tryRemove':
      writeDeleteRequest(writer, op);
      break;
    case 'checkStat':
      writeCheckStatRequest(writer, op);
      break;
    case 'removeRecursive':
      writeRecursiveRequest(writer, op);
      break;
    case 'setData':
      writeSetDataRequest(writer, op);
      break;
    case 'getData':
    case 'getChildren':
      writeGetDataRequest(writer, op);
      break;
    default:
      op satisfies never;
  }
}

export function writeMultiRequest(writer: Writer, request: MultiRequest): void {
  for (const op of request.ops) writeMultiOp(writer, op);
  writeMultiEnd(writer);
}

function readMultiResult(reader: Reader, type: number, at: number): MultiResult {
  switch (type) {
    case OpCode.create:
      return { kind: 'create', ...readCreateReply(reader) };
    case OpCode.create2:
      return { kind: 'create2', ...readCreate2Reply(reader) };
    case OpCode.delete:
      return { kind: 'delete' };
    case OpCode.check:
      return { kind: 'check' };
    case OpCode.setData:
      return { kind: 'setData', ...readStatReply(reader) };
    case OpCode.getData:
      return { kind: 'getData', ...readGetDataReply(reader) };
    case OpCode.getChildren:
      return { kind: 'getChildren', ...readGetChildrenReply(reader) };
    case OpCode.error:
      return { kind: 'error', err: reader.int32() };
    case OpCode.createIfNotExists:
      return { kind: 'createIfNotExists', ...readCreateReply(reader) };
    case OpCode.checkNotExists:
      return { kind: 'checkNotExists' };
    case OpCode.checkStat:
      return { kind: 'checkStat' };
    case OpCode.removeRecursive:
      return { kind: 'removeRecursive' };
    case OpCode.tryRemove:
      return { kind: 'tryRemove' };
    default:
      throw new ProtocolError(`a result of a multi, not ${type}`, at);
  }
}

export function readMultiReply(reader: Reader): MultiReply {
  const results: MultiResult[] = [];
  for (;;) {
    const at = reader.offset;
    const header = readMultiHeader(reader);
    if (header.done) return { results };
    results.push(readMultiResult(reader, header.type, at));
  }
}

function writeMultiResult(writer: Writer, result: MultiResult): void {
  writer.int32(OpCode[result.kind]);
  writer.boolean(false);
  writer.int32(result.kind === 'error' ? result.err : 0);
  switch (result.kind) {
    case 'create':
    case 'createIfNotExists':
      writeCreateReply(writer, result);
      break;
    case 'create2':
      writeCreate2Reply(writer, result);
      break;
    case 'delete':
    case 'check':
    case 'checkNotExists':
    case 'checkStat':
    case 'removeRecursive':
    case 'tryRemove':
      break;
    case 'setData':
      writeStatReply(writer, result);
      break;
    case 'getData':
      writeGetDataReply(writer, result);
      break;
    case 'getChildren':
      writeGetChildrenReply(writer, result);
      break;
    case 'error':
      writer.int32(result.err);
      break;
    default:
      result satisfies never;
  }
}

export function writeMultiReply(writer: Writer, reply: MultiReply): void {
  for (const result of reply.results) writeMultiResult(writer, result);
  writeMultiEnd(writer);
}
