/**
 * The records of replies, after the ReplyHeader. operations.ts maps opcodes to them.
 *
 * Buffers are views into the frame from which they were decoded. A caller copies those it keeps.
 */
import { type Acl, readAclList, writeAclList } from '../znode/acl.ts';
import { readStringVector, writeStringVector } from '../jute/string-vector.ts';
import type { Reader } from '../jute/reader.ts';
import { readStat, type Stat, writeStat } from '../znode/stat.ts';
import type { Writer } from '../jute/writer.ts';

/** create; and sync, which echoes the path. */
export interface CreateReply {
  /** As created: with the counter, if the znode is sequential. */
  readonly path: string;
}
export type SyncReply = CreateReply;

/** create2, createContainer, createTTL. */
export interface Create2Reply {
  readonly path: string;
  readonly stat: Stat;
}

/** exists, setData, setACL: one record under three names. */
export interface StatReply {
  readonly stat: Stat;
}

/** getData; and reconfig, whose reply is the new configuration. */
export interface GetDataReply {
  readonly data: Buffer | null;
  readonly stat: Stat;
}

export interface GetACLReply {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

export interface GetChildrenReply {
  /** Names, not paths, in no defined order. */
  readonly children: readonly string[];
}

export interface GetChildren2Reply extends GetChildrenReply {
  readonly stat: Stat;
}

/** addWatch, with 0; and an operation of a failed multi. */
export interface ErrorReply {
  readonly err: number;
}

export interface GetEphemeralsReply {
  readonly ephemerals: readonly string[];
}

export interface GetAllChildrenNumberReply {
  readonly totalNumber: number;
}

/** An identity of a connection, as in the reply of whoAmI. */
export interface ClientInfo {
  /** The scheme of the identity: `digest`, `ip`, `x509` ... */
  readonly authScheme: string;
  /** The user, without its proof. */
  readonly user: string;
}

export interface WhoAmIReply {
  readonly clientInfo: readonly ClientInfo[];
}

/**
 * The server's step of SASL: ZooKeeper's SetSASLResponse. Also sent with an error, then with a null
 * token.
 */
export interface SaslReply {
  readonly token: Buffer | null;
}

const clientInfoBytesMin = 8;

export function readCreateReply(reader: Reader): CreateReply {
  return { path: reader.text('a path') };
}

export function writeCreateReply(writer: Writer, reply: CreateReply): void {
  writer.ustring(reply.path);
}

export function readCreate2Reply(reader: Reader): Create2Reply {
  return { path: reader.text('a path'), stat: readStat(reader) };
}

export function writeCreate2Reply(writer: Writer, reply: Create2Reply): void {
  writer.ustring(reply.path);
  writeStat(writer, reply.stat);
}

export function readStatReply(reader: Reader): StatReply {
  return { stat: readStat(reader) };
}

export function writeStatReply(writer: Writer, reply: StatReply): void {
  writeStat(writer, reply.stat);
}

export function readGetDataReply(reader: Reader): GetDataReply {
  return { data: reader.buffer(), stat: readStat(reader) };
}

export function writeGetDataReply(writer: Writer, reply: GetDataReply): void {
  writer.buffer(reply.data);
  writeStat(writer, reply.stat);
}

export function readGetACLReply(reader: Reader): GetACLReply {
  return { acl: readAclList(reader), stat: readStat(reader) };
}

export function writeGetACLReply(writer: Writer, reply: GetACLReply): void {
  writeAclList(writer, reply.acl);
  writeStat(writer, reply.stat);
}

export function readGetChildrenReply(reader: Reader): GetChildrenReply {
  return { children: readStringVector(reader) };
}

export function writeGetChildrenReply(writer: Writer, reply: GetChildrenReply): void {
  writeStringVector(writer, reply.children);
}

export function readGetChildren2Reply(reader: Reader): GetChildren2Reply {
  return { children: readStringVector(reader), stat: readStat(reader) };
}

export function writeGetChildren2Reply(writer: Writer, reply: GetChildren2Reply): void {
  writeStringVector(writer, reply.children);
  writeStat(writer, reply.stat);
}

export function readErrorReply(reader: Reader): ErrorReply {
  return { err: reader.int32() };
}

export function writeErrorReply(writer: Writer, reply: ErrorReply): void {
  writer.int32(reply.err);
}

export function readGetEphemeralsReply(reader: Reader): GetEphemeralsReply {
  return { ephemerals: readStringVector(reader) };
}

export function writeGetEphemeralsReply(writer: Writer, reply: GetEphemeralsReply): void {
  writeStringVector(writer, reply.ephemerals);
}

export function readGetAllChildrenNumberReply(reader: Reader): GetAllChildrenNumberReply {
  return { totalNumber: reader.int32() };
}

export function writeGetAllChildrenNumberReply(writer: Writer, reply: GetAllChildrenNumberReply): void {
  writer.int32(reply.totalNumber);
}

function readClientInfo(reader: Reader): ClientInfo {
  return { authScheme: reader.text('a scheme'), user: reader.text('a user') };
}

function writeClientInfo(writer: Writer, info: ClientInfo): void {
  writer.ustring(info.authScheme);
  writer.ustring(info.user);
}

export function readWhoAmIReply(reader: Reader): WhoAmIReply {
  return { clientInfo: reader.vector(clientInfoBytesMin, readClientInfo) ?? [] };
}

export function writeWhoAmIReply(writer: Writer, reply: WhoAmIReply): void {
  writer.vector(reply.clientInfo, writeClientInfo);
}

export function readSaslReply(reader: Reader): SaslReply {
  return { token: reader.buffer() };
}

export function writeSaslReply(writer: Writer, reply: SaslReply): void {
  writer.buffer(reply.token);
}
