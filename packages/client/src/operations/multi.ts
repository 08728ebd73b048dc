/**
 * Many operations in one request: `multi` writes, all or none; `multiRead` reads, each
 * independently.
 *
 * Operations are plain values, made by the functions of `op`, so that the type of a list of them
 * determines the types of its results, element by element.
 */
import {
  ErrorCode,
  errorName,
  type MultiResult as WireResult,
  OpCode,
  ProtocolError,
  type Reader,
  readMultiReply,
  writeDeleteRequest,
  writeGetDataRequest,
  writeMultiEnd,
  writeMultiHeader,
  type Writer,
  writeSetDataRequest,
} from '@tskeeper/protocol';
import type { Chroot } from '../chroot.ts';
import { KeeperError, type OperationOutcome, RequestFailure } from '../keeper-error.ts';
import type { Operation } from './operation.ts';
import { type Stat, toClientStat } from '../stat.ts';
import { opSignatures } from './op-signatures.ts';
import { checkCreatePath, checkPath, type CreateSettings, createRequest, type Data, toBytes } from './create.ts';

/** Creates a znode, as `create` does. */
export type CreateOp = CreateSettings & {
  readonly op: 'create';
  readonly path: string;
  readonly data?: Data | undefined;
};
/** Deletes a znode without children. */
export interface DeleteOp {
  readonly op: 'delete';
  /** Path from the client's root. */
  readonly path: string;
  /** The version that the znode must have. Default: -1, any version. */
  readonly version?: number | undefined;
}
/** Replaces the data. */
export interface SetDataOp {
  readonly op: 'setData';
  /** Path from the client's root. */
  readonly path: string;
  /** The new data, which replace the old ones. */
  readonly data: Data;
  /** The version that the znode must have. Default: -1, any version. */
  readonly version?: number | undefined;
}
/** Fails the multi unless the znode exists, and has the version if one is given. */
export interface CheckOp {
  readonly op: 'check';
  /** Path from the client's root. */
  readonly path: string;
  /** The version that the znode must have. Default: -1, any version. */
  readonly version?: number | undefined;
}
/** Reads data. */
export interface GetDataOp {
  readonly op: 'getData';
  /** Path from the client's root. */
  readonly path: string;
}
/** Lists children. */
export interface GetChildrenOp {
  readonly op: 'getChildren';
  /** Path from the client's root. */
  readonly path: string;
}

/** An operation of a `multi`. */
export type WriteOp = CreateOp | DeleteOp | SetDataOp | CheckOp;
/** An operation of a `multiRead`. */
export type ReadOp = GetDataOp | GetChildrenOp;

/** The result of one operation of a successful `multi`. */
export type WriteResult<Op extends WriteOp> = Op extends CreateOp
  ? {
      readonly op: 'create';
      /** The created path; includes the number if the znode is sequential. */
      readonly path: string;
      /** undefined from servers before ZooKeeper 3.8.2, which do not send it. */
      readonly stat: Stat | undefined;
    }
  : Op extends SetDataOp
    ? { readonly op: 'setData'; readonly stat: Stat }
    : Op extends DeleteOp
      ? { readonly op: 'delete' }
      : { readonly op: 'check' };

/** The result of one operation of a `multiRead`: what was read, or the error. */
export type ReadResult<Op extends ReadOp> =
  | (Op extends GetDataOp
      ? { readonly op: 'getData'; readonly data: Uint8Array | null; readonly stat: Stat; readonly error?: undefined }
      : { readonly op: 'getChildren'; readonly children: readonly string[]; readonly error?: undefined })
  | { readonly op: 'error'; readonly error: KeeperError };

/** The results of a `multi`, each of the type of its operation. */
export type WriteResults<Ops extends readonly WriteOp[]> = { readonly [At in keyof Ops]: WriteResult<Ops[At]> };
/** The results of a `multiRead`, each of the type of its operation. */
export type ReadResults<Ops extends readonly ReadOp[]> = { readonly [At in keyof Ops]: ReadResult<Ops[At]> };

const noOptions = {};

/**
 * Creates the operations of a `multi` or a `multiRead`. `version` -1, the default, means any
 * version.
 */
export const op = {
  /** Creates a znode. Throws a TypeError for invalid arguments. */
  create(path: string, data?: Data, options: CreateSettings = {}): CreateOp {
    opSignatures.create.check(arguments.length, options, path, data);
    return { ...options, op: 'create', path, data };
  },
  /** Deletes a znode if it has the given version. Throws a TypeError for invalid arguments. */
  delete(path: string, options: { readonly version?: number | undefined } = {}): DeleteOp {
    opSignatures.delete.check(arguments.length, options, path);
    return { op: 'delete', path, version: options.version };
  },
  /**
   * Replaces the data if the znode has the given version. Throws a TypeError for invalid arguments.
   */
  setData(path: string, data: Data, options: { readonly version?: number | undefined } = {}): SetDataOp {
    opSignatures.setData.check(arguments.length, options, path, data);
    return { op: 'setData', path, data, version: options.version };
  },
  /**
   * Fails the multi unless the znode exists and has the given version. Throws a TypeError for
   * invalid arguments.
   */
  check(path: string, options: { readonly version?: number | undefined } = {}): CheckOp {
    opSignatures.check.check(arguments.length, options, path);
    return { op: 'check', path, version: options.version };
  },
  /** Reads data. Throws a TypeError for invalid arguments. */
  getData(path: string): GetDataOp {
    opSignatures.getData.check(arguments.length, noOptions, path);
    return { op: 'getData', path };
  },
  /** Lists children. Throws a TypeError for invalid arguments. */
  getChildren(path: string): GetChildrenOp {
    opSignatures.getChildren.check(arguments.length, noOptions, path);
    return { op: 'getChildren', path };
  },
} as const;

interface EncodedOp {
  readonly type: number;
  write(writer: Writer): void;
}

/** ZooKeeper's clients send -1 where a request does not use the error. */
const noErr = -1;

function writeEncodedOps(writer: Writer, parts: readonly EncodedOp[]): void {
  for (const part of parts) {
    writeMultiHeader(writer, { type: part.type, done: false, err: noErr });
    part.write(writer);
  }
  writeMultiEnd(writer);
}

/** Adds to a RequestFailure which operation is invalid. */
function encodeOp<Op extends WriteOp | ReadOp>(each: Op, index: number, make: (each: Op) => EncodedOp): EncodedOp {
  try {
    return make(each);
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error;
    throw new RequestFailure(error.errno, error.outcome, `ops[${index}], ${each.op} ${each.path}: ${error.reason}`, {
      failedIndex: index,
    });
  }
}

function encodeWriteOp(each: WriteOp, chroot: Chroot): EncodedOp {
  const path = chroot.prepend(each.path);
  switch (each.op) {
    case 'create': {
      checkCreatePath(each.path, each.mode ?? 'persistent');
      const form = createRequest(path, each.data, each);
      return { type: form.opCode, write: (writer) => form.write(writer) };
    }
    case 'delete':
      checkPath(each.path);
      return { type: OpCode.delete, write: (writer) => writeDeleteRequest(writer, { path, version: each.version ?? -1 }) };
    case 'setData': {
      checkPath(each.path);
      const data = toBytes(each.data);
      return { type: OpCode.setData, write: (writer) => writeSetDataRequest(writer, { path, data, version: each.version ?? -1 }) };
    }
    case 'check':
      checkPath(each.path);
      return { type: OpCode.check, write: (writer) => writeDeleteRequest(writer, { path, version: each.version ?? -1 }) };
    default:
      throw new TypeError(`a multi consists of create, delete, setData and check, not "${(each as WriteOp).op}"`);
  }
}

function encodeReadOp(each: ReadOp, chroot: Chroot): EncodedOp {
  const path = chroot.prepend(each.path);
  const type = each.op === 'getData' ? OpCode.getData : each.op === 'getChildren' ? OpCode.getChildren : undefined;
  if (type === undefined) throw new TypeError(`a multiRead consists of getData and getChildren, not "${each.op}"`);
  checkPath(each.path);
  // Servers ignore the watch of a multiRead, so it is never set.
  return { type, write: (writer) => writeGetDataRequest(writer, { path, watch: false }) };
}

/** The results that a server may send for each operation, besides an error. */
const resultKinds: Readonly<Record<WriteOp['op'] | ReadOp['op'], readonly WireResult['kind'][]>> = {
  create: ['create2', 'create'],
  delete: ['delete'],
  setData: ['setData'],
  check: ['check'],
  getData: ['getData'],
  getChildren: ['getChildren'],
};

/** The results: one for each operation, each of a matching kind. */
function readResults(reader: Reader, ops: readonly (WriteOp | ReadOp)[]): readonly WireResult[] {
  const { results } = readMultiReply(reader);
  const fit = results.length === ops.length && results.every(({ kind }, at) => kind === 'error' || resultKinds[ops[at]!.op].includes(kind));
  if (!fit)
    throw unexpectedReply(
      `results for ${ops.map((each) => each.op).join(', ')}, not ${results.map(({ kind }) => kind).join(', ')}`,
      reader,
    );
  return results;
}

export function multiOperation<const Ops extends readonly WriteOp[]>(ops: Ops, chroot: Chroot): Operation<WriteResults<Ops>> {
  const parts = ops.map((each, index) => encodeOp<WriteOp>(each, index, (one) => encodeWriteOp(one, chroot)));
  return {
    opCode: OpCode.multi,
    write: (writer) => writeEncodedOps(writer, parts),
    read: (reader) => {
      const results = readResults(reader, ops);
      const failedIndex = results.findIndex((result) => result.kind === 'error' && result.err !== ErrorCode.Ok);
      if (failedIndex !== -1) throw multiFailure(results, ops, failedIndex);
      return results.map((result) => writeResult(result, chroot, reader)) as unknown as WriteResults<Ops>;
    },
  };
}

function multiFailure(results: readonly WireResult[], ops: readonly WriteOp[], failedIndex: number): RequestFailure {
  const errs = results.map((result) => (result.kind === 'error' ? result.err : ErrorCode.Ok));
  const outcomes: OperationOutcome[] = errs.map((errno) => ({ errno, code: errorName(errno) ?? 'Unknown' }));
  const failed = ops[failedIndex]!;
  const reason = `ops[${failedIndex}], ${failed.op} ${failed.path}; nothing was changed`;
  return new RequestFailure(errs[failedIndex]!, 'refused', reason, { failedIndex, results: outcomes });
}

function writeResult(result: WireResult, chroot: Chroot, reader: Reader): unknown {
  switch (result.kind) {
    case 'create':
      return { op: 'create', path: chroot.strip(result.path), stat: undefined };
    case 'create2':
      return { op: 'create', path: chroot.strip(result.path), stat: toClientStat(result.stat) };
    case 'setData':
      return { op: 'setData', stat: toClientStat(result.stat) };
    case 'delete':
    case 'check':
      return { op: result.kind };
    default:
      // An error of 0 in a successful multi.
      throw unexpectedReply('the result of a successful operation', reader);
  }
}

export function multiReadOperation<const Ops extends readonly ReadOp[]>(ops: Ops, chroot: Chroot): Operation<ReadResults<Ops>> {
  const parts = ops.map((each, index) => encodeOp<ReadOp>(each, index, (one) => encodeReadOp(one, chroot)));
  return {
    opCode: OpCode.multiRead,
    write: (writer) => writeEncodedOps(writer, parts),
    read: (reader) => readResults(reader, ops).map((result, at) => readResult(result, ops[at]!, reader)) as unknown as ReadResults<Ops>,
  };
}

function readResult(result: WireResult, asked: ReadOp, reader: Reader): unknown {
  switch (result.kind) {
    case 'getData':
      return { op: 'getData', data: copyBytes(result.data), stat: toClientStat(result.stat) };
    case 'getChildren':
      return { op: 'getChildren', children: result.children };
    case 'error':
      return { op: 'error', error: new KeeperError(asked.op, asked.path, new RequestFailure(result.err, 'refused')) };
    default:
      throw unexpectedReply('the result of a read', reader);
  }
}

/** Copies bytes out of a receive buffer that is reused. */
export function copyBytes(bytes: Buffer | null): Uint8Array | null {
  return bytes === null ? null : new Uint8Array(bytes);
}

function unexpectedReply(expected: string, reader: Reader): ProtocolError {
  return new ProtocolError(expected, reader.offset);
}
