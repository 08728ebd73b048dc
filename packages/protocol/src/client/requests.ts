/**
 * The records of requests, after the RequestHeader. operations.ts maps opcodes to them.
 *
 * The path of a write may be null, because it is validated in the order of the other checks.
 * Elsewhere a request with a null path cannot be decoded, as in ZooKeeper. A null vector of paths
 * reads as an empty one, since no request distinguishes the two; a null ACL does not. Null data
 * stays different from empty data.
 */
import { type Acl, readRequestedAcl, writeAclList } from '../znode/acl.ts';
import { readStringVector, writeStringVector } from '../jute/string-vector.ts';
import type { Millis, Zxid } from '../jute/numbers.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/** create, create2, createContainer. */
export interface CreateRequest {
  readonly path: string | null;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[] | null;
  /** One of `CreateMode`. */
  readonly flags: number;
}

export interface CreateTTLRequest extends CreateRequest {
  readonly ttl: Millis;
}

/** delete; and check, which is the same record under the name CheckVersionRequest. */
export interface DeleteRequest {
  readonly path: string | null;
  /** -1 for any. */
  readonly version: number;
}
export type CheckVersionRequest = DeleteRequest;

/** getData, exists, getChildren, getChildren2: one record under four names. */
export interface GetDataRequest {
  readonly path: string;
  readonly watch: boolean;
}
export type ExistsRequest = GetDataRequest;
export type GetChildrenRequest = GetDataRequest;
export type GetChildren2Request = GetDataRequest;

export interface SetDataRequest {
  readonly path: string | null;
  readonly data: Uint8Array | null;
  readonly version: number;
}

/** getACL, sync, getAllChildrenNumber, deleteContainer: only a path. */
export interface PathRequest {
  readonly path: string;
}
export type GetACLRequest = PathRequest;
export type SyncRequest = PathRequest;
export type GetAllChildrenNumberRequest = PathRequest;
export type DeleteContainerRequest = PathRequest;

export interface SetACLRequest {
  readonly path: string | null;
  readonly acl: readonly Acl[] | null;
  /** Compared with aversion. */
  readonly version: number;
}

/** Either a change (joining, leaving) or the whole new membership. */
export interface ReconfigRequest {
  readonly joiningServers: string | null;
  readonly leavingServers: string | null;
  readonly newMembers: string | null;
  /** The version of the preceding configuration, -1 for any. */
  readonly curConfigId: number;
}

/** checkWatches and removeWatches. */
export interface CheckWatchesRequest {
  readonly path: string;
  /** One of `WatcherType`. */
  readonly type: number;
}
export type RemoveWatchesRequest = CheckWatchesRequest;

export interface AddWatchRequest {
  readonly path: string;
  /** One of `AddWatchMode`. */
  readonly mode: number;
}

export interface GetEphemeralsRequest {
  /** Null and empty both mean all. */
  readonly prefixPath: string | null;
}

/** The watches of a client that lost its connection, and the last zxid it had seen. */
export interface SetWatchesRequest {
  readonly relativeZxid: Zxid;
  readonly dataWatches: readonly string[];
  readonly existWatches: readonly string[];
  readonly childWatches: readonly string[];
}

export interface SetWatches2Request extends SetWatchesRequest {
  readonly persistentWatches: readonly string[];
  readonly persistentRecursiveWatches: readonly string[];
}

/** Credentials under a scheme: ZooKeeper's AuthPacket. */
export interface AuthRequest {
  /** Always 0; servers ignore it. */
  readonly type: number;
  readonly scheme: string | null;
  readonly auth: Uint8Array | null;
}

/** One step of SASL: ZooKeeper's GetSASLRequest. */
export interface SaslRequest {
  readonly token: Uint8Array | null;
}

function readPath(reader: Reader): string {
  return reader.text('a path');
}

export function readCreateRequest(reader: Reader): CreateRequest {
  return { path: reader.ustring(), data: reader.buffer(), acl: readRequestedAcl(reader), flags: reader.int32() };
}

export function writeCreateRequest(writer: Writer, request: CreateRequest): void {
  writer.ustring(request.path);
  writer.buffer(request.data);
  writeAclList(writer, request.acl);
  writer.int32(request.flags);
}

export function readCreateTTLRequest(reader: Reader): CreateTTLRequest {
  return { path: reader.ustring(), data: reader.buffer(), acl: readRequestedAcl(reader), flags: reader.int32(), ttl: reader.int64() };
}

export function writeCreateTTLRequest(writer: Writer, request: CreateTTLRequest): void {
  writeCreateRequest(writer, request);
  writer.int64(request.ttl);
}

export function readDeleteRequest(reader: Reader): DeleteRequest {
  return { path: reader.ustring(), version: reader.int32() };
}

export function writeDeleteRequest(writer: Writer, request: DeleteRequest): void {
  writer.ustring(request.path);
  writer.int32(request.version);
}

export function readGetDataRequest(reader: Reader): GetDataRequest {
  return { path: readPath(reader), watch: reader.boolean() };
}

export function writeGetDataRequest(writer: Writer, request: GetDataRequest): void {
  writer.ustring(request.path);
  writer.boolean(request.watch);
}

export function readSetDataRequest(reader: Reader): SetDataRequest {
  return { path: reader.ustring(), data: reader.buffer(), version: reader.int32() };
}

export function writeSetDataRequest(writer: Writer, request: SetDataRequest): void {
  writer.ustring(request.path);
  writer.buffer(request.data);
  writer.int32(request.version);
}

export function readPathRequest(reader: Reader): PathRequest {
  return { path: readPath(reader) };
}

export function writePathRequest(writer: Writer, request: PathRequest): void {
  writer.ustring(request.path);
}

export function readSetACLRequest(reader: Reader): SetACLRequest {
  return { path: reader.ustring(), acl: readRequestedAcl(reader), version: reader.int32() };
}

export function writeSetACLRequest(writer: Writer, request: SetACLRequest): void {
  writer.ustring(request.path);
  writeAclList(writer, request.acl);
  writer.int32(request.version);
}

export function readReconfigRequest(reader: Reader): ReconfigRequest {
  return {
    joiningServers: reader.ustring(),
    leavingServers: reader.ustring(),
    newMembers: reader.ustring(),
    curConfigId: reader.int64(),
  };
}

export function writeReconfigRequest(writer: Writer, request: ReconfigRequest): void {
  writer.ustring(request.joiningServers);
  writer.ustring(request.leavingServers);
  writer.ustring(request.newMembers);
  writer.int64(request.curConfigId);
}

export function readCheckWatchesRequest(reader: Reader): CheckWatchesRequest {
  return { path: readPath(reader), type: reader.int32() };
}

export function writeCheckWatchesRequest(writer: Writer, request: CheckWatchesRequest): void {
  writer.ustring(request.path);
  writer.int32(request.type);
}

export function readAddWatchRequest(reader: Reader): AddWatchRequest {
  return { path: readPath(reader), mode: reader.int32() };
}

export function writeAddWatchRequest(writer: Writer, request: AddWatchRequest): void {
  writer.ustring(request.path);
  writer.int32(request.mode);
}

export function readGetEphemeralsRequest(reader: Reader): GetEphemeralsRequest {
  return { prefixPath: reader.ustring() };
}

export function writeGetEphemeralsRequest(writer: Writer, request: GetEphemeralsRequest): void {
  writer.ustring(request.prefixPath);
}

export function readSetWatchesRequest(reader: Reader): SetWatchesRequest {
  return {
    relativeZxid: reader.int64(),
    dataWatches: readStringVector(reader),
    existWatches: readStringVector(reader),
    childWatches: readStringVector(reader),
  };
}

export function writeSetWatchesRequest(writer: Writer, request: SetWatchesRequest): void {
  writer.int64(request.relativeZxid);
  writeStringVector(writer, request.dataWatches);
  writeStringVector(writer, request.existWatches);
  writeStringVector(writer, request.childWatches);
}

export function readSetWatches2Request(reader: Reader): SetWatches2Request {
  return {
    relativeZxid: reader.int64(),
    dataWatches: readStringVector(reader),
    existWatches: readStringVector(reader),
    childWatches: readStringVector(reader),
    persistentWatches: readStringVector(reader),
    persistentRecursiveWatches: readStringVector(reader),
  };
}

export function writeSetWatches2Request(writer: Writer, request: SetWatches2Request): void {
  writeSetWatchesRequest(writer, request);
  writeStringVector(writer, request.persistentWatches);
  writeStringVector(writer, request.persistentRecursiveWatches);
}

export function readAuthRequest(reader: Reader): AuthRequest {
  return { type: reader.int32(), scheme: reader.ustring(), auth: reader.buffer() };
}

export function writeAuthRequest(writer: Writer, request: AuthRequest): void {
  writer.int32(request.type);
  writer.ustring(request.scheme);
  writer.buffer(request.auth);
}

export function readSaslRequest(reader: Reader): SaslRequest {
  return { token: reader.buffer() };
}

export function writeSaslRequest(writer: Writer, request: SaslRequest): void {
  writer.buffer(request.token);
}
