/**
 * Transactions, as in the log and in proposals: a header, the change, and the digest of the tree
 * after it.
 *
 * A txn is a result, not a request: the path is final, the versions are the new ones, and it needs
 * no validation. Applying it to a tree that already has it changes nothing. A refused write is a
 * txn too, of kind `error`.
 */
import { type Acl, readAclList, writeAclList } from '../znode/acl.ts';
import { OpCode } from '../constants.ts';
import { readStringVector, writeStringVector } from '../jute/string-vector.ts';
import type { Millis, Zxid } from '../jute/numbers.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export interface TxnHeader {
  /**
   * The session that sent the request, as two int32; 0 for the server itself. It becomes the owner
   * of an ephemeral.
   */
  readonly clientHigh: number;
  readonly clientLow: number;
  /** The xid of the request. */
  readonly cxid: number;
  readonly zxid: Zxid;
  /** The leader's wall clock; the ctime and mtime of changed znodes. */
  readonly time: Millis;
  /**
   * An opcode, which determines the record. Opcodes with the same record differ in nothing else.
   */
  readonly type: number;
}

/** create and create2. */
export interface CreateTxn {
  readonly kind: 'create';
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly ephemeral: boolean;
  /** The parent's new count of creates. -1, as in logs without the field, means: add one. */
  readonly parentCVersion: number;
}

export interface CreateContainerTxn {
  readonly kind: 'createContainer';
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly parentCVersion: number;
}

export interface CreateTTLTxn {
  readonly kind: 'createTTL';
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly parentCVersion: number;
  readonly ttl: Millis;
}

/** delete and deleteContainer. */
export interface DeleteTxn {
  readonly kind: 'delete';
  readonly path: string;
}

/** setData and reconfig. */
export interface SetDataTxn {
  readonly kind: 'setData';
  readonly path: string;
  readonly data: Uint8Array | null;
  /** The new version. */
  readonly version: number;
}

export interface SetACLTxn {
  readonly kind: 'setACL';
  readonly path: string;
  readonly acl: readonly Acl[];
  /** The new aversion. */
  readonly version: number;
}

export interface CreateSessionTxn {
  readonly kind: 'createSession';
  readonly timeOut: Millis;
}

export interface CloseSessionTxn {
  readonly kind: 'closeSession';
  /**
   * The ephemerals deleted with it; null in logs that leave this to the server that applies the
   * txn.
   */
  readonly paths2Delete: readonly string[] | null;
}

/** Changes nothing. */
export interface ErrorTxn {
  readonly kind: 'error';
  readonly err: number;
}

/** Only within a multi; changes nothing. */
export interface CheckVersionTxn {
  readonly kind: 'check';
  readonly path: string;
  readonly version: number;
}

/** The txns that a multi may contain. */
export type MultiMemberTxn = CreateTxn | CreateContainerTxn | CreateTTLTxn | DeleteTxn | SetDataTxn | ErrorTxn | CheckVersionTxn;

export interface MultiMember {
  readonly type: number;
  readonly txn: MultiMemberTxn;
}

export interface MultiTxn {
  readonly kind: 'multi';
  readonly txns: readonly MultiMember[];
}

export type Txn = MultiMemberTxn | SetACLTxn | CreateSessionTxn | CloseSessionTxn | MultiTxn;

/** The digest of the whole tree after the txn: a wrapping 64-bit sum, as two int32. */
export interface TxnDigest {
  /** 2 is the only one in use. */
  readonly version: number;
  readonly high: number;
  readonly low: number;
}

export interface TxnLogEntry {
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly digest: TxnDigest | undefined;
}

export const txnHeaderBytes = 32;
export const txnDigestBytes = 12;
/** The algorithm of the digest has changed once; servers compare digests of equal versions only. */
export const digestVersion = 2;

const memberBytesMin = 8;

export function readTxnHeader(reader: Reader): TxnHeader {
  return {
    clientHigh: reader.int32(),
    clientLow: reader.int32(),
    cxid: reader.int32(),
    zxid: reader.int64(),
    time: reader.int64(),
    type: reader.int32(),
  };
}

export function writeTxnHeader(writer: Writer, header: TxnHeader): void {
  writer.int64Halves(header.clientHigh, header.clientLow);
  writer.int32(header.cxid);
  writer.int64(header.zxid);
  writer.int64(header.time);
  writer.int32(header.type);
}

function readPath(reader: Reader): string {
  return reader.text('a path');
}

function readCreateTxn(reader: Reader, parentCVersionMayLack: boolean): CreateTxn {
  return {
    kind: 'create',
    path: readPath(reader),
    data: reader.buffer(),
    acl: readAclList(reader),
    ephemeral: reader.boolean(),
    // ZooKeeper 3.3 wrote the record without its last field; it is recognised by its end.
    parentCVersion: parentCVersionMayLack && reader.remaining < 4 ? -1 : reader.int32(),
  };
}

function readMemberTxn(reader: Reader, type: number, at: number): MultiMemberTxn {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
      return readCreateTxn(reader, false);
    case OpCode.createContainer:
      return {
        kind: 'createContainer',
        path: readPath(reader),
        data: reader.buffer(),
        acl: readAclList(reader),
        parentCVersion: reader.int32(),
      };
    case OpCode.createTTL:
      return {
        kind: 'createTTL',
        path: readPath(reader),
        data: reader.buffer(),
        acl: readAclList(reader),
        parentCVersion: reader.int32(),
        ttl: reader.int64(),
      };
    case OpCode.delete:
    case OpCode.deleteContainer:
      return { kind: 'delete', path: readPath(reader) };
    case OpCode.setData:
    case OpCode.reconfig:
      return { kind: 'setData', path: readPath(reader), data: reader.buffer(), version: reader.int32() };
    case OpCode.error:
      return { kind: 'error', err: reader.int32() };
    case OpCode.check:
      return { kind: 'check', path: readPath(reader), version: reader.int32() };
    default:
      throw new ProtocolError(`a txn of a known type, not ${type}`, at);
  }
}

/** Each member's record is in a buffer of its own; bytes after the record are ignored. */
function readMember(reader: Reader): MultiMember {
  const at = reader.offset;
  const type = reader.int32();
  if (!reader.range("a txn's record")) throw new ProtocolError("a txn's record, not null", at + 4);
  // Another reader for each record would cost as much as decoding it.
  const { limit, rangeStart, rangeEnd } = reader;
  reader.offset = rangeStart;
  reader.limit = rangeEnd;
  const txn = readMemberTxn(reader, type, at);
  reader.offset = rangeEnd;
  reader.limit = limit;
  return { type, txn };
}

/**
 * Servers configured not to list the ephemerals write no record at all, and then possibly a digest.
 * A digest without a list is recognised by its length and its version: the only list of that length
 * with the same first bytes would contain two empty paths.
 */
function readCloseSessionTxn(reader: Reader): CloseSessionTxn {
  const { remaining, offset, bytes } = reader;
  const listIsMissing = remaining < 4 || (remaining === txnDigestBytes && bytes.readInt32BE(offset) === digestVersion);
  return { kind: 'closeSession', paths2Delete: listIsMissing ? null : readStringVector(reader) };
}

/** The record after a header of this type. */
export function readTxnRecord(reader: Reader, type: number): Txn {
  switch (type) {
    case OpCode.create:
      return readCreateTxn(reader, true);
    case OpCode.setACL:
      return { kind: 'setACL', path: readPath(reader), acl: readAclList(reader), version: reader.int32() };
    case OpCode.createSession:
      return { kind: 'createSession', timeOut: reader.int32() };
    case OpCode.closeSession:
      return readCloseSessionTxn(reader);
    case OpCode.multi:
      return { kind: 'multi', txns: reader.vector(memberBytesMin, readMember) ?? [] };
    default:
      return readMemberTxn(reader, type, reader.offset);
  }
}

/** One member of a multi's list: for lists too long to be written in one step. */
export function writeMultiMember(writer: Writer, member: MultiMember): void {
  writer.int32(member.type);
  const start = writer.beginFrame();
  writeTxnRecord(writer, member.txn);
  writer.endFrame(start);
}

export function writeTxnRecord(writer: Writer, txn: Txn): void {
  switch (txn.kind) {
    case 'create':
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.boolean(txn.ephemeral);
      writer.int32(txn.parentCVersion);
      break;
    case 'createContainer':
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.int32(txn.parentCVersion);
      break;
    case 'createTTL':
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writeAclList(writer, txn.acl);
      writer.int32(txn.parentCVersion);
      writer.int64(txn.ttl);
      break;
    case 'delete':
      writer.ustring(txn.path);
      break;
    case 'setData':
      writer.ustring(txn.path);
      writer.buffer(txn.data);
      writer.int32(txn.version);
      break;
    case 'setACL':
      writer.ustring(txn.path);
      writeAclList(writer, txn.acl);
      writer.int32(txn.version);
      break;
    case 'createSession':
      writer.int32(txn.timeOut);
      break;
    case 'closeSession':
      if (txn.paths2Delete !== null) writeStringVector(writer, txn.paths2Delete);
      break;
    case 'error':
      writer.int32(txn.err);
      break;
    case 'check':
      writer.ustring(txn.path);
      writer.int32(txn.version);
      break;
    case 'multi':
      writer.vector(txn.txns, writeMultiMember);
      break;
    default:
      txn satisfies never;
  }
}

export function readTxnDigest(reader: Reader): TxnDigest {
  return { version: reader.int32(), high: reader.int32(), low: reader.int32() };
}

export function writeTxnDigest(writer: Writer, digest: TxnDigest): void {
  writer.int32(digest.version);
  writer.int64Halves(digest.high, digest.low);
}

/**
 * A txn in a log entry or a proposal: everything up to the reader's limit belongs to it. A digest
 * is read if there is one; bytes after it belong to a newer version, and are ignored.
 */
export function readTxn(reader: Reader): TxnLogEntry {
  const header = readTxnHeader(reader);
  const txn = readTxnRecord(reader, header.type);
  return { header, txn, digest: reader.remaining >= txnDigestBytes ? readTxnDigest(reader) : undefined };
}

export function writeTxn(writer: Writer, { header, txn, digest }: TxnLogEntry): void {
  writeTxnHeader(writer, header);
  writeTxnRecord(writer, txn);
  if (digest !== undefined) writeTxnDigest(writer, digest);
}
