/**
 * The requests that are about one znode, or about the session: one operation for each. Paths are those
 * the server knows; what it answers with paths is told in the program's, by `inner`.
 */
import { type Acl, type ClientInfo, ErrorCode, OpCode, operations, readCreate2Reply } from '@tskeeper/protocol';
import { Refusal } from '../keeper-error.ts';
import type { Operation } from '../session/operation.ts';
import { type Stat, toStat } from '../stat.ts';
import type { WatchKind } from '../watches/watch-table.ts';
import { type CreateSettings, createForm, type Data, toBytes } from './create.ts';
import { copyOf } from './multi.ts';

/** Notes down that a watch of this kind is set; undefined: none is asked for. */
export type WatchNote = ((kind: WatchKind) => void) | undefined;

/** What a create has made. */
export interface CreateResult {
  /** As created: with its number, when the znode is sequential. */
  readonly path: string;
  /** As it was made. Asked for since ZooKeeper 3.5 (ZOOKEEPER-1297). */
  readonly stat: Stat;
}
/** A znode's data, and what goes with them. */
export interface GetDataResult {
  /** A copy, which is the program's. null when the znode was made or set with null; ZooKeeper tells that from no bytes. */
  readonly data: Uint8Array | null;
  /** Of the same moment as the data. */
  readonly stat: Stat;
}
/** A znode's children. */
export interface GetChildrenResult {
  /** Names, not paths, in no defined order. */
  readonly children: readonly string[];
  /** Of the znode itself, of the same moment. */
  readonly stat: Stat;
}
/** A znode's ACL. */
export interface GetAclResult {
  /** Its entries. From those who may READ and not ADMIN servers hide the hashes of `digest`. */
  readonly acl: readonly Acl[];
  /** Of the same moment; its `aversion` is what `setACL` compares. */
  readonly stat: Stat;
}

export function createOperation(
  path: string,
  data: Data | undefined,
  settings: CreateSettings,
  inner: (path: string) => string,
): Operation<CreateResult> {
  const form = createForm(path, data, settings);
  return {
    opCode: form.opCode,
    write: (writer) => form.write(writer),
    read: (reader) => {
      const reply = readCreate2Reply(reader);
      return { path: inner(reply.path), stat: toStat(reply.stat) };
    },
  };
}

export function deleteOperation(path: string, version: number): Operation<void> {
  return {
    opCode: OpCode.delete,
    write: (writer) => operations.delete.request.write(writer, { path, version }),
    read: () => undefined,
  };
}

export function existsOperation(path: string, note: WatchNote): Operation<Stat | null> {
  return {
    opCode: OpCode.exists,
    watches: note && { path, kinds: ['data', 'exist'] },
    write: (writer) => operations.exists.request.write(writer, { path, watch: note !== undefined }),
    read: (reader) => {
      const stat = toStat(operations.exists.reply.read(reader).stat);
      note?.('data');
      return stat;
    },
    readError: (err) => {
      if (err !== ErrorCode.NoNode) return undefined;
      note?.('exist');
      return { result: null };
    },
  };
}

export function getDataOperation(path: string, note: WatchNote): Operation<GetDataResult> {
  return {
    opCode: OpCode.getData,
    watches: note && { path, kinds: ['data'] },
    write: (writer) => operations.getData.request.write(writer, { path, watch: note !== undefined }),
    read: (reader) => {
      const { data, stat } = operations.getData.reply.read(reader);
      note?.('data');
      return { data: copyOf(data), stat: toStat(stat) };
    },
  };
}

export function setDataOperation(path: string, data: Data, version: number): Operation<Stat> {
  const bytes = toBytes(data);
  return {
    opCode: OpCode.setData,
    write: (writer) => operations.setData.request.write(writer, { path, data: bytes, version }),
    read: (reader) => toStat(operations.setData.reply.read(reader).stat),
  };
}

export function getChildrenOperation(path: string, note: WatchNote): Operation<GetChildrenResult> {
  return {
    opCode: OpCode.getChildren2,
    watches: note && { path, kinds: ['child'] },
    write: (writer) => operations.getChildren2.request.write(writer, { path, watch: note !== undefined }),
    read: (reader) => {
      const { children, stat } = operations.getChildren2.reply.read(reader);
      note?.('child');
      return { children, stat: toStat(stat) };
    },
  };
}

export function getAllChildrenNumberOperation(path: string): Operation<number> {
  return {
    opCode: OpCode.getAllChildrenNumber,
    write: (writer) => operations.getAllChildrenNumber.request.write(writer, { path }),
    read: (reader) => operations.getAllChildrenNumber.reply.read(reader).totalNumber,
  };
}

export function getEphemeralsOperation(prefixPath: string, inner: (path: string) => string): Operation<readonly string[]> {
  return {
    opCode: OpCode.getEphemerals,
    write: (writer) => operations.getEphemerals.request.write(writer, { prefixPath }),
    read: (reader) => operations.getEphemerals.reply.read(reader).ephemerals.map(inner),
  };
}

export function getAclOperation(path: string): Operation<GetAclResult> {
  return {
    opCode: OpCode.getACL,
    write: (writer) => operations.getACL.request.write(writer, { path }),
    read: (reader) => {
      const { acl, stat } = operations.getACL.reply.read(reader);
      return { acl, stat: toStat(stat) };
    },
  };
}

export function setAclOperation(path: string, acl: readonly Acl[], version: number): Operation<Stat> {
  return {
    opCode: OpCode.setACL,
    write: (writer) => operations.setACL.request.write(writer, { path, acl, version }),
    read: (reader) => toStat(operations.setACL.reply.read(reader).stat),
  };
}

export function syncOperation(path: string): Operation<void> {
  return {
    opCode: OpCode.sync,
    write: (writer) => operations.sync.request.write(writer, { path }),
    read: (reader) => {
      operations.sync.reply.read(reader);
    },
  };
}

export function whoAmIOperation(): Operation<readonly ClientInfo[]> {
  const { opCode, request, reply } = operations.whoAmI;
  return {
    opCode,
    write: (writer) => request.write(writer, undefined),
    read: (reader) => reply.read(reader).clientInfo,
  };
}

/** What a reconfig asks for: servers that come and go, or the whole new membership. */
export type ReconfigSettings = IncrementalReconfig | WholeReconfig;

/** Servers that come and go. */
export interface IncrementalReconfig {
  /** The version of the configuration this one follows, which is a zxid. Default: -1n, for any. */
  readonly fromConfig?: bigint | undefined;
  /** `server.5=host:2888:3888;2181`, as in a dynamic configuration. Default: none. */
  readonly joiningServers?: string | readonly string[] | undefined;
  /** Numbers of servers. Default: none. */
  readonly leavingServers?: string | readonly (string | number)[] | undefined;
  /** Only without joining and leaving. Default: none. */
  readonly newMembers?: undefined;
}

/** The whole new membership, for ensembles whose quorums are of another kind than majorities. */
export interface WholeReconfig {
  /** As in `IncrementalReconfig`. Default: -1n, for any. */
  readonly fromConfig?: bigint | undefined;
  /** Not beside `newMembers`. Default: none. */
  readonly joiningServers?: undefined;
  /** Not beside `newMembers`. Default: none. */
  readonly leavingServers?: undefined;
  /** All servers, `server.5=host:2888:3888;2181` each. */
  readonly newMembers: string | readonly string[];
}

export function reconfigOperation(settings: ReconfigSettings): Operation<GetDataResult> {
  const { joiningServers, leavingServers, newMembers, fromConfig = -1n } = settings;
  const curConfigId = Number(fromConfig);
  if (!Number.isSafeInteger(curConfigId)) {
    throw new Refusal(ErrorCode.BadArguments, 'notSent', `fromConfig ${fromConfig} is no version of a configuration`);
  }
  const request = {
    joiningServers: listOf(joiningServers),
    leavingServers: listOf(leavingServers),
    newMembers: listOf(newMembers),
    curConfigId,
  };
  return {
    opCode: OpCode.reconfig,
    write: (writer) => operations.reconfig.request.write(writer, request),
    read: (reader) => {
      const { data, stat } = operations.reconfig.reply.read(reader);
      return { data: copyOf(data), stat: toStat(stat) };
    },
  };
}

function listOf(list: string | readonly (string | number)[] | undefined): string | null {
  if (list === undefined) return null;
  return typeof list === 'string' ? list : list.join(',');
}
