/**
 * The requests about one znode or about the session: one operation each. Paths in requests are
 * those of the server; `stripChroot` turns paths in answers into those of the program.
 */
import { type Acl, type ClientInfo, ErrorCode, OpCode, operations, readCreate2Reply } from '@tskeeper/protocol';
import { RequestFailure } from '../keeper-error.ts';
import type { Operation } from './operation.ts';
import { type Stat, toClientStat } from '../stat.ts';
import type { WatchKind } from '../watches/watch-table.ts';
import { type CreateSettings, createRequest, type Data, toBytes } from './create.ts';
import { copyBytes } from './multi.ts';

/** Registers a watch of this kind; undefined: the read sets no watch. */
export type WatchRecorder = ((kind: WatchKind) => void) | undefined;

/** The result of `create`. */
export interface CreateResult {
  /** The created path; includes the number if the znode is sequential. */
  readonly path: string;
  /** The Stat of the new znode. Servers send it since ZooKeeper 3.5 (ZOOKEEPER-1297). */
  readonly stat: Stat;
}
/** The result of `getData`. */
export interface GetDataResult {
  /**
   * A copy that the program may change. null if the znode was written with null; ZooKeeper
   * distinguishes that from zero bytes.
   */
  readonly data: Uint8Array | null;
  /** The Stat at the same moment as the data. */
  readonly stat: Stat;
}
/** The result of `getChildren`. */
export interface GetChildrenResult {
  /** Names, not paths, in no defined order. */
  readonly children: readonly string[];
  /** The Stat of the parent itself, at the same moment. */
  readonly stat: Stat;
}
/** The result of `getACL`. */
export interface GetAclResult {
  /** The entries. For a client with READ but without ADMIN, servers hide the hashes of `digest`. */
  readonly acl: readonly Acl[];
  /** The Stat at the same moment; `setACL` compares its `aversion`. */
  readonly stat: Stat;
}

export function createOperation(
  path: string,
  data: Data | undefined,
  settings: CreateSettings,
  stripChroot: (path: string) => string,
): Operation<CreateResult> {
  const form = createRequest(path, data, settings);
  return {
    opCode: form.opCode,
    write: (writer) => form.write(writer),
    read: (reader) => {
      const reply = readCreate2Reply(reader);
      return { path: stripChroot(reply.path), stat: toClientStat(reply.stat) };
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

export function existsOperation(path: string, recordWatch: WatchRecorder): Operation<Stat | null> {
  return {
    opCode: OpCode.exists,
    watches: recordWatch && { path, kinds: ['data', 'exist'] },
    write: (writer) => operations.exists.request.write(writer, { path, watch: recordWatch !== undefined }),
    read: (reader) => {
      const stat = toClientStat(operations.exists.reply.read(reader).stat);
      recordWatch?.('data');
      return stat;
    },
    readError: (err) => {
      if (err !== ErrorCode.NoNode) return undefined;
      recordWatch?.('exist');
      return { result: null };
    },
  };
}

export function getDataOperation(path: string, recordWatch: WatchRecorder): Operation<GetDataResult> {
  return {
    opCode: OpCode.getData,
    watches: recordWatch && { path, kinds: ['data'] },
    write: (writer) => operations.getData.request.write(writer, { path, watch: recordWatch !== undefined }),
    read: (reader) => {
      const { data, stat } = operations.getData.reply.read(reader);
      recordWatch?.('data');
      return { data: copyBytes(data), stat: toClientStat(stat) };
    },
  };
}

export function setDataOperation(path: string, data: Data, version: number): Operation<Stat> {
  const bytes = toBytes(data);
  return {
    opCode: OpCode.setData,
    write: (writer) => operations.setData.request.write(writer, { path, data: bytes, version }),
    read: (reader) => toClientStat(operations.setData.reply.read(reader).stat),
  };
}

export function getChildrenOperation(path: string, recordWatch: WatchRecorder): Operation<GetChildrenResult> {
  return {
    opCode: OpCode.getChildren2,
    watches: recordWatch && { path, kinds: ['child'] },
    write: (writer) => operations.getChildren2.request.write(writer, { path, watch: recordWatch !== undefined }),
    read: (reader) => {
      const { children, stat } = operations.getChildren2.reply.read(reader);
      recordWatch?.('child');
      return { children, stat: toClientStat(stat) };
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

export function getEphemeralsOperation(prefixPath: string, stripChroot: (path: string) => string): Operation<readonly string[]> {
  return {
    opCode: OpCode.getEphemerals,
    write: (writer) => operations.getEphemerals.request.write(writer, { prefixPath }),
    read: (reader) => operations.getEphemerals.reply.read(reader).ephemerals.map(stripChroot),
  };
}

export function getAclOperation(path: string): Operation<GetAclResult> {
  return {
    opCode: OpCode.getACL,
    write: (writer) => operations.getACL.request.write(writer, { path }),
    read: (reader) => {
      const { acl, stat } = operations.getACL.reply.read(reader);
      return { acl, stat: toClientStat(stat) };
    },
  };
}

export function setAclOperation(path: string, acl: readonly Acl[], version: number): Operation<Stat> {
  return {
    opCode: OpCode.setACL,
    write: (writer) => operations.setACL.request.write(writer, { path, acl, version }),
    read: (reader) => toClientStat(operations.setACL.reply.read(reader).stat),
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

/** The change of a reconfig: servers that join and leave, or all members. */
export type ReconfigSettings = IncrementalReconfig | WholeReconfig;

/** Servers that join and leave. */
export interface IncrementalReconfig {
  /**
   * The version of the configuration that this change requires, a zxid. Default: -1n, any version.
   */
  readonly fromConfig?: bigint | undefined;
  /** `server.5=host:2888:3888;2181`, as in a dynamic configuration. Default: none. */
  readonly joiningServers?: string | readonly string[] | undefined;
  /** Ids of servers. Default: none. */
  readonly leavingServers?: string | readonly (string | number)[] | undefined;
  /** Only without `joiningServers` and `leavingServers`. Default: none. */
  readonly newMembers?: undefined;
}

/** All members, for ensembles whose quorums are not majorities. */
export interface WholeReconfig {
  /** As in `IncrementalReconfig`. Default: -1n, any version. */
  readonly fromConfig?: bigint | undefined;
  /** Not together with `newMembers`. Default: none. */
  readonly joiningServers?: undefined;
  /** Not together with `newMembers`. Default: none. */
  readonly leavingServers?: undefined;
  /** All servers, each as `server.5=host:2888:3888;2181`. */
  readonly newMembers: string | readonly string[];
}

export function reconfigOperation(settings: ReconfigSettings): Operation<GetDataResult> {
  const { joiningServers, leavingServers, newMembers, fromConfig = -1n } = settings;
  const curConfigId = Number(fromConfig);
  if (!Number.isSafeInteger(curConfigId)) {
    throw new RequestFailure(ErrorCode.BadArguments, 'notSent', `fromConfig ${fromConfig} is not a version of a configuration`);
  }
  const request = {
    joiningServers: joinList(joiningServers),
    leavingServers: joinList(leavingServers),
    newMembers: joinList(newMembers),
    curConfigId,
  };
  return {
    opCode: OpCode.reconfig,
    write: (writer) => operations.reconfig.request.write(writer, request),
    read: (reader) => {
      const { data, stat } = operations.reconfig.reply.read(reader);
      return { data: copyBytes(data), stat: toClientStat(stat) };
    },
  };
}

function joinList(list: string | readonly (string | number)[] | undefined): string | null {
  if (list === undefined) return null;
  return typeof list === 'string' ? list : list.join(',');
}
