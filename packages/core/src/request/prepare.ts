/**
 * Turns a write request into a txn, or into an error txn.
 *
 * Requests are validated before earlier ones have been applied, so the tree alone is stale.
 * Validation reads the tree plus the outstanding changes; the result holds when the txn is applied,
 * and is not checked again. A rejected request takes a zxid too, because its reply must keep the
 * session's order.
 *
 * write-validator.ts has the checks; pending-multi.ts and pending-close.ts are the two kinds of
 * request that can change many znodes, and so may take more than one step.
 */
import {
  digestVersion,
  ErrorCode,
  formatQuorumConfig,
  type Millis,
  OpCode,
  ProtocolError,
  type QuorumConfig,
  type Reader,
  readCreateRequest,
  readCreateTTLRequest,
  readDeleteRequest,
  readReconfigRequest,
  readRecursiveRequest,
  readTransferLeaderRequest,
  type ReconfigRequest,
  readSetACLRequest,
  readSetDataRequest,
  type Sid,
  type TransferLeaderRequest,
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
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { TxnLog } from '../txn-log.ts';
import { aloneTxn, KeeperWrites } from './keeper-writes.ts';
import { OutstandingChanges, type PendingZnode } from './outstanding-changes.ts';
import { PendingClose } from './pending-close.ts';
import { PendingMulti } from './pending-multi.ts';
import type { PendingRemoval } from './pending-removal.ts';
import { errorTxn, type PrepareResult, type Proposal, serverOrigin, type TypedTxn, type WriteOrigin } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import { copyForJob, StepBudget } from '../step-budget.ts';
import type { TransferRefusal } from '../transfer-outcome.ts';
import { type ValidationDependencies, WriteValidator } from './write-validator.ts';

/** Validation over several steps, and its result. */
export type PrepareJob = Generator<void, Proposal, Now>;

/** Decides on the membership and the lead of an ensemble. `Leader` implements it. */
export interface ReconfigLeader {
  /**
   * The configuration that a request asks for, `zxid` being its version; or the error code that
   * refuses it.
   */
  prepareReconfig(request: ReconfigRequest, zxid: Zxid): QuorumConfig | ErrorCode;
  /** The txn that is appended next changes the configuration to this text. */
  reconfigProposed(zxid: Zxid, text: string, now: Now): void;
  /**
   * Another server is to lead: `target`, or one of the leader's choice. Returns that server, and
   * then nothing is ordered after the request in progress; or why the lead is not given away.
   */
  transferLeadership(target: Sid | undefined, now: Now): Sid | TransferRefusal;
}

export class Preparer {
  readonly #options: CoreOptions;
  readonly #budget: StepBudget;
  readonly #log: TxnLog;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #observer: Observer;
  readonly #validator: WriteValidator;
  readonly #keeperWrites: KeeperWrites;
  readonly #leader: ReconfigLeader | undefined;
  readonly outstandingChanges: OutstandingChanges;
  /** The log entry being written. */
  readonly #entry = new Writer(1024);
  /** Highest zxid assigned. Invariant: replica.lastZxid <= lastZxid. */
  lastZxid: Zxid;

  /** @param leader undefined on a standalone server. */
  constructor(dependencies: ValidationDependencies, log: TxnLog, leader?: ReconfigLeader) {
    this.#leader = leader;
    const { options, replica, tracker, observer } = dependencies;
    this.#options = options;
    this.#budget = new StepBudget(options.stepUnits);
    this.#log = log;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#observer = observer;
    this.outstandingChanges = new OutstandingChanges(replica.tree, options.treeDigestEnabled, observer);
    this.#validator = new WriteValidator(dependencies, this.outstandingChanges);
    this.#keeperWrites = new KeeperWrites(dependencies, this.#validator, this.outstandingChanges);
    this.lastZxid = replica.lastZxid;
  }

  /**
   * Validates the request whose record `reader` is placed over, assigns a zxid and appends the txn
   * to the log. Returns a job if that takes more than one step. While the job runs, nothing else
   * may be validated, applied or answered: the request has its zxid, and the outstanding changes
   * are those of half a txn.
   */
  prepare(origin: WriteOrigin, reader: Reader, now: Now): Proposal | PrepareJob {
    this.#validator.beginTxn();
    if (origin.opCode === OpCode.removeRecursive && this.#options.keeperExtensions) return this.#removal(origin, reader, now);
    if (origin.opCode === OpCode.multi && isLongMulti(origin, reader, this.#budget.shortFrameBytes)) {
      // The bytes of the frame will be reused.
      return this.#multiInSteps(origin, copyForJob(reader), now);
    }
    const zxid = ++this.lastZxid;
    let result: PrepareResult;
    try {
      result = this.#validate(origin, reader, zxid, now);
      if (this.#validator.isEntryTooLong) {
        this.outstandingChanges.rollback(zxid);
        result = ErrorCode.MarshallingError;
      }
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
    const multi = this.#pendingMulti(origin, reader, zxid, now);
    let errorCode: number | undefined;
    let later = now;
    try {
      while (!this.#validator.isEntryTooLong && !multi.validateParts(this.#budget.units)) later = yield;
      if (this.#validator.isEntryTooLong) errorCode = ErrorCode.MarshallingError;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      errorCode = ErrorCode.MarshallingError;
    }
    if (errorCode !== undefined || multi.hasFailed) {
      while (!this.outstandingChanges.rollback(zxid, this.#budget.records)) later = yield;
    }
    const result = errorCode === undefined ? { type: OpCode.multi, txn: multi.txn() } : errorTxn(errorCode);
    return yield* this.#proposeInSteps(origin, zxid, now, later, result);
  }

  /** Writes the entry of a long txn, and appends it to the log. */
  *#proposeInSteps(origin: WriteOrigin, zxid: Zxid, now: Now, since: Now, { type, txn }: TypedTxn): PrepareJob {
    let later = since;
    const entry = this.#entry;
    const header = headerOf(origin, zxid, type, now);
    entry.clear();
    writeTxnHeader(entry, header);
    if (txn.kind === 'multi') {
      entry.int32(txn.txns.length);
      let end = 0;
      for (let i = 0; i < txn.txns.length; i++) {
        if (i % this.#budget.records === 0 || entry.offset > end) {
          later = yield;
          end = entry.offset + this.#budget.entryBytes;
        }
        writeMultiMember(entry, txn.txns[i]!);
      }
    } else {
      writeTxnRecord(entry, txn);
    }
    later = yield;
    const digest = this.#digestAfter(txn);
    if (digest !== undefined) writeTxnDigest(entry, digest);
    const proposal: Proposal = { zxid, origin, header, txn, node: 0, digest, bytes: entry.offset };
    return this.#send(origin, proposal, now, later.elapsedMs - now.elapsedMs);
  }

  /**
   * A removeRecursive. Its txn is a multi of deletes, or one without a change if there is nothing to
   * remove.
   */
  #removal(origin: WriteOrigin, reader: Reader, now: Now): Proposal | PrepareJob {
    const zxid = ++this.lastZxid;
    let request;
    try {
      request = readRecursiveRequest(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
    if (request === undefined || request.path === null) return this.#propose(origin, zxid, now, ErrorCode.MarshallingError);
    const removal = this.#keeperWrites.removal(origin, request.path, request.limit, zxid, 0);
    if (!removal.advance(this.#budget.units)) return this.#removalInSteps(origin, removal, zxid, now);
    if (removal.error === undefined && removal.deletes.length > this.#budget.records)
      return this.#removalInSteps(origin, removal, zxid, now);
    return this.#propose(origin, zxid, now, removalTxn(removal));
  }

  *#removalInSteps(origin: WriteOrigin, removal: PendingRemoval, zxid: Zxid, now: Now): PrepareJob {
    let later: Now;
    do later = yield;
    while (!removal.advance(this.#budget.units));
    const result = removalTxn(removal);
    return yield* this.#proposeInSteps(origin, zxid, now, later, typeof result === 'number' ? errorTxn(result) : result);
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
   * there are very many; see `prepare`.
   */
  closeSession(origin: WriteOrigin, now: Now): Proposal | PrepareJob {
    const { sessionHigh: high, sessionLow: low } = origin;
    const zxid = ++this.lastZxid;
    const slot = this.#tracker.sessions.find(high, low);
    if (slot !== -1) this.#tracker.setClosing(slot);
    const closing = new PendingClose(origin, zxid, this.#replica.tree, this.outstandingChanges);
    if (closing.removeEphemerals(this.#budget.units)) return this.#proposeClose(origin, closing, zxid, now, 0);
    return this.#closeSessionInSteps(origin, closing, zxid, now);
  }

  *#closeSessionInSteps(origin: WriteOrigin, closing: PendingClose, zxid: Zxid, now: Now): PrepareJob {
    let later: Now;
    do later = yield;
    while (!closing.removeEphemerals(this.#budget.units));
    return this.#proposeClose(origin, closing, zxid, now, later.elapsedMs - now.elapsedMs);
  }

  #proposeClose(origin: WriteOrigin, closing: PendingClose, zxid: Zxid, now: Now, prepareMs: Millis): Proposal {
    // A list too long to be read back is omitted: a server that applies the txn knows the session's
    // ephemerals.
    const fits = closing.pathBytesMax + entryOverheadBytes <= this.#validator.entryBytesMax;
    const paths2Delete = this.#options.closeSessionTxnEnabled && fits ? closing.paths : null;
    return this.#propose(origin, zxid, now, { type: OpCode.closeSession, txn: { kind: 'closeSession', paths2Delete } }, prepareMs);
  }

  /** Removes a container or TTL znode that is due, or returns undefined if it no longer is. */
  deleteContainer(origin: WriteOrigin, path: string, now: Now, isDue: (znode: PendingZnode) => boolean): Proposal | undefined {
    const future = this.outstandingChanges.find(path);
    if (future === undefined || !isDue(future)) return undefined;
    const zxid = ++this.lastZxid;
    this.#validator.removeZnode(path, zxid);
    return this.#propose(origin, zxid, now, { type: OpCode.deleteContainer, txn: { kind: 'delete', path } });
  }

  /**
   * Stores the number of a parent of sequential znodes, if a create of the last txn made that due;
   * undefined if none is.
   */
  recordSequence(now: Now): Proposal | undefined {
    const due = this.#validator.sequenceNumbers.takeDue();
    if (due === undefined) return undefined;
    const zxid = ++this.lastZxid;
    const txn = this.#validator.recordSequence(due, zxid, now);
    return this.#propose(serverOrigin(txn.type, 0, 0, now), zxid, now, txn);
  }

  #propose(origin: WriteOrigin, zxid: Zxid, now: Now, result: PrepareResult, prepareMs: Millis = 0): Proposal {
    return this.#send(origin, this.#encode(origin, zxid, now, typeof result === 'number' ? errorTxn(result) : result), now, prepareMs);
  }

  /** Appends a proposal whose entry has been written to the log. */
  #send(origin: WriteOrigin, prepared: Proposal, now: Now, prepareMs: Millis): Proposal {
    const { zxid } = prepared;
    let proposal = prepared;
    if (this.#entry.offset > this.#validator.entryBytesMax) {
      // Such an entry could not be read back from the log or from the wire between servers. It has
      // grown beyond the limit during validation, for example by its ACLs.
      this.outstandingChanges.rollback(zxid);
      proposal = this.#encode(origin, zxid, now, errorTxn(ErrorCode.MarshallingError));
    }
    const { header, txn } = proposal;
    if (header.type === OpCode.reconfig && txn.kind === 'setData')
      this.#leader!.reconfigProposed(zxid, Buffer.from(txn.data!).toString('utf8'), now);
    this.#log.append(zxid, this.#entry.bytes, 0, this.#entry.offset, origin.owner);
    this.#observer.proposed(zxid, proposal.header.type, this.#entry.offset, prepareMs);
    return proposal;
  }

  #encode(origin: WriteOrigin, zxid: Zxid, now: Now, { type, txn, node = 0 }: TypedTxn): Proposal {
    const header = headerOf(origin, zxid, type, now);
    const digest = this.#digestAfter(txn);
    this.#entry.clear();
    writeTxn(this.#entry, { header, txn, digest });
    return { zxid, origin, header, txn, node, digest, bytes: this.#entry.offset };
  }

  /**
   * The digest of the tree after all proposals, this one included. A refusal changes nothing, and
   * ZooKeeper logs it without a digest.
   */
  #digestAfter(txn: Txn): TxnDigest | undefined {
    if (!this.#options.treeDigestEnabled || txn.kind === 'error') return undefined;
    const { digestHigh, digestLow } = this.outstandingChanges;
    return { version: digestVersion, high: digestHigh, low: digestLow };
  }

  #validate(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PrepareResult {
    switch (origin.opCode) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
        return this.#validator.create(origin, origin.opCode, readCreateRequest(reader), -1, zxid, now);
      case OpCode.createTTL: {
        const request = readCreateTTLRequest(reader);
        return this.#validator.create(origin, origin.opCode, request, request.ttl, zxid, now);
      }
      case OpCode.delete:
        return this.#validator.delete(origin, readDeleteRequest(reader), zxid);
      case OpCode.setData:
        return this.#validator.setData(origin, readSetDataRequest(reader), zxid, now);
      case OpCode.setACL:
        return this.#validator.setAcl(origin, readSetACLRequest(reader), zxid);
      case OpCode.multi:
        return this.#multi(origin, reader, zxid, now);
      case OpCode.reconfig:
        return this.#reconfig(origin, readReconfigRequest(reader), zxid, now);
      case OpCode.transferLeader:
        return this.#transferLeader(origin, readTransferLeaderRequest(reader), now);
      case OpCode.createIfNotExists:
      case OpCode.tryRemove:
        return this.#options.keeperExtensions ? this.#keeperWrite(origin, reader, zxid, now) : ErrorCode.Unimplemented;
      default:
        // Learners of ZooKeeper forward check and deleteContainer, and a createSession that a
        // client sent as a request. The client waits for a txn, as for any reply.
        return ErrorCode.Unimplemented;
    }
  }

  #keeperWrite(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PrepareResult {
    const { opCode } = origin;
    const result =
      opCode === OpCode.tryRemove
        ? this.#keeperWrites.tryRemove(origin, readDeleteRequest(reader), zxid)
        : this.#keeperWrites.createIfNotExists(origin, readCreateRequest(reader), zxid, now);
    return aloneTxn(opCode, result);
  }

  #reconfig(origin: WriteOrigin, request: ReconfigRequest, zxid: Zxid, now: Now): PrepareResult {
    if (!this.#options.reconfigEnabled) return ErrorCode.ReconfigDisabled;
    const fault = this.#validator.checkSession(origin);
    if (fault !== undefined) return fault;
    // A standalone server has no membership that could change.
    if (this.#leader === undefined) return ErrorCode.Unimplemented;
    const next = this.#leader.prepareReconfig(request, zxid);
    return typeof next === 'number' ? next : this.#validator.setConfig(origin, formatQuorumConfig(next), zxid, now);
  }

  /**
   * The answer is a txn without a change, so that it reaches the server that asks, and has its place
   * in the order of its session. It is the last of this leader if the transfer succeeds.
   */
  #transferLeader(origin: WriteOrigin, { target }: TransferLeaderRequest, now: Now): PrepareResult {
    const fault = this.#validator.checkSession(origin) ?? this.#validator.checkMayReconfigure(origin);
    if (fault !== undefined) return fault;
    if (this.#leader === undefined) return ErrorCode.Unimplemented;
    const outcome = this.#leader.transferLeadership(target, now);
    return typeof outcome === 'number' ? ErrorCode.Ok : transferErrorCodes[outcome];
  }

  #pendingMulti(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PendingMulti {
    return new PendingMulti(origin, reader, zxid, now, this.#validator, this.#keeperWrites, this.outstandingChanges);
  }

  #multi(origin: WriteOrigin, reader: Reader, zxid: Zxid, now: Now): PrepareResult {
    const multi = this.#pendingMulti(origin, reader, zxid, now);
    multi.validateParts(Infinity);
    if (multi.hasFailed) this.outstandingChanges.rollback(zxid);
    return { type: OpCode.multi, txn: multi.txn() };
  }
}

/** The deletes of a removeRecursive; the error that refuses it; or a txn without a change. */
function removalTxn({ error, deletes }: PendingRemoval): PrepareResult {
  if (error !== undefined) return error;
  return deletes.length === 0 ? ErrorCode.Ok : { type: OpCode.multi, txn: { kind: 'multi', txns: deletes } };
}

/**
 * A multi that may take more than a step: it is long, it expands to many identities, or it may
 * remove many znodes.
 */
function isLongMulti({ identities, keeperParts }: WriteOrigin, { remaining }: Reader, shortFrameBytes: number): boolean {
  return keeperParts !== undefined || remaining > shortFrameBytes || remaining * identities.count > shortFrameBytes * manyIdentities;
}

const manyIdentities = 16;

/** The codes that a client knows, of which each has one meaning for a transfer. */
const transferErrorCodes: Readonly<Record<TransferRefusal, ErrorCode>> = {
  'not leading': ErrorCode.ReconfigInProgress,
  'leads already': ErrorCode.BadVersion,
  'not a voter': ErrorCode.BadArguments,
  'not in step': ErrorCode.NewConfigNoQuorum,
  'follower without support': ErrorCode.Unimplemented,
  'reconfiguration pending': ErrorCode.ReconfigInProgress,
  'transfer under way': ErrorCode.ReconfigInProgress,
};

function headerOf(origin: WriteOrigin, zxid: Zxid, type: number, now: Now): TxnHeader {
  return { clientHigh: origin.sessionHigh, clientLow: origin.sessionLow, cxid: origin.cxid, zxid, time: now.wallMs, type };
}

/** Bytes around the list of paths: header, digest and lengths. */
const entryOverheadBytes = 128;
