/**
 * Validates single writes, and records what they will change.
 *
 * The checks are in ZooKeeper's order, since a request can be invalid in more than one way and
 * clients depend on the error they get. Each method returns the txn, or the error code that
 * replaces it; only in the former case it has recorded outstanding changes.
 */
import {
  type Acl,
  type CheckVersionRequest,
  CreateMode,
  type CreateRequest,
  type CreateTTLRequest,
  type DeleteRequest,
  ErrorCode,
  isReservedPath,
  type MultiMember,
  OpCode,
  Perms,
  pathError,
  readOnlyAcl,
  sequenceRecordPath,
  sequenceSuffix,
  type SetACLRequest,
  type SetDataRequest,
  systemPath,
  type Txn,
  type Zxid,
} from '@tskeeper/protocol';
import type { AuthRegistry } from '../auth/auth-provider.ts';
import type { Permissions } from '../auth/permissions.ts';
import { RequestedAcls, type StoredAcl } from '../auth/requested-acl.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import { containerOwner, isSessionOwner, ttlMax, ttlOwner } from './ephemeral-type.ts';
import { isTtlMode } from './multi-parts.ts';
import { type OutstandingChanges, PendingZnode } from './outstanding-changes.ts';
import type { PrepareResult, TypedTxn, WriteOrigin } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import { type DueRecord, SequenceNumbers } from './sequence-numbers.ts';
import { unitsPerAclEntry } from '../step-budget.ts';

/** What validation needs from the server. */
export interface ValidationDependencies {
  readonly options: CoreOptions;
  readonly replica: Replica;
  readonly tracker: SessionTracker;
  readonly registry: AuthRegistry;
  readonly permissions: Permissions;
  readonly observer: Observer;
}

export class WriteValidator {
  readonly #options: CoreOptions;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #requestedAcls: RequestedAcls;
  readonly #outstandingChanges: OutstandingChanges;
  readonly sequenceNumbers: SequenceNumbers;
  /** A longer txn could not be read back. */
  readonly entryBytesMax: number;
  /**
   * Size of expanded `auth` entries: of the txn being validated, in bytes; and of all txns, in
   * entries.
   */
  #authExpansionBytes = 0;
  #authExpansionEntries = 0;

  constructor(
    { options, replica, tracker, registry, permissions, observer }: ValidationDependencies,
    outstandingChanges: OutstandingChanges,
  ) {
    this.#options = options;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#requestedAcls = new RequestedAcls(registry);
    this.#outstandingChanges = outstandingChanges;
    this.sequenceNumbers = new SequenceNumbers(replica.tree, outstandingChanges, options.wideSequences);
    this.entryBytesMax = options.juteMaxBuffer + options.juteMaxBufferExtra;
  }

  /** The next txn is to be validated. */
  beginTxn(): void {
    this.#authExpansionBytes = 0;
  }

  /**
   * The ACLs of the txn being validated are longer than a txn may be. Some of them have not been
   * built.
   */
  get isEntryTooLong(): boolean {
    return this.#authExpansionBytes > this.entryBytesMax;
  }

  /** Units spent on ACLs, those expanded and those checked. */
  get aclWorkUnits(): number {
    return this.#authExpansionEntries * unitsPerAclEntry + this.#permissions.workUnits;
  }

  /** The error code for a write of a session that is not live. */
  checkSession(origin: WriteOrigin): number | undefined {
    return this.#tracker.acceptsWritesOf(origin) ? undefined : ErrorCode.SessionExpired;
  }

  /**
   * The error code for the ephemeral of a session that cannot own one: every server must know the
   * session and see its end.
   */
  #checkEphemeralOwner({ sessionHigh: high, sessionLow: low, isUpgradeRefused }: WriteOrigin): number | undefined {
    if (isUpgradeRefused) return ErrorCode.EphemeralOnLocalSession;
    return this.#tracker.findLiveGlobal(high, low) === -1 ? ErrorCode.SessionExpired : undefined;
  }

  create(
    origin: WriteOrigin,
    opCode: CreateOpCode,
    request: CreateRequest | CreateTTLRequest,
    ttlMs: number,
    zxid: Zxid,
    now: Now,
  ): PrepareResult {
    const mode = request.flags;
    if (mode < CreateMode.persistent || mode > CreateMode.persistentSequentialWithTtl) return ErrorCode.BadArguments;
    const wantsTtl = isTtlMode(mode);
    if (wantsTtl && !this.#options.extendedTypesEnabled) return ErrorCode.Unimplemented;
    if (wantsTtl ? ttlMs <= 0 || ttlMs > ttlMax : ttlMs >= 0) return ErrorCode.BadArguments;
    // A TTL without a TTL mode gets here if it is negative. It must not reach the log: no server
    // could apply it.
    if (opCode === OpCode.createTTL && !wantsTtl) return ErrorCode.BadArguments;
    const ephemeral = mode === CreateMode.ephemeral || mode === CreateMode.ephemeralSequential;
    const fault = ephemeral ? this.#checkEphemeralOwner(origin) : this.checkSession(origin);
    if (fault !== undefined) return fault;

    if (request.path === null) return ErrorCode.MarshallingError;
    const slash = lastSlash(request.path);
    if (slash === -1) return ErrorCode.BadArguments;
    const stored = this.#requestedAcls.fixup(request.acl, origin.identities, this.entryBytesMax);
    if (stored === undefined) return ErrorCode.InvalidACL;
    const { acl } = stored;
    const parentPath = slash === 0 ? '/' : request.path.slice(0, slash);
    const parent = this.#outstandingChanges.find(parentPath);
    if (parent === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.create, parent, origin)) return ErrorCode.NoAuth;
    const path = isSequential(mode) ? request.path + sequenceSuffix(this.sequenceNumbers.next(parentPath, parent)) : request.path;
    if (pathError(path) !== undefined) return ErrorCode.BadArguments;
    // Servers trust what is below it.
    if (path === systemPath.sequences) return ErrorCode.NoAuth;
    if (this.#outstandingChanges.find(path) !== undefined) return ErrorCode.NodeExists;
    if (isSessionOwner(parent.ownerHigh, parent.ownerLow, this.#options)) return ErrorCode.NoChildrenForEphemerals;
    const data = copyData(request.data);
    if (this.#exceedsQuota(path, data?.length ?? 0, 1)) return ErrorCode.QuotaExceeded;

    if (this.#exceedsEntryBytes(stored)) return ErrorCode.MarshallingError;
    const owner = ownerOf(opCode, ephemeral, ttlMs, origin);
    const parentCVersion = this.#addZnode(path, parentPath, parent, data, acl, owner, zxid, now);
    this.sequenceNumbers.counted(parentPath);
    return { type: opCode, txn: createTxn(opCode, path, data, acl, ephemeral, parentCVersion, ttlMs) };
  }

  /** Records that a znode is created; returns the cversion of its parent after that. */
  #addZnode(
    path: string,
    parentPath: string,
    parent: PendingZnode,
    data: Uint8Array | null,
    acl: readonly Acl[],
    owner: Owner,
    zxid: Zxid,
    now: Now,
  ): number {
    const parentAfter = parent.copyIfRecorded();
    parentAfter.childCount++;
    // The counter is a signed 32-bit int and wraps: after 2147483647 comes -2147483648.
    parentAfter.cversion = (parent.cversion + 1) | 0;
    parentAfter.pzxid = zxid;
    this.#outstandingChanges.record(parentPath, zxid, parentAfter, parent.digest);
    const znode = new PendingZnode();
    znode.acl = this.#replica.tree.acls.intern(acl);
    znode.ownerHigh = owner.high;
    znode.ownerLow = owner.low;
    znode.czxid = znode.mzxid = znode.pzxid = zxid;
    znode.ctime = znode.mtime = now.wallMs;
    znode.data = data;
    this.#outstandingChanges.record(path, zxid, znode, 0);
    this.#replica.tree.acls.release(znode.acl);
    return parentAfter.cversion;
  }

  /**
   * Stores the number that the children of a znode have reached, in a znode that clients can only
   * read.
   */
  recordSequence({ parentPath, data }: DueRecord, zxid: Zxid, now: Now): TypedTxn {
    const path = sequenceRecordPath(parentPath);
    const existing = this.#outstandingChanges.find(path);
    if (existing !== undefined) return this.#replaceData(path, existing, data, (existing.version + 1) | 0, zxid, now);
    const txns: MultiMember[] = [];
    if (this.#outstandingChanges.find(systemPath.sequences) === undefined)
      txns.push(this.#addSystemZnode(systemPath.sequences, null, zxid, now));
    txns.push(this.#addSystemZnode(path, data, zxid, now));
    return { type: OpCode.multi, txn: { kind: 'multi', txns } };
  }

  #addSystemZnode(path: string, data: Uint8Array | null, zxid: Zxid, now: Now): MultiMember {
    const parentPath = parentOf(path);
    const parent = this.#outstandingChanges.find(parentPath)!;
    const parentCVersion = this.#addZnode(path, parentPath, parent, data, readOnlyAcl, noOwner, zxid, now);
    return { type: OpCode.create, txn: { kind: 'create', path, data, acl: readOnlyAcl, ephemeral: false, parentCVersion } };
  }

  delete(origin: WriteOrigin, request: DeleteRequest, zxid: Zxid): PrepareResult {
    const fault = this.checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null) return ErrorCode.MarshallingError;
    const slash = lastSlash(path);
    if (slash === -1 || isReservedPath(path)) return ErrorCode.BadArguments;
    const parentPath = slash === 0 ? '/' : path.slice(0, slash);
    const parent = this.#outstandingChanges.find(parentPath);
    if (parent === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.delete, parent, origin)) return ErrorCode.NoAuth;
    const znode = this.#outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (request.version !== -1 && request.version !== znode.version) return ErrorCode.BadVersion;
    if (znode.childCount > 0) return ErrorCode.NotEmpty;
    this.removeZnode(path, zxid);
    return { type: OpCode.delete, txn: { kind: 'delete', path } };
  }

  /** Records that the znode is deleted; its parent loses a child. */
  removeZnode(path: string, zxid: Zxid): void {
    const znode = this.#outstandingChanges.find(path);
    if (znode === undefined) return;
    const parentPath = parentOf(path);
    const parent = this.#outstandingChanges.find(parentPath);
    if (parent !== undefined) {
      const parentAfter = parent.copyIfRecorded();
      parentAfter.childCount--;
      parentAfter.pzxid = zxid;
      this.#outstandingChanges.record(parentPath, zxid, parentAfter, parent.digest);
    }
    const after = znode.copyIfRecorded();
    after.exists = false;
    this.#outstandingChanges.record(path, zxid, after, znode.digest);
  }

  setData(origin: WriteOrigin, request: SetDataRequest, zxid: Zxid, now: Now): PrepareResult {
    const fault = this.checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const znode = this.#outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.write, znode, origin)) return ErrorCode.NoAuth;
    const data = copyData(request.data);
    if (this.#exceedsQuota(path, (data?.length ?? 0) - this.#outstandingChanges.dataLength(znode), 0)) return ErrorCode.QuotaExceeded;
    if (request.version !== -1 && request.version !== znode.version) return ErrorCode.BadVersion;
    return this.#replaceData(path, znode, data, (znode.version + 1) | 0, zxid, now);
  }

  #replaceData(path: string, znode: PendingZnode, data: Uint8Array | null, version: number, zxid: Zxid, now: Now): TypedTxn {
    const after = znode.copyIfRecorded();
    after.data = data;
    after.version = version;
    after.mzxid = zxid;
    after.mtime = now.wallMs;
    this.#outstandingChanges.record(path, zxid, after, znode.digest);
    return { type: OpCode.setData, txn: { kind: 'setData', path, data, version }, node: after.node };
  }

  setAcl(origin: WriteOrigin, request: SetACLRequest, zxid: Zxid): PrepareResult {
    const fault = this.checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const stored = this.#requestedAcls.fixup(request.acl, origin.identities, this.entryBytesMax);
    if (stored === undefined) return ErrorCode.InvalidACL;
    const { acl } = stored;
    const znode = this.#outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.admin, znode, origin)) return ErrorCode.NoAuth;
    if (request.version !== -1 && request.version !== znode.aversion) return ErrorCode.BadVersion;
    if (this.#exceedsEntryBytes(stored)) return ErrorCode.MarshallingError;
    const version = (znode.aversion + 1) | 0;
    const after = znode.copyIfRecorded();
    after.acl = this.#replica.tree.acls.intern(acl);
    after.aversion = version;
    this.#outstandingChanges.record(path, zxid, after, znode.digest);
    this.#replica.tree.acls.release(after.acl);
    return { type: OpCode.setACL, txn: { kind: 'setACL', path, acl, version } };
  }

  /** A part of a multi; it changes nothing. */
  check(origin: WriteOrigin, request: CheckVersionRequest): PrepareResult {
    const fault = this.checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    // A znode without outstanding changes is read from the tree directly: a multi may have very
    // many checks.
    const future = this.#outstandingChanges.peek(path);
    const { tree } = this.#replica;
    const node = future === undefined ? tree.find(path) : 0;
    if (future === undefined ? node === 0 : !future.exists) return ErrorCode.NoNode;
    const acl = future === undefined ? tree.aclOf(node) : future.acl;
    if (!this.#permissions.permits(acl, Perms.read, origin.identities)) return ErrorCode.NoAuth;
    const version = future === undefined ? tree.versionOf(node) : future.version;
    if (request.version !== -1 && request.version !== version) return ErrorCode.BadVersion;
    return { type: OpCode.check, txn: { kind: 'check', path, version: (version + 1) | 0 } };
  }

  /** A client that may write /zookeeper/config may change the ensemble. Returns the error, if any. */
  checkMayReconfigure(origin: WriteOrigin): ErrorCode | undefined {
    const znode = this.#outstandingChanges.find(systemPath.config);
    if (znode === undefined) return ErrorCode.NoNode;
    return this.#lacksPermission(Perms.write, znode, origin) ? ErrorCode.NoAuth : undefined;
  }

  /**
   * The text of a new configuration, in /zookeeper/config. As in ZooKeeper, a client that may write that
   * znode may reconfigure, its version is -1, and it counts in no quota.
   */
  setConfig(origin: WriteOrigin, text: string, zxid: Zxid, now: Now): PrepareResult {
    const path = systemPath.config;
    const fault = this.checkMayReconfigure(origin);
    if (fault !== undefined) return fault;
    const znode = this.#outstandingChanges.find(path)!;
    return { ...this.#replaceData(path, znode, Buffer.from(text, 'utf8'), -1, zxid, now), type: OpCode.reconfig };
  }

  #lacksPermission(perms: number, znode: PendingZnode, origin: WriteOrigin): boolean {
    return !this.#permissions.permits(znode.acl, perms, origin.identities);
  }

  /**
   * Whether an ACL makes the txn too long. Do not call it for an ACL refused for another reason.
   */
  #exceedsEntryBytes({ authExpansionBytes, authExpansionEntries }: StoredAcl): boolean {
    this.#authExpansionBytes += authExpansionBytes;
    if (this.isEntryTooLong) return true;
    this.#authExpansionEntries += authExpansionEntries;
    return false;
  }

  #exceedsQuota(path: string, bytesDelta: number, countDelta: number): boolean {
    const { tree } = this.#replica;
    if (!tree.quotas.hasQuotas) return false;
    const violation = tree.quotas.check(path, bytesDelta, countDelta);
    if (violation === undefined) return false;
    if (violation.isHard && this.#options.enforceQuota) {
      this.#observer.quotaExceeded(tree.namespaceOfPath(path));
      return true;
    }
    this.#observer.notice({
      kind: 'quotaSoftLimit',
      path: violation.path,
      what: violation.what,
      usage: violation.usage,
      limit: violation.limit,
    });
    return false;
  }
}

type CreateOpCode = typeof OpCode.create | typeof OpCode.create2 | typeof OpCode.createContainer | typeof OpCode.createTTL;

function createTxn(
  opCode: CreateOpCode,
  path: string,
  data: Uint8Array | null,
  acl: readonly Acl[],
  ephemeral: boolean,
  parentCVersion: number,
  ttl: number,
): Txn {
  switch (opCode) {
    case OpCode.createContainer:
      return { kind: 'createContainer', path, data, acl, parentCVersion };
    case OpCode.createTTL:
      return { kind: 'createTTL', path, data, acl, parentCVersion, ttl };
    default:
      return { kind: 'create', path, data, acl, ephemeral, parentCVersion };
  }
}

function ownerOf(opCode: CreateOpCode, ephemeral: boolean, ttlMs: number, origin: WriteOrigin): Owner {
  if (opCode === OpCode.createContainer) return containerOwner;
  if (opCode === OpCode.createTTL) return ttlOwner(ttlMs);
  return ephemeral ? { high: origin.sessionHigh, low: origin.sessionLow } : noOwner;
}

/** The field ephemeralOwner of a new znode. */
interface Owner {
  readonly high: number;
  readonly low: number;
}

const noOwner: Owner = { high: 0, low: 0 };

/**
 * Index of the slash before the name in the path of a create or delete; -1 if the path cannot have
 * a parent.
 */
function lastSlash(path: string): number {
  return path.includes('\0') ? -1 : path.lastIndexOf('/');
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === 0 ? '/' : path.slice(0, slash);
}

function isSequential(mode: number): boolean {
  return (
    mode === CreateMode.persistentSequential || mode === CreateMode.ephemeralSequential || mode === CreateMode.persistentSequentialWithTtl
  );
}

/** The data of a request is a view of network input, and the txn outlives it. */
function copyData(data: Uint8Array | null): Buffer | null {
  return data === null ? null : Buffer.from(data);
}
