/**
 * Keeps the replies of a session in the order of its requests. ZooKeeper's CommitProcessor does
 * this.
 *
 * A write waits in its connection's queue until its txn has been applied. A read or a sync after it
 * waits too, as the bytes received; a read with nothing before it is answered at once. When a
 * request is answered, those that waited for it are answered up to the next write.
 */
import { ErrorCode, OpCode, ProtocolError, Reader, type Zxid } from '@tskeeper/protocol';
import type { ClientOutput } from '../client-output.ts';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { Load } from '../pending/load.ts';
import { parkFrame, type ParkedFrame, type PendingSync } from '../pending/pending-request.ts';
import { isWrite, type WriteOrigin } from '../pending/proposal.ts';
import type { LocalSessions } from './local-sessions.ts';
import type { ReadHandler } from './read-handler.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import { Request } from './request.ts';
import { unitsPerRequest } from '../step-budget.ts';
import type { StepScheduler } from './step-scheduler.ts';
import type { WriteSequencer } from './write-sequencer.ts';

/** Xid and operation. */
const headerBytes = 8;

export class SessionQueue {
  readonly #out: ClientOutput;
  readonly #observer: Observer;
  readonly #cnxns: CnxnTable;
  readonly #load: Load;
  readonly #replica: Replica;
  readonly #readHandler: ReadHandler;
  readonly #replyWriter: ReplyWriter;
  readonly #sequencer: WriteSequencer;
  readonly #scheduler: StepScheduler;
  readonly #localSessions: LocalSessions;
  /**
   * Connections whose parked reads need more than one step. No txn is applied before they are
   * answered.
   */
  readonly #replyQueue: Cnxn[] = [];
  /** Placed over frames that were parked. */
  readonly #parkedReader = new Reader();
  /** The last txn that has been applied completely. */
  #appliedZxid: Zxid;
  /** The parked read being answered. Reads are answered one at a time. */
  readonly #parkedRequest: Request;

  constructor(
    out: ClientOutput,
    observer: Observer,
    cnxns: CnxnTable,
    load: Load,
    replica: Replica,
    readHandler: ReadHandler,
    replyWriter: ReplyWriter,
    sequencer: WriteSequencer,
    scheduler: StepScheduler,
    localSessions: LocalSessions,
    now: Now,
  ) {
    this.#out = out;
    this.#observer = observer;
    this.#cnxns = cnxns;
    this.#load = load;
    this.#replica = replica;
    this.#readHandler = readHandler;
    this.#replyWriter = replyWriter;
    this.#sequencer = sequencer;
    this.#scheduler = scheduler;
    this.#localSessions = localSessions;
    this.#appliedZxid = replica.lastZxid;
    this.#parkedRequest = new Request(now);
  }

  // ---- requests that were admitted

  /** A write waits for its txn. */
  enqueueWrite(cnxn: Cnxn, origin: WriteOrigin): void {
    cnxn.pendingRequests.push(origin);
    cnxn.pendingWriteCount++;
    this.#load.writeQueued(origin, cnxn.addressLoad);
    if (!cnxn.isOutputFull) return;
    cnxn.isOutputFull = false;
    this.#replyQueue.push(cnxn);
  }

  /** A sync waits for the writes before it, and for what other servers had committed. */
  enqueueSync(request: Request, reader: Reader): void {
    const { cnxn, now } = request;
    const { id, sessionHigh: high, sessionLow: low } = cnxn;
    const frame = this.park(request, reader);
    const heldBytes = this.#sequencer.forwardsToLeader ? frame.identities.bytes : 0;
    const sync: PendingSync = { kind: 'sync', cnxn: id, sessionHigh: high, sessionLow: low, frame, heldBytes, isDone: false };
    cnxn.pendingRequests.push(sync);
    this.#load.syncQueued(sync, cnxn.addressLoad);
    this.#sequencer.sync(sync, now);
  }

  /**
   * A read, or the closeSession of a local session, waits while an earlier request of its
   * connection is unanswered; otherwise it is answered at once.
   */
  read(request: Request, reader: Reader): void {
    const { cnxn } = request;
    if (cnxn.pendingRequests.length === 0) {
      this.#answerRead(request, reader);
      return;
    }
    reader.offset = request.frameStart + headerBytes;
    const isLong = this.#isLong(request.opCode, reader);
    if (isLong) cnxn.pendingLongReadCount++;
    cnxn.pendingRequests.push(this.park(request, reader, isLong));
  }

  #isLong(opCode: number, reader: Reader): boolean {
    try {
      return this.#readHandler.isLong(opCode, reader);
    } catch (error) {
      // It is answered with an error when its turn comes.
      if (error instanceof ProtocolError) return false;
      throw error;
    }
  }

  /** A copy of a request that must wait. It counts as load until it is taken. */
  park(request: Request, reader: Reader, isLong = false): ParkedFrame {
    const { cnxn, identities, arrivedMs, isThrottled, frameStart } = request;
    const frame = parkFrame(reader.bytes, frameStart, reader.limit, identities, arrivedMs, isThrottled, isLong);
    this.#load.parked(frame, cnxn.addressLoad);
    return frame;
  }

  #answerRead(request: Request, reader: Reader): void {
    const { cnxn, xid, opCode, arrivedMs, now } = request;
    if (request.isThrottled && opCode !== OpCode.ping) {
      if (!isWrite(opCode)) this.#observer.requestRejected(cnxn.id, opCode, ErrorCode.ThrottledOp);
      this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, this.#replica.lastZxid, ErrorCode.ThrottledOp, arrivedMs, now.elapsedMs, false);
      return;
    }
    if (opCode === OpCode.closeSession && this.#localSessions.closesHere(cnxn.slot)) {
      this.#localSessions.answerClose(request);
      return;
    }
    reader.offset = request.frameStart + headerBytes;
    const job = this.#readHandler.handle(request, reader);
    if (job !== undefined) this.#scheduler.startJob(job, cnxn.id, (later) => this.answerPendingReads(cnxn, later));
  }

  // ---- requests that may proceed

  /** Whether parked reads of some connections are due. */
  get hasReplies(): boolean {
    return this.#replyQueue.length > 0;
  }

  /** Parked reads of this connection are answered when the server serves its queues. */
  queueReplies(cnxn: Cnxn): void {
    this.#replyQueue.push(cnxn);
  }

  /**
   * Answers parked reads that are due. Returns false if the step has ended before all were
   * answered.
   */
  answerDue(now: Now): boolean {
    while (this.#replyQueue.length > 0) {
      if (this.#scheduler.yieldsStep('request')) return false;
      this.answerPendingReads(this.#replyQueue.shift()!, now);
      if (this.#scheduler.isBusy) return false;
    }
    return true;
  }

  /** Answers syncs that waited only for txns that have been applied, each when its turn comes. */
  replySyncs(now: Now): void {
    const applied = this.#appliedZxid;
    for (let sync = this.#sequencer.takeSynced(applied); sync !== undefined; sync = this.#sequencer.takeSynced(applied)) {
      sync.isDone = true;
      const cnxn = this.#cnxns.get(sync.cnxn);
      if (cnxn === undefined || cnxn.pendingRequests.peek() !== sync) continue;
      if (this.#scheduler.isBusy || !this.#scheduler.isServingQueues) this.#replyQueue.push(cnxn);
      else this.answerPendingReads(cnxn, now);
    }
  }

  /**
   * The txn `zxid` has been applied completely. Removes its write from the queue of its connection,
   * and returns the connection; undefined if the connection is gone: then no reply is sent.
   */
  takeApplied(zxid: Zxid, origin: WriteOrigin): Cnxn | undefined {
    this.#appliedZxid = zxid;
    const cnxn = this.#cnxns.get(origin.cnxn);
    // The connection may be closed by now, and its id may have been reused.
    if (cnxn === undefined || cnxn.pendingRequests.peek() !== origin) return undefined;
    cnxn.pendingRequests.shift();
    cnxn.pendingWriteCount--;
    cnxn.isOldestWriteCommitted = false;
    this.#load.writeDone(origin, cnxn.addressLoad);
    return cnxn;
  }

  /** Answers the reads that waited for the request just answered, up to the next write. */
  answerPendingReads(cnxn: Cnxn, now: Now): void {
    const scheduler = this.#scheduler;
    while (!scheduler.isBusy && !cnxn.isClosed) {
      const next = cnxn.pendingRequests.peek();
      if (next === undefined || next.kind === 'write' || (next.kind === 'sync' && !next.isDone)) return;
      if (scheduler.isCompletingJob || scheduler.yieldsStep('request')) {
        this.#replyQueue.push(cnxn);
        return;
      }
      // Many small requests may have large replies. They need not all be in memory at once, unless
      // a write follows them: they must not see its effect.
      if (cnxn.pendingWriteCount === 0) {
        cnxn.isOutputFull = this.#out.isFull(cnxn.id);
        if (cnxn.isOutputFull) return;
      }
      scheduler.addWork(unitsPerRequest);
      cnxn.pendingRequests.shift();
      const frame = next.kind === 'sync' ? next.frame : next;
      if (next.kind === 'sync') this.#load.syncDone(next, cnxn.addressLoad);
      this.#load.unparked(frame, cnxn.addressLoad);
      if (frame.isLong) cnxn.pendingLongReadCount--;
      const reader = this.#parkedReader.wrap(frame.bytes, 0, frame.bytes.length);
      const request = this.#parkedRequest;
      request.cnxn = cnxn;
      request.xid = reader.int32();
      request.opCode = reader.int32();
      request.identities = frame.identities;
      request.arrivedMs = frame.arrivedMs;
      request.isThrottled = frame.isThrottled;
      request.now = now;
      this.#answerRead(request, reader);
    }
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#replyQueue.length);
    for (const { id } of this.#replyQueue) to.number(id);
  }
}
