/**
 * The replicated state, and the only code that changes it: tree, sessions, digest. Every server of
 * an ensemble applies the same txns in the same order and reaches the same state; so does a server
 * that replays its log. Nothing is validated here: prepare.ts did that once, on the leader.
 *
 * Applying must be idempotent, because a replay may start from a snapshot that already contains the
 * effects of some txns.
 */
import {
  type CreateContainerTxn,
  type CreateTTLTxn,
  type CreateTxn,
  digestVersion,
  ErrorCode,
  type ErrorTxn,
  EventType,
  type MultiMember,
  OpCode,
  statBytes,
  systemPath,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  type Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Notice } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { KeeperPart } from '../pending/proposal.ts';
import type { Random } from '../random.ts';
import { SessionTable } from '../session/session-table.ts';
import type { LoadedSnapshot } from '../snapshot/snapshot-loader.ts';
import { SnapshotWriter } from '../snapshot/snapshot-writer.ts';
import type { AclId } from '../tree/acl-table.ts';
import { DataTree, type NodeId } from '../tree/data-tree.ts';
import type { NamespaceId } from '../tree/namespace-table.ts';
import { bytesPerUnit, type Job, startJob, StepBudget, stepUnitsDefault, unitsPerChange } from '../step-budget.ts';
import { containerOwner, ttlOwner } from './ephemeral-type.ts';

/**
 * Receives each change for watchers: the znode, the event type, and the ACL that permits the event.
 */
export interface ChangeListener {
  /** False if no watch is set, so that `znodeChanged` need not be called. */
  readonly isListening: boolean;
  /** Units spent on events so far. */
  readonly workUnits: number;
  /**
   * `acl` is that of the znode: its new one after a create, its old one after a delete. `parentAcl`
   * is undefined unless the parent's list of children changed. Both lists are kept until all events
   * are sent. Returns a job if there are too many watchers for one step.
   */
  znodeChanged(path: string, eventType: number, zxid: Zxid, acl: AclId, parentAcl: AclId | undefined): Job | undefined;
  /** A znode has been created, deleted or given data; `bytes` is the size of its path and data. */
  znodeWritten(namespace: NamespaceId, bytes: number): void;
  sessionOpened(high: number, low: number, timeoutMs: number): void;
  /** `cxid` is 0 if the client did not close the session. */
  sessionClosed(high: number, low: number, cxid: number): void;
}

export interface ReplicaOptions {
  readonly hashSeed: number;
  readonly extendedTypesEnabled: boolean;
  readonly emulate353TtlNodes: boolean;
  readonly digestEnabled: boolean;
  readonly shortAclEntriesMax?: number;
  /** Units of one step of applying. */
  readonly stepUnits?: number;
}

/** The options on which the replicated state depends. */
export function replicaOptions(options: CoreOptions, random: Random): ReplicaOptions {
  return {
    hashSeed: random.uint32() * 0x200000 + (random.uint32() >>> 11),
    extendedTypesEnabled: options.extendedTypesEnabled,
    emulate353TtlNodes: options.emulate353TtlNodes,
    digestEnabled: options.treeDigestEnabled,
    shortAclEntriesMax: options.shortAclEntriesMax,
    stepUnits: options.stepUnits,
  };
}

/**
 * From when on a txn whose digest differs from the state's shows divergence. A ZooKeeper server
 * sends its learners fuzzy snapshots, so until the leader has sent all txns that may be in one,
 * digests differ without an error (`when synced`). Such a snapshot has no known digest when it is
 * written to disk either; after a restart the end of that range is unknown, so it ends at the first
 * digest that agrees (`once one agrees`).
 */
export type DigestComparison = 'at once' | 'when synced' | 'once one agrees';

/** A snapshot and the zxid in its name. */
export interface LoadedState {
  readonly snapshot: LoadedSnapshot;
  readonly zxid: Zxid;
  /** Default: at once. */
  readonly digestComparison?: DigestComparison;
}

/**
 * A digest is remembered at every 128th zxid, at most 1024 of them, so that servers can be compared
 * afterwards. As in ZooKeeper, none is while the state may contain effects of later txns.
 */
const digestIntervalTxns = 128;
const digestsRemembered = 1024;

export const silentChangeListener: ChangeListener = {
  isListening: false,
  workUnits: 0,
  znodeChanged: () => undefined,
  znodeWritten() {},
  sessionOpened() {},
  sessionClosed() {},
};

export class Replica {
  readonly tree: DataTree;
  /** Sessions whose createSession has been applied, with the timeout they were created with. */
  readonly sessions: SessionTable;
  readonly #digestEnabled: boolean;
  readonly #budget: StepBudget;
  /** Receives changes; `silentChangeListener` during a replay. */
  listener: ChangeListener = silentChangeListener;
  onNotice: (notice: Notice) => void = () => {};

  /** The txn applied last. */
  lastZxid: Zxid;
  readonly digests: { readonly zxid: Zxid; readonly high: number; readonly low: number }[] = [];
  /**
   * A fuzzy snapshot contains effects of txns after the zxid in its name. Until replay has passed
   * them, the digests in the log do not describe our tree, and are neither compared nor remembered.
   */
  #digestComparedAfterZxid: Zxid;
  #digestComparison: DigestComparison;

  constructor(options: ReplicaOptions, loaded?: LoadedState) {
    this.tree = loaded?.snapshot.tree ?? new DataTree(options);
    this.sessions = new SessionTable();
    for (const { high, low, timeoutMs } of loaded?.snapshot.sessions ?? []) this.sessions.open(high, low, timeoutMs);
    this.lastZxid = loaded?.zxid ?? 0;
    this.#digestEnabled = options.digestEnabled;
    this.#budget = new StepBudget(options.stepUnits ?? stepUnitsDefault);
    this.#digestComparedAfterZxid = Math.max(this.lastZxid, loaded?.snapshot.digest?.zxid ?? 0);
    this.#digestComparison = loaded?.digestComparison ?? 'at once';
  }

  /**
   * Whether the state is that of `lastZxid`, as far as known, and no part of it is of a later zxid.
   */
  get isExact(): boolean {
    return this.#digestComparison === 'at once';
  }

  /**
   * All txns that the snapshot may have contained beyond its zxid have been applied: digests of
   * txns describe this state again.
   */
  markExact(): void {
    this.#digestComparison = 'at once';
  }

  /** Units spent on digests and watchers so far, which make the cost of changes differ. */
  get workUnits(): number {
    return this.tree.digestedBytes / bytesPerUnit + this.listener.workUnits;
  }

  /**
   * Everything that can influence behaviour, for an explorer. The tree is represented by its
   * digest: throws an `Error` if the digest is disabled (`treeDigestEnabled`).
   */
  fingerprint(to: Fingerprint): void {
    if (!this.#digestEnabled) throw new Error('a tree without a digest has no fingerprint');
    const { digestHigh, digestLow } = this.tree;
    for (const number of [this.lastZxid, digestHigh, digestLow]) to.number(number);
    to.text(this.#digestComparison);
    // The digest leaves the configuration out.
    const config = this.tree.find(systemPath.config);
    to.text(config === 0 ? '' : (this.tree.dataOf(config)?.toString('latin1') ?? ''));
    const rows: string[] = [];
    const { sessions } = this;
    sessions.forEach((slot) => rows.push(`${sessions.high(slot)} ${sessions.low(slot)} ${sessions.timeoutMs(slot)}`));
    to.number(rows.length);
    for (const row of rows.sort()) to.text(row);
  }

  /**
   * A snapshot of this moment; its slices may be taken while further txns are applied. See
   * `SnapshotWriter` for `writeLastZxid`.
   */
  snapshot(writeLastZxid = true): SnapshotWriter {
    const { tree, sessions, lastZxid, isExact } = this;
    return new SnapshotWriter(tree, sessions, lastZxid, this.#digestEnabled, writeLastZxid, { knowsDigest: isExact });
  }

  /**
   * A snapshot of this moment, as a leader sends it to a learner after SNAP. It may contain half of
   * a txn that is being applied in steps; its zxid is then the one before, and the learner must be
   * sent that txn after it. For `preservedBytesMax` see `TreeSnapshots.begin`.
   */
  snapshotStream(preservedBytesMax = Infinity): SnapshotWriter {
    return SnapshotWriter.stream(this.tree, this.sessions, this.lastZxid, preservedBytesMax);
  }

  /**
   * Applies one txn. The sub-results of a multi are written to `results`, if given, one by one,
   * since a later part may change the result of an earlier one. Returns a job if one step was not
   * enough; the txn is applied when the job ends. `node` is `Proposal.node`; 0 if the txn was
   * validated elsewhere.
   */
  apply(
    header: TxnHeader,
    txn: Txn,
    digest: TxnDigest | undefined,
    results?: Writer,
    node: NodeId = 0,
    keeperParts?: readonly KeeperPart[],
  ): Job | undefined {
    const job = this.#change(header, txn, results, node, keeperParts);
    if (job === undefined) {
      this.#finish(header.zxid, digest);
      return undefined;
    }
    return this.#finishAfter(job, header.zxid, digest);
  }

  *#finishAfter(job: Job, zxid: Zxid, digest: TxnDigest | undefined): Job {
    yield* job;
    this.#finish(zxid, digest);
  }

  #finish(zxid: Zxid, digest: TxnDigest | undefined): void {
    // The log of a Java server may contain a zxid twice; `lastZxid` must not decrease.
    if (zxid > this.lastZxid) this.lastZxid = zxid;
    if (!this.#digestEnabled) return;
    // Until then the digest is that of no single zxid.
    if (zxid <= this.#digestComparedAfterZxid) return;
    const { digestHigh, digestLow } = this.tree;
    if (digest !== undefined && digest.version === digestVersion) {
      const agrees = digest.high === digestHigh && digest.low === digestLow;
      if (agrees && this.#digestComparison === 'once one agrees') this.#digestComparison = 'at once';
      if (!agrees && this.isExact) this.onNotice({ kind: 'digestMismatch', zxid });
    }
    if (this.isExact && zxid % digestIntervalTxns === 0) {
      this.digests.push({ zxid, high: digestHigh, low: digestLow });
      if (this.digests.length > digestsRemembered) this.digests.shift();
    }
  }

  /** Applies the txn without its bookkeeping. */
  #change(
    header: TxnHeader,
    txn: Txn,
    results: Writer | undefined,
    node: NodeId,
    keeperParts: readonly KeeperPart[] | undefined,
  ): Job | undefined {
    switch (txn.kind) {
      case 'multi':
        return startJob(this.#multi(header, txn.txns, results, keeperParts));
      case 'closeSession':
        return startJob(this.#closeSession(header, txn.paths2Delete));
      case 'createSession':
        this.#createSession(header, txn.timeOut);
        return undefined;
      default:
        return this.#changeOne(header, header.type, txn, node);
    }
  }

  /** A txn that changes at most one znode. */
  #changeOne(header: TxnHeader, type: number, txn: Txn, node: NodeId = 0): Job | undefined {
    switch (txn.kind) {
      case 'create':
        return txn.ephemeral
          ? this.#create(header, txn, header.clientHigh, header.clientLow, type === OpCode.create)
          : this.#create(header, txn, 0, 0, type === OpCode.create);
      case 'createContainer':
        return this.#create(header, txn, containerOwner.high, containerOwner.low, false);
      case 'createTTL': {
        const owner = ttlOwner(txn.ttl);
        return this.#create(header, txn, owner.high, owner.low, false);
      }
      case 'delete':
        return this.#delete(header.zxid, txn.path);
      case 'setData': {
        if (type === OpCode.reconfig) this.tree.noteReconfig();
        const error = this.tree.setData(txn.path, txn.data, txn.version, header.zxid, header.time, node);
        if (error !== ErrorCode.Ok) return undefined;
        this.#reportWritten(txn.path, txn.data);
        return this.#notify(txn.path, EventType.nodeDataChanged, header.zxid);
      }
      case 'setACL':
        this.tree.setAcl(txn.path, this.tree.acls.intern(txn.acl), txn.version);
        return undefined;
      case 'check':
      case 'error':
        return undefined;
      case 'multi':
      case 'closeSession':
      case 'createSession':
        throw new Error(`a ${txn.kind} txn inside a multi txn`);
      default:
        return txn satisfies never;
    }
  }

  #create(header: TxnHeader, txn: AnyCreate, ownerHigh: number, ownerLow: number, raiseParentOnExists: boolean): Job | undefined {
    const { tree } = this;
    const acl = tree.acls.intern(txn.acl);
    const { zxid, time } = header;
    const error = tree.create(txn.path, txn.data, acl, ownerHigh, ownerLow, txn.parentCVersion, zxid, time, raiseParentOnExists);
    if (error !== ErrorCode.Ok) return undefined;
    this.#reportWritten(txn.path, txn.data);
    if (tree.quotas.isRecounting && !tree.quotas.recountStep(this.#budget.visits)) return this.#recount(txn.path, zxid);
    return this.#notify(txn.path, EventType.nodeCreated, zxid);
  }

  /** The usage znode of a quota on a large subtree is filled in before its creation is reported. */
  *#recount(path: string, zxid: Zxid): Job {
    do yield;
    while (!this.tree.quotas.recountStep(this.#budget.visits));
    const job = this.#notify(path, EventType.nodeCreated, zxid);
    if (job === undefined) return;
    yield;
    yield* job;
  }

  #delete(zxid: Zxid, path: string): Job | undefined {
    const { tree, listener } = this;
    const node = listener.isListening ? tree.find(path) : 0;
    if (node === 0) {
      if (tree.remove(path, zxid) === ErrorCode.Ok) this.#reportWritten(path, null);
      return undefined;
    }
    // A client that could not read the znode must not receive its deletion either.
    const acl = tree.aclOf(node);
    const parentAcl = tree.aclOf(tree.parentOf(node));
    tree.acls.retain(acl);
    tree.remove(path, zxid);
    this.#reportWritten(path, null);
    const job = listener.znodeChanged(path, EventType.nodeDeleted, zxid, acl, parentAcl);
    if (job !== undefined) return this.#releaseAfter(job, acl);
    tree.acls.release(acl);
    return undefined;
  }

  *#releaseAfter(job: Job, acl: AclId): Job {
    yield* job;
    this.tree.acls.release(acl);
  }

  #reportWritten(path: string, data: Uint8Array | null): void {
    this.listener.znodeWritten(this.tree.changedNamespace, path.length + (data === null ? 0 : data.length));
  }

  /** Sends the event of a znode that exists. */
  #notify(path: string, eventType: number, zxid: Zxid): Job | undefined {
    const { tree, listener } = this;
    if (!listener.isListening) return undefined;
    const node = tree.find(path);
    const parentAcl = eventType === EventType.nodeCreated ? tree.aclOf(tree.parentOf(node)) : undefined;
    return listener.znodeChanged(path, eventType, zxid, tree.aclOf(node), parentAcl);
  }

  *#multi(
    header: TxnHeader,
    txns: readonly MultiMember[],
    results: Writer | undefined,
    keeperParts: readonly KeeperPart[] | undefined,
  ): Job {
    let part = 0;
    const failed = txns.findIndex((member) => member.type === OpCode.error);
    let spent = 0;
    let work = this.workUnits;
    for (let i = 0; i < txns.length; i++) {
      const { type, txn } = txns[i]!;
      if (failed === -1) {
        const job = this.#changeOne(header, type, txn);
        if (job !== undefined) {
          yield;
          yield* job;
        }
        const asked = keeperParts?.[part];
        if (results !== undefined && asked === undefined) this.#writeResult(results, type, txn);
        else if (results !== undefined && asked !== undefined && this.#maybeWriteKeeperResult(results, type, txn, asked)) part++;
      } else if (results !== undefined) {
        // All or nothing: the parts before the failed one are answered "ok", though they did not
        // happen; the later parts were never tried.
        const error = i < failed ? ErrorCode.Ok : i > failed ? ErrorCode.RuntimeInconsistency : (txn as ErrorTxn).err;
        writeResultHeader(results, OpCode.error, error);
        results.int32(error);
      }
      const workBefore = work;
      work = this.workUnits;
      spent += unitsPerChange + work - workBefore;
      if (spent > this.#budget.units) {
        spent = 0;
        yield;
      }
    }
  }

  #writeResult(results: Writer, type: number, txn: MultiMember['txn']): void {
    switch (txn.kind) {
      case 'create':
        if (type === OpCode.create) {
          writeResultHeader(results, OpCode.create, ErrorCode.Ok);
          results.ustring(txn.path);
          return;
        }
        return this.#writeCreate2Result(results, txn);
      case 'createContainer':
      case 'createTTL':
        return this.#writeCreate2Result(results, txn);
      case 'setData':
        writeResultHeader(results, OpCode.setData, ErrorCode.Ok);
        this.tree.writeStat(this.tree.find(txn.path), results);
        return;
      case 'delete':
        writeResultHeader(results, OpCode.delete, ErrorCode.Ok);
        return;
      default:
        writeResultHeader(results, OpCode.check, ErrorCode.Ok);
    }
  }

  /**
   * The result of a part of a multi with operations of Keeper. Returns false if the part goes on: a
   * removeRecursive ends with the znode that it names.
   */
  #maybeWriteKeeperResult(results: Writer, type: number, txn: MultiMember['txn'], { opCode, path }: KeeperPart): boolean {
    switch (opCode) {
      case OpCode.createIfNotExists:
        writeResultHeader(results, opCode, ErrorCode.Ok);
        results.ustring('path' in txn ? txn.path : null);
        return true;
      case OpCode.removeRecursive:
        if ('path' in txn && txn.path !== path) return false;
        writeResultHeader(results, opCode, ErrorCode.Ok);
        return true;
      case OpCode.checkNotExists:
      case OpCode.checkStat:
      case OpCode.tryRemove:
        writeResultHeader(results, opCode, ErrorCode.Ok);
        return true;
      default:
        this.#writeResult(results, type, txn);
        return true;
    }
  }

  #writeCreate2Result(results: Writer, txn: AnyCreate): void {
    writeResultHeader(results, OpCode.create2, ErrorCode.Ok);
    this.writeCreated(results, txn);
  }

  /** Writes path and Stat of a znode just created. */
  writeCreated(writer: Writer, txn: AnyCreate): void {
    writer.ustring(txn.path);
    this.tree.writeStat(this.tree.find(txn.path), writer);
    // A new usage znode of a quota has been filled in by now; the reply shows what the client
    // wrote, as in ZooKeeper.
    writer.patchInt32(writer.offset - statBytes + dataLengthAt, txn.data?.length ?? 0);
  }

  #createSession(header: TxnHeader, timeoutMs: number): void {
    // A replay may contain a session that is in the snapshot.
    const known = this.sessions.find(header.clientHigh, header.clientLow);
    if (known === -1) this.sessions.open(header.clientHigh, header.clientLow, timeoutMs);
    this.listener.sessionOpened(header.clientHigh, header.clientLow, timeoutMs);
  }

  *#closeSession(header: TxnHeader, paths: readonly string[] | null): Job {
    const { tree } = this;
    const { clientHigh, clientLow, zxid } = header;
    let listed = 0;
    if (paths !== null) yield* this.#deleteAll(() => paths[listed++], zxid);
    // Logs of old servers, and sessions with very many ephemerals, have no list: then these are all
    // of them. Otherwise there is none left.
    const nextOwned = (): string | undefined => {
      const node = tree.firstEphemeral(clientHigh, clientLow);
      return node === 0 ? undefined : tree.pathOf(node);
    };
    yield* this.#deleteAll(nextOwned, zxid);
    const slot = this.sessions.find(clientHigh, clientLow);
    if (slot !== -1) this.sessions.remove(slot);
    this.listener.sessionClosed(clientHigh, clientLow, header.cxid);
  }

  *#deleteAll(next: () => string | undefined, zxid: Zxid): Job {
    let spent = 0;
    let work = this.workUnits;
    for (let path = next(); path !== undefined; path = next()) {
      const job = this.#delete(zxid, path);
      if (job !== undefined) {
        yield;
        yield* job;
      }
      spent += unitsPerChange + this.workUnits - work;
      work = this.workUnits;
      if (spent > this.#budget.units) {
        spent = 0;
        yield;
      }
    }
  }

  /** Paths of the ephemerals of a session. */
  ephemeralPaths(ownerHigh: number, ownerLow: number): string[] {
    const paths: string[] = [];
    this.tree.forEachEphemeral(ownerHigh, ownerLow, (node) => paths.push(this.tree.pathOf(node)));
    return paths;
  }

  /**
   * Yields the same paths one by one, for a caller that takes several steps, between which the tree
   * may change: if the current znode is deleted, the list ends there.
   */
  *ephemeralPathsLazily(ownerHigh: number, ownerLow: number): Generator<string, void, undefined> {
    const { tree } = this;
    for (let node = tree.firstEphemeral(ownerHigh, ownerLow); node !== 0; node = tree.nextEphemeral(node)) {
      yield tree.pathOf(node);
      if (!tree.isEphemeralOf(node, ownerHigh, ownerLow)) return;
    }
  }

  /**
   * After loading: deletes ephemerals whose session is unknown. They belong to a session whose end
   * was not logged.
   */
  removeOrphanedEphemerals(): void {
    const owners = Array.from(this.tree.owners());
    for (const [high, low] of owners) {
      if (this.sessions.find(high, low) !== -1) continue;
      for (const path of this.ephemeralPaths(high, low)) this.tree.remove(path, this.lastZxid);
    }
  }
}

type AnyCreate = CreateTxn | CreateContainerTxn | CreateTTLTxn;

/** Offset of dataLength in a Stat: after four longs, three ints and another long. */
const dataLengthAt = 52;

function writeResultHeader(results: Writer, type: number, error: number): void {
  results.int32(type);
  results.boolean(false);
  results.int32(error);
}
