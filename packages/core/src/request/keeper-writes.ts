/**
 * Validates the writes of ClickHouse Keeper, and its checks in a multi. Each becomes a txn that
 * ZooKeeper has: a create, a delete, or a multi of them; or a txn without a change.
 *
 * A part of a multi that changes nothing becomes a check, which has no effect when it is applied.
 * removeRecursive is in pending-removal.ts.
 */
import {
  type CheckStatRequest,
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  ErrorCode,
  OpCode,
  Perms,
  pathError,
  sessionIdOf,
  type Zxid,
} from '@tskeeper/protocol';
import type { Permissions } from '../auth/permissions.ts';
import type { Now } from '../now.ts';
import type { CoreOptions } from '../options.ts';
import { errorTxn, type PrepareResult, type TypedTxn, type WriteOrigin } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import { isStatOf } from './stat-check.ts';
import { isSessionOwner } from './ephemeral-type.ts';
import type { OutstandingChanges, PendingZnode } from './outstanding-changes.ts';
import { PendingRemoval } from './pending-removal.ts';
import type { ValidationDependencies, WriteValidator } from './write-validator.ts';

/** Around the deletes of a removeRecursive: header, digest and lengths. */
const entryOverheadBytes = 128;

export class KeeperWrites {
  readonly #options: CoreOptions;
  readonly #replica: Replica;
  readonly #permissions: Permissions;
  readonly #validator: WriteValidator;
  readonly #outstandingChanges: OutstandingChanges;

  constructor(
    { options, replica, permissions }: ValidationDependencies,
    validator: WriteValidator,
    outstandingChanges: OutstandingChanges,
  ) {
    this.#options = options;
    this.#replica = replica;
    this.#permissions = permissions;
    this.#validator = validator;
    this.#outstandingChanges = outstandingChanges;
  }

  /** A create with a plain name. A znode that exists is left as it is, and the answer is the same. */
  createIfNotExists(origin: WriteOrigin, request: CreateRequest, zxid: Zxid, now: Now): PrepareResult {
    const { path, flags } = request;
    if (flags !== CreateMode.persistent && flags !== CreateMode.ephemeral) return ErrorCode.BadArguments;
    const result = this.#validator.create(origin, OpCode.create, request, -1, zxid, now);
    return result === ErrorCode.NodeExists && path !== null ? nothing(path) : result;
  }

  /** A delete. Where there is nothing to delete, or it must not be deleted, the answer is the same. */
  tryRemove(origin: WriteOrigin, request: DeleteRequest, zxid: Zxid): PrepareResult {
    const result = this.#validator.delete(origin, request, zxid);
    return isHarmless(result) && request.path !== null ? nothing(request.path) : result;
  }

  /** Fails if the znode exists with this version; -1 means any. */
  checkNotExists(origin: WriteOrigin, { path, version }: DeleteRequest): PrepareResult {
    const znode = this.#find(origin, path);
    if (typeof znode === 'number') return znode;
    if (znode !== undefined && (version === -1 || version === znode.version)) return ErrorCode.NodeExists;
    return nothing(path!);
  }

  /** As a check, and every field of `stat` that is not -1 must be equal too. */
  checkStat(origin: WriteOrigin, { path, version, stat }: CheckStatRequest): PrepareResult {
    const znode = this.#find(origin, path);
    if (typeof znode === 'number') return znode;
    if (znode === undefined) return ErrorCode.NoNode;
    if (version !== -1 && version !== znode.version) return ErrorCode.BadVersion;
    const owner = isSessionOwner(znode.ownerHigh, znode.ownerLow, this.#options) ? { high: znode.ownerHigh, low: znode.ownerLow } : noOwner;
    const agrees = isStatOf(stat, {
      czxid: znode.czxid,
      mzxid: znode.mzxid,
      ctime: znode.ctime,
      mtime: znode.mtime,
      version: znode.version,
      cversion: (2 * znode.cversion - znode.childCount) | 0,
      aversion: znode.aversion,
      ephemeralOwner: sessionIdOf(owner.high, owner.low),
      dataLength: this.#outstandingChanges.dataLength(znode),
      numChildren: znode.childCount,
      pzxid: znode.pzxid,
    });
    return agrees ? nothing(path!) : ErrorCode.BadVersion;
  }

  /** What the path will name, if the client may read it. Returns the error if not. */
  #find(origin: WriteOrigin, path: string | null): PendingZnode | undefined | number {
    const fault = this.#validator.checkSession(origin);
    if (fault !== undefined) return fault;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const znode = this.#outstandingChanges.find(path);
    const mayRead = znode === undefined || this.#permissions.permits(znode.acl, Perms.read, origin.identities);
    return mayRead ? znode : ErrorCode.NoAuth;
  }

  /**
   * Begins to remove a znode and all below it. `bytesUsed`: of the deletes that are in the txn
   * already.
   */
  removal(origin: WriteOrigin, path: string, limit: number, zxid: Zxid, bytesUsed: number): PendingRemoval {
    const bytesMax = this.#validator.entryBytesMax - entryOverheadBytes - bytesUsed;
    return new PendingRemoval(origin, { path, limit, bytesMax }, zxid, {
      tree: this.#replica.tree,
      permissions: this.#permissions,
      validator: this.#validator,
      outstandingChanges: this.#outstandingChanges,
    });
  }
}

const noOwner = { high: 0, low: 0 };

/** A part of a multi without an effect. */
export function nothing(path: string): TypedTxn {
  return { type: OpCode.check, txn: { kind: 'check', path, version: 0 } };
}

/** Why a tryRemove deletes nothing, and does not fail. */
function isHarmless(result: PrepareResult): boolean {
  return result === ErrorCode.NoNode || result === ErrorCode.BadVersion || result === ErrorCode.NotEmpty;
}

/**
 * The txn of a write of Keeper that is not a part of a multi. The answer to a createIfNotExists has
 * the path of the znode that exists, and a server that answers has only the txn: it is a multi with
 * one check. A tryRemove that removes nothing has no body.
 */
export function aloneTxn(opCode: number, result: PrepareResult): PrepareResult {
  if (typeof result === 'number' || result.txn.kind !== 'check') return result;
  if (opCode !== OpCode.createIfNotExists) return errorTxn(ErrorCode.Ok);
  return { type: OpCode.multi, txn: { kind: 'multi', txns: [{ type: OpCode.check, txn: result.txn }] } };
}
