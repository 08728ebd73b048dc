/**
 * Turns a write request into a txn, or into an error txn.
 *
 * Requests are validated before earlier ones have been applied, so the tree alone is stale.
 * Validation reads the tree plus the outstanding changes; the result holds when the txn is applied,
 * and is not checked again. A rejected request takes a zxid too, because its reply must keep the
 * session's order.
 *
 * The checks are in ZooKeeper's order, since a request can be invalid in more than one way and
 * clients depend on the error they get.
 */
import {
  type Acl,
  type CheckVersionRequest,
  CreateMode,
  digestVersion,
  type CreateRequest,
  type CreateTTLRequest,
  type DeleteRequest,
  ErrorCode,
  type ErrorTxn,
  isReservedPath,
  type Millis,
  type MultiMember,
  type MultiTxn,
  OpCode,
  Perms,
  pathError,
  ProtocolError,
  Reader,
  readCreateRequest,
  readCreateTTLRequest,
  readDeleteRequest,
  readMultiRequestOp,
  readReconfigRequest,
  readSetACLRequest,
  readSetDataRequest,
  sequenceSuffix,
  type SetACLRequest,
  type SetDataRequest,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  writeMultiMember,
  Writer,
  writeTxn,
  writeTxnDigest,
  writeTxnHeader,
  writeTxnRecord,
  type Zxid,
} from '@tskeeper/protocol';
import type { AuthRegistry } from '../auth/auth-provider.ts';
import type { Permissions } from '../auth/permissions.ts';
import { RequestedAcls, type StoredAcl } from '../auth/requested-acl.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { TxnLog } from '../txn-log.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { bytesPerUnit, StepBudget, unitsPerAclEntry, unitsPerChange, unitsPerPart } from './step-budget.ts';
import { toMultiWrite, isTtlMode, type MultiWrite } from './multi-parts.ts';
import { PendingZnode, OutstandingChanges } from './outstanding-changes.ts';
import type { Proposal, WriteOrigin } from './proposal.ts';
import type { Replica } from './replica.ts';
import { containerOwner, isSessionOwner, ttlMax, ttlOwner } from './ephemeral-type.ts';

/** A txn with its type, or the error code that replaces it. */
type PrepareResult = TypedTxn | number;
interface TypedTxn {
  readonly type: number;
  readonly txn: Txn;
  /** The znode that the txn changes, if it is known to be the same when the txn is applied. */
  readonly node?: NodeId;
}

/** Validation over several steps, and its result. */
export type PrepareJob = Generator<void, Proposal, Now>;

/** What validation needs from the server. */
export interface PreparerDependencies {
  readonly options: CoreOptions;
  readonly replica: Replica;
  readonly tracker: SessionTracker;
  readonly registry: AuthRegistry;
  readonly permissions: Permissions;
  readonly observer: Observer;
}

/** A multi being validated. */
class PendingMulti {
  readonly txns: MultiMember[] = [];
  hasFailed = false;

  txn(): MultiTxn {
    return { kind: 'multi', txns: this.txns };
  }
}

/** A session being closed: how many of its ephemerals have been removed. */
class PendingClose {
  /** The next of those in the tree, 0 after the last. */
  nextEphemeral: NodeId;
  /** Those the tree does not have yet, and how many of them have been removed. */
  readonly newPaths: readonly string[];
  newPathsRemoved = 0;
  readonly paths: string[] = [];
  /** Upper bound of the bytes of the paths in a txn. */
  pathBytesMax = 0;
  /** Shared by all paths: a path is removed once in a txn. */
  readonly deletedZnode = new PendingZnode();
  /**
   * The remaining state of each parent, recorded once when all its removed children have been
   * subtracted.
   */
  readonly parents = new Map<string, { readonly after: PendingZnode; readonly digestBefore: number }>();
  parentsRemaining: Iterator<[string, { readonly after: PendingZnode; readonly digestBefore: number }]> | undefined;

  constructor(first: NodeId, newPaths: readonly string[]) {
    this.nextEphemeral = first;
    this.newPaths = newPaths;
    this.deletedZnode.exists = false;
  }
}

export class Preparer {
  readonly #options: CoreOptions;
  readonly #budget: StepBudget;
  readonly #log: TxnLog;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #requestedAcls: RequestedAcls;
  readonly outstandingChanges: OutstandingChanges;
  /** The log entry being written. */
  readonly #entry = new Writer(1024);
  /** Highest zxid assigned. Invariant: replica.lastZxid <= lastZxid. */
  lastZxid: Zxid;
  /**
   * Size of expanded `auth` entries: of the txn being validated, in bytes; and of all txns, in
   * entries.
   */
  #authExpansionBytes = 0;
  #authExpansionEntries = 0;

  constructor({ options, replica, tracker, registry, permissions, observer }: PreparerDependencies, log: TxnLog) {
    this.#options = options;
    this.#budget = new StepBudget(options.stepUnits);
    this.#log = log;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#requestedAcls = new RequestedAcls(registry);
    this.outstandingChanges = new OutstandingChanges(replica.tree, options.treeDigestEnabled, observer);
    this.lastZxid = replica.lastZxid;
  }

  /**
   * Validates the request whose record `reader` is placed over, assigns a zxid and appends the txn
   * to the log. Returns a job if that takes more than one step. While the job runs, nothing else
   * may be validated, applied or answered: the request has its zxid, and the outstanding changes
   * are those of half a txn.
   */
  prepare(origin: WriteOrigin, reader: Reader, now: Now): Proposal | PrepareJob {
    this.#authExpansionBytes = 0;
    if (origin.opCode === OpCode.multi && isLongMulti(origin, reader, this.#budget.shortFrameBytes)) {
      // The bytes of the frame will be reused.
      return this.#multiInSteps(origin, new Reader(Buffer.from(reader.bytes.subarray(reader.offset, reader.limit))), now);
    }
    const zxid = ++this.lastZxid;
    let result: PrepareResult;
    try {
      result = this.#validate(origin, reader, zxid, now);
      if (this.#isEntryTooLong) result = this.#rejectTooLong(zxid);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // Java logs such a refusal under the zxid of the txn before it. Here it takes its own zxid,
      // like every other refusal.
      this.outstandingChanges.rollback(zxid);
      result = ErrorCode.MarshallingError;
    }
    return this.#propose(origin, zxid, now, result);
  }

  /** A multi that fills a large frame; it is validated while it is decoded. */
  *#multiInSteps(origin: WriteOrigin, reader: Reader, now: Now): PrepareJob {
    const zxid = ++this.lastZxid;
    const multi = new PendingMulti();
    let errorCode: number | undefined;
    let later = now;
    try {
      while (!this.#isEntryTooLong && !this.#validateParts(origin, multi, reader, zxid, now, this.#budget.units)) later = yield;
      if (this.#isEntryTooLong) errorCode = ErrorCode.MarshallingError;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      errorCode = ErrorCode.MarshallingError;
    }
    if (errorCode !== undefined || multi.hasFailed) {
      while (!this.outstandingChanges.rollback(zxid, this.#budget.records)) later = yield;
    }
    const { type, txn } = errorCode === undefined ? { type: OpCode.multi, txn: multi.txn() } : errorTxn(errorCode);
    const entry = this.#entry;
    const header = headerOf(origin, zxid, type, now);
    entry.clear();
    writeTxnHeader(entry, header);
    if (txn.kind === 'multi') {
      entry.int32(multi.txns.length);
      let end = 0;
      for (let i = 0; i < multi.txns.length; i++) {
        if (i % this.#budget.records === 0 || entry.offset > end) {
          later = yield;
          end = entry.offset + this.#budget.entryBytes;
        }
        writeMultiMember(entry, multi.txns[i]!);
      }
    } else {
      writeTxnRecord(entry, txn);
    }
    later = yield;
    const digest = this.#digest();
    if (digest !== undefined) writeTxnDigest(entry, digest);
    const proposal: Proposal = { zxid, origin, header, txn, node: 0, digest, bytes: entry.offset };
    return this.#send(origin, proposal, now, later.elapsedMs - now.elapsedMs);
  }

  /** Refuses a request because of the state of its session. */
  reject(origin: WriteOrigin, error: number, now: Now): Proposal {
    return this.#propose(origin, ++this.lastZxid, now, error);
  }

  createSession(origin: WriteOrigin, timeoutMs: number, now: Now): Proposal {
    return this.#propose(origin, ++this.lastZxid, now, { type: OpCode.createSession, txn: { kind: 'createSession', timeOut: timeoutMs } });
  }

  /**
   * Closes a session, for any reason. Its ephemerals are deleted in the same txn. Returns a job if
   * there are very many; see `request`.
   */
  closeSession(origin: WriteOrigin, now: Now): Proposal | PrepareJob {
    const { sessionHigh: high, sessionLow: low } = origin;
    const zxid = ++this.lastZxid;
    const slot = this.#tracker.sessions.find(high, low);
    if (slot !== -1) this.#tracker.setClosing(slot);
    const closing = new PendingClose(this.#replica.tree.firstEphemeral(high, low), this.outstandingChanges.newEphemerals(high, low));
    if (this.#removeEphemerals(origin, closing, zxid, this.#budget.units)) return this.#proposeClose(origin, closing, zxid, now, 0);
    return this.#closeSessionInSteps(origin, closing, zxid, now);
  }

  *#closeSessionInSteps(origin: WriteOrigin, closing: PendingClose, zxid: Zxid, now: Now): PrepareJob {
    let later: Now;
    do later = yield;
    while (!this.#removeEphemerals(origin, closing, zxid, this.#budget.units));
    return this.#proposeClose(origin, closing, zxid, now, later.elapsedMs - now.elapsedMs);
  }

  #proposeClose(origin: WriteOrigin, closing: PendingClose, zxid: Zxid, now: Now, prepareMs: Millis): Proposal {
    // A list too long to be read back is omitted: a server that applies the txn knows the session's
    // ephemerals.
    const fits = closing.pathBytesMax + entryOverheadBytes <= this.#entryBytesMax;
    const paths2Delete = this.#options.closeSessionTxnEnabled && fits ? closing.paths : null;
    return this.#propose(origin, zxid, now, { type: OpCode.closeSession, txn: { kind: 'closeSession', paths2Delete } }, prepareMs);
  }

  /**
   * Removes the ephemerals that a session will own once all proposals have been applied: first
   * those in the tree, then those that the tree does not have yet; finally the parents are updated.
   * Spends about `budget` units; returns whether all is done.
   */
  #removeEphemerals({ sessionHigh: high, sessionLow: low }: WriteOrigin, closing: PendingClose, zxid: Zxid, budget: number): boolean {
    const { outstandingChanges } = this;
    const { tree } = this.#replica;
    let left = budget;
    for (; closing.nextEphemeral !== 0; closing.nextEphemeral = tree.nextEphemeral(closing.nextEphemeral)) {
      if (left <= 0) return false;
      left -= unitsPerChange;
      const path = tree.pathOf(closing.nextEphemeral);
      const future = outstandingChanges.peek(path);
      if (future === undefined) this.#removeEphemeral(closing, path, zxid, tree.digestOf(closing.nextEphemeral));
      else if (future.exists && future.ownerHigh === high && future.ownerLow === low)
        this.#removeEphemeral(closing, path, zxid, future.digest);
    }
    for (; closing.newPathsRemoved < closing.newPaths.length; closing.newPathsRemoved++) {
      if (left <= 0) return false;
      left -= unitsPerChange;
      const path = closing.newPaths[closing.newPathsRemoved]!;
      this.#removeEphemeral(closing, path, zxid, outstandingChanges.find(path)!.digest);
    }
    closing.parentsRemaining ??= closing.parents.entries();
    for (;;) {
      if (left <= 0) return false;
      const next = closing.parentsRemaining.next();
      if (next.done === true) return true;
      const digestedBefore = outstandingChanges.digestedBytes;
      const [path, { after, digestBefore }] = next.value;
      after.pzxid = zxid;
      outstandingChanges.record(path, zxid, after, digestBefore);
      left -= unitsPerChange + (outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit;
    }
  }

  #removeEphemeral(closing: PendingClose, path: string, zxid: Zxid, digestBefore: number): void {
    closing.paths.push(path);
    closing.pathBytesMax += 4 + path.length * 3;
    this.outstandingChanges.record(path, zxid, closing.deletedZnode, digestBefore);
    const parentPath = parentOf(path);
    let parent = closing.parents.get(parentPath);
    if (parent === undefined) {
      const before = this.outstandingChanges.find(parentPath);
      if (before === undefined) throw new Error(`the ephemeral ${path} has no parent`);
      parent = { after: before.copyIfRecorded(), digestBefore: before.digest };
      closing.parents.set(parentPath, parent);
    }
    parent.after.childCount--;
  }

  /** Removes a container or TTL znode that is due, or returns undefined if it no longer is. */
  deleteContainer(origin: WriteOrigin, path: string, now: Now, isDue: (znode: PendingZnode) => boolean): Proposal | undefined {
    const future = this.outstandingChanges.find(path);
    if (future === undefined || !isDue(future)) return undefined;
    const zxid = ++this.lastZxid;
    this.#removeZnode(path, zxid);
    return this.#propose(origin, zxid, now, { type: OpCode.deleteContainer, txn: { kind: 'delete', path } });
  }

  get #entryBytesMax(): number {
    return this.#options.juteMaxBuffer + this.#options.juteMaxBufferExtra;
  }

  /** Units spent on ACLs, those expanded and those checked. */
  get #aclWorkUnits(): number {
    return this.#authExpansionEntries * unitsPerAclEntry + this.#permissions.workUnits;
  }

  /**
   * The ACLs of the txn being validated are longer than a txn may be. Some of them have not been
   * built.
   */
  get #isEntryTooLong(): boolean {
    return this.#authExpansionBytes > this.#entryBytesMax;
  }

  #rejectTooLong(zxid: Zxid): number {
    this.outstandingChanges.rollback(zxid);
    return ErrorCode.MarshallingError;
  }

  #propose(origin: WriteOrigin, zxid: Zxid, now: Now, result: PrepareResult, prepareMs: Millis = 0): Proposal {
    return this.#send(origin, this.#encode(origin, zxid, now, typeof result === 'number' ? errorTxn(result) : result), now, prepareMs);
  }

  /** Appends a proposal whose entry has been written to the log. */
  #send(origin: WriteOrigin, prepared: Proposal, now: Now, prepareMs: Millis): Proposal {
    const { zxid } = prepared;
    let proposal = prepared;
    if (this.#entry.offset > this.#entryBytesMax) {
      // Such an entry could not be read back from the log or from the wire between servers. It has
      // grown beyond the limit during validation, for example by its ACLs.
      this.outstandingChanges.rollback(zxid);
      proposal = this.#encode(origin, zxid, now, errorTxn(ErrorCode.MarshallingError));
    }
    this.#log.append(zxid, this.#entry.bytes, 0, this.#entry.offset, origin.owner);
    this.#observer.proposed(zxid, proposal.header.type, this.#entry.offset, prepareMs);
    return proposal;
  }

  #encode(origin: WriteOrigin, zxid: Zxid, now: Now, { type, txn, node = 0 }: TypedTxn): Proposal {
    const header = headerOf(origin, zxid, type, now);
    // A refusal changes nothing, and ZooKeeper logs it without a digest.
    const digest = txn.kind === 'error' ? undefined : this.#digest();
    this.#entry.clear();
    writeTxn(this.#entry, { header, txn, digest });
    return { zxid, origin, header, txn, node, digest, bytes: this.#entry.offset };
  }

  /** The digest of the tree after all proposals. */
  #digest(): TxnDigest | undefined {
    if (!this.#options.treeDigestEnabled) return undefined;
    const { digestHigh, digestLow } = this.outstandingChanges;
    return { version: digestVersion, high: digestHigh, low: digestLow };
  }

  #validate(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PrepareResult {
    switch (origin.opCode) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
        return this.#create(origin, origin.opCode, readCreateRequest(reader), -1, zxid, now);
      case OpCode.createTTL: {
        const request = readCreateTTLRequest(reader);
        return this.#create(origin, origin.opCode, request, request.ttl, zxid, now);
      }
      case OpCode.delete:
        return this.#delete(origin, readDeleteRequest(reader), zxid);
      case OpCode.setData:
        return this.#setData(origin, readSetDataRequest(reader), zxid, now);
      case OpCode.setACL:
        return this.#setAcl(origin, readSetACLRequest(reader), zxid);
      case OpCode.multi:
        return this.#multi(origin, reader, zxid, now);
      case OpCode.reconfig:
        readReconfigRequest(reader);
        if (!this.#options.reconfigEnabled) return ErrorCode.ReconfigDisabled;
        // There is no ensemble whose membership could change.
        return this.#checkSession(origin) ?? ErrorCode.Unimplemented;
      default:
        // Learners of ZooKeeper forward check and deleteContainer, and a createSession that a
        // client sent as a request. The client waits for a txn, as for any reply.
        return ErrorCode.Unimplemented;
    }
  }

  #checkSession(origin: WriteOrigin): number | undefined {
    return this.#tracker.findLive(origin.sessionHigh, origin.sessionLow) === -1 ? ErrorCode.SessionExpired : undefined;
  }

  #lacksPermission(perms: number, znode: PendingZnode, origin: WriteOrigin): boolean {
    return !this.#permissions.permits(znode.acl, perms, origin.identities);
  }

  #create(
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
    const fault = this.#checkSession(origin);
    if (fault !== undefined) return fault;

    if (request.path === null) return ErrorCode.MarshallingError;
    const slash = lastSlash(request.path);
    if (slash === -1) return ErrorCode.BadArguments;
    const stored = this.#requestedAcls.fixup(request.acl, origin.identities, this.#entryBytesMax);
    if (stored === undefined) return ErrorCode.InvalidACL;
    const { acl } = stored;
    const parentPath = slash === 0 ? '/' : request.path.slice(0, slash);
    const parent = this.outstandingChanges.find(parentPath);
    if (parent === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.create, parent, origin)) return ErrorCode.NoAuth;
    const path = isSequential(mode) ? request.path + sequenceSuffix(parent.cversion) : request.path;
    if (pathError(path) !== undefined) return ErrorCode.BadArguments;
    if (this.outstandingChanges.find(path) !== undefined) return ErrorCode.NodeExists;
    if (isSessionOwner(parent.ownerHigh, parent.ownerLow, this.#options)) return ErrorCode.NoChildrenForEphemerals;
    const data = copyData(request.data);
    if (this.#exceedsQuota(path, data?.length ?? 0, 1)) return ErrorCode.QuotaExceeded;

    if (this.#exceedsEntryBytes(stored)) return ErrorCode.MarshallingError;
    // The counter is a signed 32-bit int and wraps: after 2147483647 comes -2147483648.
    const parentCVersion = (parent.cversion + 1) | 0;
    const ephemeral = mode === CreateMode.ephemeral || mode === CreateMode.ephemeralSequential;
    const txn = createTxn(opCode, path, data, acl, ephemeral, parentCVersion, ttlMs);
    const owner = ownerOf(opCode, ephemeral, ttlMs, origin);
    const parentAfter = parent.copyIfRecorded();
    parentAfter.childCount++;
    parentAfter.cversion = parentCVersion;
    parentAfter.pzxid = zxid;
    this.outstandingChanges.record(parentPath, zxid, parentAfter, parent.digest);
    const znode = new PendingZnode();
    znode.acl = this.#replica.tree.acls.intern(acl);
    znode.ownerHigh = owner.high;
    znode.ownerLow = owner.low;
    znode.czxid = znode.mzxid = znode.pzxid = zxid;
    znode.ctime = znode.mtime = now.wallMs;
    znode.data = data;
    this.outstandingChanges.record(path, zxid, znode, 0);
    this.#replica.tree.acls.release(znode.acl);
    return { type: opCode, txn };
  }

  #delete(origin: WriteOrigin, request: DeleteRequest, zxid: Zxid): PrepareResult {
    const fault = this.#checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null) return ErrorCode.MarshallingError;
    const slash = lastSlash(path);
    if (slash === -1 || isReservedPath(path)) return ErrorCode.BadArguments;
    const parentPath = slash === 0 ? '/' : path.slice(0, slash);
    const parent = this.outstandingChanges.find(parentPath);
    if (parent === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.delete, parent, origin)) return ErrorCode.NoAuth;
    const znode = this.outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (request.version !== -1 && request.version !== znode.version) return ErrorCode.BadVersion;
    if (znode.childCount > 0) return ErrorCode.NotEmpty;
    this.#removeZnode(path, zxid);
    return { type: OpCode.delete, txn: { kind: 'delete', path } };
  }

  #removeZnode(path: string, zxid: Zxid): void {
    const znode = this.outstandingChanges.find(path);
    if (znode === undefined) return;
    const parentPath = parentOf(path);
    const parent = this.outstandingChanges.find(parentPath);
    if (parent !== undefined) {
      const parentAfter = parent.copyIfRecorded();
      parentAfter.childCount--;
      parentAfter.pzxid = zxid;
      this.outstandingChanges.record(parentPath, zxid, parentAfter, parent.digest);
    }
    const after = znode.copyIfRecorded();
    after.exists = false;
    this.outstandingChanges.record(path, zxid, after, znode.digest);
  }

  #setData(origin: WriteOrigin, request: SetDataRequest, zxid: Zxid, now: Now): PrepareResult {
    const fault = this.#checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const znode = this.outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.write, znode, origin)) return ErrorCode.NoAuth;
    const data = copyData(request.data);
    if (this.#exceedsQuota(path, (data?.length ?? 0) - this.outstandingChanges.dataLength(znode), 0)) return ErrorCode.QuotaExceeded;
    if (request.version !== -1 && request.version !== znode.version) return ErrorCode.BadVersion;
    const version = (znode.version + 1) | 0;
    const after = znode.copyIfRecorded();
    after.data = data;
    after.version = version;
    after.mzxid = zxid;
    after.mtime = now.wallMs;
    this.outstandingChanges.record(path, zxid, after, znode.digest);
    return { type: OpCode.setData, txn: { kind: 'setData', path, data, version }, node: after.node };
  }

  #setAcl(origin: WriteOrigin, request: SetACLRequest, zxid: Zxid): PrepareResult {
    const fault = this.#checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const stored = this.#requestedAcls.fixup(request.acl, origin.identities, this.#entryBytesMax);
    if (stored === undefined) return ErrorCode.InvalidACL;
    const { acl } = stored;
    const znode = this.outstandingChanges.find(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (this.#lacksPermission(Perms.admin, znode, origin)) return ErrorCode.NoAuth;
    if (request.version !== -1 && request.version !== znode.aversion) return ErrorCode.BadVersion;
    if (this.#exceedsEntryBytes(stored)) return ErrorCode.MarshallingError;
    const version = (znode.aversion + 1) | 0;
    const after = znode.copyIfRecorded();
    after.acl = this.#replica.tree.acls.intern(acl);
    after.aversion = version;
    this.outstandingChanges.record(path, zxid, after, znode.digest);
    this.#replica.tree.acls.release(after.acl);
    return { type: OpCode.setACL, txn: { kind: 'setACL', path, acl, version } };
  }

  /**
   * Whether an ACL makes the txn too long. Do not call it for an ACL refused for another reason.
   */
  #exceedsEntryBytes({ authExpansionBytes, authExpansionEntries }: StoredAcl): boolean {
    this.#authExpansionBytes += authExpansionBytes;
    if (this.#isEntryTooLong) return true;
    this.#authExpansionEntries += authExpansionEntries;
    return false;
  }

  #check(origin: WriteOrigin, request: CheckVersionRequest): PrepareResult {
    const fault = this.#checkSession(origin);
    if (fault !== undefined) return fault;
    const { path } = request;
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    // A znode without outstanding changes is read from the tree directly: a multi may have very
    // many checks.
    const future = this.outstandingChanges.peek(path);
    const { tree } = this.#replica;
    const node = future === undefined ? tree.find(path) : 0;
    if (future === undefined ? node === 0 : !future.exists) return ErrorCode.NoNode;
    const acl = future === undefined ? tree.aclOf(node) : future.acl;
    if (!this.#permissions.permits(acl, Perms.read, origin.identities)) return ErrorCode.NoAuth;
    const version = future === undefined ? tree.versionOf(node) : future.version;
    if (request.version !== -1 && request.version !== version) return ErrorCode.BadVersion;
    return { type: OpCode.check, txn: { kind: 'check', path, version: (version + 1) | 0 } };
  }

  /**
   * All parts or none, under one zxid. A part is validated against the state after the earlier
   * ones.
   */
  #multi(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PrepareResult {
    const multi = new PendingMulti();
    this.#validateParts(origin, multi, reader, zxid, now, Infinity);
    if (multi.hasFailed) this.outstandingChanges.rollback(zxid);
    return { type: OpCode.multi, txn: multi.txn() };
  }

  /**
   * Decodes and validates further parts, for about `budget` units; returns whether none is left.
   * After a part has failed, the others are still decoded: a request that cannot be decoded is
   * refused as such, whatever else is wrong with it.
   */
  #validateParts(origin: WriteOrigin, multi: PendingMulti, reader: Reader, zxid: Zxid, now: Now, budget: number): boolean {
    const { outstandingChanges } = this;
    let left = budget;
    while (left > 0 && !this.#isEntryTooLong) {
      const op = readMultiRequestOp(reader);
      if (op === undefined) return true;
      const part = toMultiWrite(op);
      left -= unitsPerPart;
      if (multi.hasFailed) {
        multi.txns.push(errorTxn(ErrorCode.RuntimeInconsistency));
        continue;
      }
      const digestedBefore = outstandingChanges.digestedBytes;
      const aclWorkBefore = this.#aclWorkUnits;
      const result = this.#validatePart(origin, part, zxid, now);
      left -= (outstandingChanges.digestedBytes - digestedBefore) / bytesPerUnit + this.#aclWorkUnits - aclWorkBefore;
      if (typeof result === 'number') multi.hasFailed = true;
      multi.txns.push(typeof result === 'number' ? errorTxn(result) : (result as MultiMember));
    }
    return false;
  }

  #validatePart(origin: WriteOrigin, part: MultiWrite, zxid: Zxid, now: Now): PrepareResult {
    switch (part.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
        return this.#create(origin, OpCode[part.kind], part, -1, zxid, now);
      case 'createTTL':
        return this.#create(origin, OpCode.createTTL, part, part.ttl, zxid, now);
      case 'delete':
        return this.#delete(origin, part, zxid);
      case 'setData':
        return this.#setData(origin, part, zxid, now);
      case 'check':
        return this.#check(origin, part);
      default:
        return part satisfies never;
    }
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

/** A multi that may take more than a step: it is long, or it expands to many identities. */
function isLongMulti({ identities }: WriteOrigin, { remaining }: Reader, shortFrameBytes: number): boolean {
  return remaining > shortFrameBytes || remaining * identities.count > shortFrameBytes * manyIdentities;
}

const manyIdentities = 16;

/**
 * Index of the slash before the name in the path of a create or delete; -1 if the path cannot have
 * a parent.
 */
function lastSlash(path: string): number {
  return path.includes('\0') ? -1 : path.lastIndexOf('/');
}

function headerOf(origin: WriteOrigin, zxid: Zxid, type: number, now: Now): TxnHeader {
  return { clientHigh: origin.sessionHigh, clientLow: origin.sessionLow, cxid: origin.cxid, zxid, time: now.wallMs, type };
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash === 0 ? '/' : path.slice(0, slash);
}

/** Bytes around the list of paths: header, digest and lengths. */
const entryOverheadBytes = 128;

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

function ownerOf(
  opCode: CreateOpCode,
  ephemeral: boolean,
  ttlMs: number,
  origin: WriteOrigin,
): { readonly high: number; readonly low: number } {
  if (opCode === OpCode.createContainer) return containerOwner;
  if (opCode === OpCode.createTTL) return ttlOwner(ttlMs);
  return ephemeral ? { high: origin.sessionHigh, low: origin.sessionLow } : noOwner;
}

const noOwner = { high: 0, low: 0 };

function errorTxn(err: number): { readonly type: typeof OpCode.error; readonly txn: ErrorTxn } {
  return { type: OpCode.error, txn: { kind: 'error', err } };
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
