/**
 * Decides when a request starts: at once, or after the requests that wait for a job, for the limit
 * of outstanding requests (zookeeper.request_throttle_max_requests), or for the turn of a long
 * write. A request that starts is validated as far as its connection goes, and handed on: a write
 * to the sequencer, a read or a sync to the session queue.
 */
import { ErrorCode, type Millis, OpCode, Reader } from '@tskeeper/protocol';
import type { Authentication } from './authentication.ts';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { Handshakes } from './handshake.ts';
import type { LocalSessions } from './local-sessions.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { SessionSlot } from '../session/session-table.ts';
import { localOwner, previousOwner, type SessionTracker } from '../session/session-tracker.ts';
import { AdmissionQueue } from './admission-queue.ts';
import type { Load } from '../pending/load.ts';
import { LongWriteQueue, type QueuedForward } from './long-write-queue.ts';
import type { MemoryLimits } from './memory-limits.ts';
import { parkFrame, type ParkedFrame } from '../pending/pending-request.ts';
import { type ForwardedRequest, isKeeperWrite, isWrite, noCnxn, partsKnownElsewhere, type WriteOrigin } from '../pending/proposal.ts';
import { keeperPartsOf, removalLimitOf } from './keeper-multis.ts';
import { Request } from './request.ts';
import type { SessionQueue } from './session-queue.ts';
import { bytesPerUnit, type StepBudget, unitsPerPart, unitsPerRequest } from '../step-budget.ts';
import type { StepScheduler } from './step-scheduler.ts';
import type { WriteSequencer } from './write-sequencer.ts';

const headerBytes = 8;
const int32Bytes = 4;

/** Validating credentials: a short text is hashed, and the result is added to the identities. */
const unitsPerCredentials = 32;
const hashedBytesPerUnit = 64;
/** A delete in the txn of a removeRecursive. */
const bytesPerDeleteMin = 16;
/** A part of a multi costs 48 units; a short part has 24 bytes. */
const unitsPerByteOfParts = 2;
/** An entry of an ACL costs two units and has about 16 bytes or more. */
const bytesPerUnitOfAcl = 8;

/** What admission works with. */
export interface AdmissionParts {
  readonly options: CoreOptions;
  readonly budget: StepBudget;
  readonly observer: Observer;
  readonly cnxns: CnxnTable;
  readonly tracker: SessionTracker;
  readonly load: Load;
  readonly memoryLimits: MemoryLimits;
  readonly authentication: Authentication;
  readonly handshakes: Handshakes;
  readonly localSessions: LocalSessions;
  readonly sequencer: WriteSequencer;
  readonly sessionQueue: SessionQueue;
  readonly scheduler: StepScheduler;
}

export class Admission {
  readonly #options: CoreOptions;
  readonly #budget: StepBudget;
  readonly #observer: Observer;
  readonly #cnxns: CnxnTable;
  readonly #tracker: SessionTracker;
  readonly #load: Load;
  readonly #memoryLimits: MemoryLimits;
  readonly #authentication: Authentication;
  readonly #handshakes: Handshakes;
  readonly #localSessions: LocalSessions;
  readonly #sequencer: WriteSequencer;
  readonly #sessionQueue: SessionQueue;
  readonly #scheduler: StepScheduler;
  readonly #admissionQueue: AdmissionQueue;
  readonly #longWriteQueue = new LongWriteQueue();
  /** Queued frames or a long write could be admitted, but the budget of the step is spent. */
  #canResume = false;
  /** Placed over frames that were parked or queued. */
  readonly #parkedReader = new Reader();
  /** A txn with the deletes of more znodes would be too long. */
  readonly #removedMax: number;
  /** The request being admitted. */
  readonly #request: Request;

  constructor(parts: AdmissionParts, now: Now) {
    this.#options = parts.options;
    this.#budget = parts.budget;
    this.#observer = parts.observer;
    this.#cnxns = parts.cnxns;
    this.#tracker = parts.tracker;
    this.#load = parts.load;
    this.#memoryLimits = parts.memoryLimits;
    this.#authentication = parts.authentication;
    this.#handshakes = parts.handshakes;
    this.#localSessions = parts.localSessions;
    this.#sequencer = parts.sequencer;
    this.#sessionQueue = parts.sessionQueue;
    this.#scheduler = parts.scheduler;
    this.#admissionQueue = new AdmissionQueue(parts.options, parts.load);
    this.#removedMax = Math.ceil((parts.options.juteMaxBuffer + parts.options.juteMaxBufferExtra) / bytesPerDeleteMin);
    this.#request = new Request(now);
  }

  // ---- questions

  /** Whether no frame and no long write waits. */
  get isIdle(): boolean {
    return this.#admissionQueue.isEmpty && this.#longWriteQueue.isEmpty;
  }

  /** Queued frames or a long write could be admitted, but the budget of the step is spent. */
  get canResume(): boolean {
    return this.#canResume;
  }

  /** When to check again whether queued frames can be admitted; undefined if none waits. */
  get deadline(): Millis | undefined {
    return this.#admissionQueue.deadline;
  }

  /**
   * False while frames of this connection should stay in the port: its handshake is not answered,
   * or too much is outstanding.
   */
  wantsInput(cnxn: Cnxn): boolean {
    if (cnxn.isOutputFull || cnxn.isLeaving || (cnxn.state !== 'open' && cnxn.state !== 'new')) return false;
    if (cnxn.pendingRequests.length === 0 && cnxn.framesAwaitingAdmission === 0) return true;
    // Frames after a handshake that is held would only be held as well.
    if (cnxn.pendingLongReadCount > 0 || cnxn.state === 'new') return false;
    const load = this.#load;
    const { globalOutstandingLimit, inFlightBytesMax, identityBytesPerAddressMax, exemptIdentityBytes } = this.#options;
    const ownIdentityBytes = cnxn.identities.bytes * cnxn.pendingRequests.length;
    if (cnxn.addressLoad.identityBytes > identityBytesPerAddressMax && ownIdentityBytes > exemptIdentityBytes) {
      this.#observer.limitReached('identityBytesPerAddressMax');
      return false;
    }
    const bytes = Math.max(load.bytes, this.#sequencer.queuedBytes);
    if (load.requests + load.awaitingAdmission <= globalOutstandingLimit && bytes <= inFlightBytesMax) return true;
    // Addresses above their share of the limits do not keep the others from using theirs.
    if (load.isBelowShare(cnxn.addressLoad, globalOutstandingLimit, inFlightBytesMax)) return true;
    this.#observer.limitReached(bytes > inFlightBytesMax ? 'inFlightBytesMax' : 'globalOutstandingLimit');
    return false;
  }

  // ---- inputs

  /** A learner has forwarded a request of one of its clients. */
  forwarded(forwarded: ForwardedRequest, now: Now): void {
    const request = this.#isKeeperMulti(forwarded) ? { ...forwarded, opCode: OpCode.multi, keeperParts: partsKnownElsewhere } : forwarded;
    if (request.opCode === OpCode.createSession) this.#maybeOpenAwaitingCreate(request, now);
    if (!this.mustQueue) {
      this.#submitForwarded(request, now);
      return;
    }
    this.#load.forwardQueued(request);
    const slot = this.#tracker.sessions.find(request.sessionHigh, request.sessionLow);
    this.#admissionQueue.pushForwarded(request, this.#tracker.moveCountOf(slot), now.elapsedMs);
  }

  /** Only a learner sends its opcode: what a client sends as a multi has no operation of Keeper. */
  #isKeeperMulti({ opCode }: ForwardedRequest): boolean {
    return opCode === OpCode.keeperMulti && this.#options.keeperExtensions;
  }

  /** The connection is gone. Returns whether its long write keeps its turn. */
  disconnected(cnxn: Cnxn): boolean {
    const mayKeep = cnxn.state === 'queued' && !this.#options.requestThrottleDropStale;
    const keepsTurn = mayKeep && this.#longWriteQueue.keepsTurn(cnxn);
    if (!keepsTurn) this.#longWriteQueue.remove(cnxn);
    return keepsTurn;
  }

  /** New input is served before the queues go on. */
  resumeLater(): void {
    this.#canResume = !this.#admissionQueue.isEmpty || (!this.#longWriteQueue.isEmpty && this.#canStartLongWrite());
  }

  /** Whether a frame that arrives now must wait for its admission. */
  get mustQueue(): boolean {
    return !this.#admissionQueue.isEmpty || !this.#canAdmit();
  }

  /**
   * Whether a request may be admitted now: no job is running, and the number of outstanding
   * requests is below the limit.
   */
  #canAdmit(): boolean {
    const limit = this.#options.requestThrottleLimit;
    return !this.#scheduler.isBusy && (limit === 0 || this.#load.requests < limit);
  }

  queue(cnxn: Cnxn, reader: Reader, arrivedMs: Millis, now: Now): void {
    const frame = parkFrame(reader.bytes, reader.offset, reader.limit, cnxn.identities, arrivedMs, false);
    this.#reportThrottled();
    this.#admissionQueue.push(cnxn, frame, now.elapsedMs);
    // The client was alive at this time, whenever the request gets its turn.
    if (cnxn.slot !== -1 && arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
  }

  #reportThrottled(): void {
    if (this.#admissionQueue.isEmpty && !this.#scheduler.isBusy) this.#observer.requestThrottled();
  }

  admitQueued(now: Now): void {
    this.#canResume = false;
    while (!this.#admissionQueue.isEmpty && this.#canAdmit()) {
      if (this.#scheduler.yieldsStep('request')) {
        this.#canResume = true;
        return;
      }
      this.#scheduler.addWork(unitsPerRequest);
      const taken = this.#admissionQueue.take(now.elapsedMs);
      if (taken.kind === 'forwarded') {
        const { request, sessionMoves, afterLongWrite } = taken;
        this.#load.forwardTaken(request);
        this.#submitForwarded(request, now, sessionMoves, afterLongWrite !== 'no');
        if (afterLongWrite === 'last') this.#longWriteQueue.resume(request);
        continue;
      }
      const { cnxn, frame: held } = taken;
      // Credentials of the client may have been held before this frame; the request is made with
      // the identities that they gave.
      const frame = { ...held, identities: cnxn.identities };
      if (!cnxn.isClosed) this.#admitParked(cnxn, frame, now);
      // The long write of this connection keeps its place in the queue; the other requests wait for
      // it.
      else if (cnxn.deferredFrames.length > 0) this.#deferAfterLongWrite(cnxn, frame);
      else this.#onStaleRequest(cnxn, frame, now);
    }
    if (!this.#admissionQueue.isEmpty && !this.#scheduler.isBusy) this.#observer.requestThrottled();
    this.#admissionQueue.scheduleRetry(now.elapsedMs);
  }

  /**
   * Handles a held request whose connection has closed meanwhile. After a dropped request, no later
   * request of that connection has an effect.
   */
  #onStaleRequest(cnxn: Cnxn, frame: ParkedFrame, now: Now): void {
    const opCode = opCodeOf(frame);
    // A client that closes its session disconnects at once; the closeSession is still valid.
    const isCloseRequest = opCode === OpCode.closeSession;
    if (opCode === OpCode.auth || opCode === OpCode.sasl) cnxn.authPendingAtClose = true;
    const isUnwanted = !isCloseRequest && (this.#options.requestThrottleDropStale || cnxn.authPendingAtClose);
    if (isUnwanted) cnxn.hasDroppedRequest = true;
    if (cnxn.hasDroppedRequest || !isCloseRequest) this.#observer.staleRequest(cnxn.hasDroppedRequest);
    if (cnxn.hasDroppedRequest) return;
    // A write that is refused is dropped: there is no connection for the reply.
    if (frame.isThrottled) cnxn.hasDroppedRequest = opCode !== undefined && isWrite(opCode);
    else this.#submitStaleWrite(cnxn, frame, now);
  }

  /**
   * Performs a write that was held while its client disconnected, if the session is still alive. No
   * reply is sent.
   */
  #submitStaleWrite(cnxn: Cnxn, { bytes, identities, arrivedMs }: ParkedFrame, now: Now): void {
    // Input of a connection that the server has closed must not have any effect.
    if (cnxn.closeReason !== undefined || bytes.length < headerBytes || !this.#authentication.isAuthenticated(identities)) return;
    const { sessionHigh: high, sessionLow: low } = cnxn;
    // Nor must input that arrived before the session moved to another connection.
    const slot = this.#tracker.findLive(high, low);
    if (slot === -1 || this.#tracker.moveCountOf(slot) !== cnxn.sessionMoves) return;
    const reader = this.#parkedReader.wrap(bytes, 0, bytes.length);
    const xid = reader.int32();
    const opCode = reader.int32();
    if (!this.#isOrdered(opCode)) return;
    if (this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes)) {
      cnxn.hasDroppedRequest = true;
      return;
    }
    if (opCode === OpCode.closeSession && this.#localSessions.closesHere(slot)) {
      this.#localSessions.close(slot);
      return;
    }
    const cxid = xid;
    const isUpgradeRefused = this.#localSessions.refusesEphemeral(slot, opCode, reader, now);
    this.#tracker.addStrayWrites(slot, 1);
    this.#submitWrite(
      {
        kind: 'write',
        cnxn: noCnxn,
        owner: localOwner,
        sessionHigh: high,
        sessionLow: low,
        cxid,
        opCode,
        identities,
        heldBytes: 0,
        frameBytes: 0,
        isUpgradeRefused,
        keeperParts: this.#keeperPartsOf(opCode, reader),
        arrivedMs,
      },
      reader,
      now,
    );
  }

  /**
   * @param movesAtArrival how often the session had moved when the request arrived, if the request
   * was held.
   * @param isLongWriteTurn for a long write that is now admitted, and for requests that waited for
   * one.
   */
  #submitForwarded(forwarded: ForwardedRequest, now: Now, movesAtArrival?: number, isLongWriteTurn = false): void {
    if (!isLongWriteTurn && this.#maybeQueueForwarded(forwarded, movesAtArrival)) return;
    this.#scheduler.addWork(unitsPerRequest);
    const { record, keeperParts, ...request } = forwarded;
    // It must not be taken for a request of the session's new connection.
    const owner = movesAtArrival !== undefined && this.#hasMoved(forwarded, movesAtArrival) ? previousOwner : request.owner;
    const origin: WriteOrigin = {
      kind: 'write',
      cnxn: noCnxn,
      ...request,
      owner,
      heldBytes: 0,
      frameBytes: 0,
      isUpgradeRefused: false,
      keeperParts,
    };
    const reader = this.#parkedReader.wrap(record, 0, record.length);
    if (request.opCode === OpCode.createSession && this.#tracker.isAwaitingCreate(this.#slotOf(request)))
      this.#sequencer.openSession(origin, reader.int32(), now);
    else this.#submitWrite(origin, reader, now);
  }

  #slotOf({ sessionHigh, sessionLow }: SessionRef): SessionSlot {
    return this.#tracker.sessions.find(sessionHigh, sessionLow);
  }

  /** Whether the session has since moved to another connection at the server that forwarded it. */
  #hasMoved({ sessionHigh, sessionLow, owner }: ForwardedRequest, movesAtArrival: number): boolean {
    const slot = this.#tracker.sessions.find(sessionHigh, sessionLow);
    return this.#tracker.moveCountOf(slot) !== movesAtArrival && this.#tracker.isOwnedBy(slot, owner);
  }

  /**
   * Opens the session of a learner's createSession when that arrives, even if it must wait for its
   * turn: its client may come back to its server, which asks whether the session lives. A
   * createSession that a client of a ZooKeeper server sends as an ordinary request comes the same
   * way, with any record: it is treated like any other unknown request.
   */
  #maybeOpenAwaitingCreate({ owner, sessionHigh: high, sessionLow: low, record }: ForwardedRequest, now: Now): void {
    if (record.length < int32Bytes || (high === 0 && low === 0) || this.#tracker.sessions.find(high, low) !== -1) return;
    const timeoutMs = record.readInt32BE(0);
    if (timeoutMs > 0) this.#tracker.openAwaitingCreate(owner, high, low, timeoutMs, now.elapsedMs);
  }

  // ---- long writes

  /** Units that it takes to validate a write, if that is more than a step; otherwise 0. */
  #longWriteUnits(opCode: number, reader: Reader): number {
    const stepUnits = this.#budget.units;
    const bytes = reader.remaining;
    if (this.#options.keeperExtensions) {
      const removed = Math.min(removalLimitOf(opCode, reader), this.#removedMax) * unitsPerPart;
      if (removed > stepUnits) return removed;
    }
    if (bytes * unitsPerByteOfParts <= stepUnits || !isWrite(opCode)) return 0;
    const units = writeUnits(opCode, bytes);
    return units > stepUnits ? units : 0;
  }

  #mustQueueLongWrite(): boolean {
    return !this.#longWriteQueue.isEmpty || !this.#canStartLongWrite();
  }

  #canStartLongWrite(): boolean {
    const { unitsProposedMax, multiBytesForwardedMax } = this.#budget;
    return this.#load.unitsProposed <= unitsProposedMax && this.#load.multiBytesForwarded <= multiBytesForwardedMax;
  }

  /** A request of a session that has ended does not wait, however long it is: it is refused. */
  #maybeQueueForwarded(request: ForwardedRequest, movesBefore: number | undefined): boolean {
    const { sessionHigh: high, sessionLow: low, opCode, record } = request;
    const long = this.#longWriteUnits(opCode, this.#parkedReader.wrap(record, 0, record.length));
    const { sessions } = this.#tracker;
    const units = long > 0 && (sessions.find(high, low) !== -1 || this.#tracker.acceptsWritesOf(request)) ? long : 0;
    if (!(units > 0 && this.#mustQueueLongWrite()) && !this.#longWriteQueue.hasRequestsOf(request)) {
      if (units > 0) this.#longWriteQueue.chargeStarted(request, units);
      return false;
    }
    this.#load.forwardQueued(request);
    if (units > 0) this.#observer.longWriteQueued(true);
    const sessionMoves = movesBefore ?? this.#tracker.moveCountOf(sessions.find(high, low));
    this.#longWriteQueue.pushForwarded({ request, sessionMoves, units });
    return true;
  }

  #queueLongWrite(cnxn: Cnxn, frame: ParkedFrame, units: number): void {
    this.#observer.longWriteQueued(false);
    cnxn.deferredFrames.push(frame);
    cnxn.state = 'queued';
    this.#longWriteQueue.push(cnxn, units);
  }

  /** Starts long writes while the limits allow. */
  startLongWrites(now: Now): void {
    if (this.#longWriteQueue.isEmpty) return;
    // However many short writes were admitted before, they were a step's work at most.
    this.#scheduler.extendStep();
    while (!this.#longWriteQueue.isEmpty && !this.#scheduler.isBusy && this.#canStartLongWrite()) {
      if (this.#scheduler.yieldsStep('request')) {
        this.#canResume = true;
        return;
      }
      const next = this.#longWriteQueue.take();
      if (next.kind === 'cnxn') this.#startQueuedWrite(next.cnxn, now);
      else this.#startForwardedWrite(next.requests, now);
    }
  }

  #startQueuedWrite(cnxn: Cnxn, now: Now): void {
    const first = cnxn.deferredFrames.shift();
    // The server has closed the connection.
    if (first === undefined) return;
    this.#load.unparked(first, cnxn.addressLoad);
    if (cnxn.isClosed) {
      this.#onStaleRequest(cnxn, first, now);
      this.#requeueDeferred(cnxn, now);
      return;
    }
    cnxn.state = 'open';
    this.#admitParked(cnxn, first, now, true);
    if (!cnxn.isClosed) this.admitDeferred(cnxn, now);
  }

  #deferAfterLongWrite(cnxn: Cnxn, frame: ParkedFrame): void {
    this.#load.parked(frame, cnxn.addressLoad);
    cnxn.deferredFrames.push(frame);
  }

  /**
   * Moves the frames that a closed connection had queued after its long write to the held frames.
   */
  #requeueDeferred(cnxn: Cnxn, now: Now): void {
    const early = cnxn.deferredFrames.takeAll();
    if (early.length === 0) return;
    for (const frame of early) this.#load.unparked(frame, cnxn.addressLoad);
    this.#reportThrottled();
    this.#admissionQueue.requeue(cnxn, early, now.elapsedMs);
    this.#canResume = true;
  }

  #startForwardedWrite([first, ...others]: readonly QueuedForward[], now: Now): void {
    this.#load.forwardTaken(first!.request);
    if (others.length > 0) {
      this.#admissionQueue.requeueForwarded(others, now.elapsedMs);
      this.#canResume = true;
    }
    this.#submitForwarded(first!.request, now, first!.sessionMoves, true);
  }

  #admitParked(cnxn: Cnxn, frame: ParkedFrame, now: Now, isLongWriteTurn = false): void {
    const request = this.#request;
    request.cnxn = cnxn;
    request.identities = frame.identities;
    request.arrivedMs = frame.arrivedMs;
    request.isThrottled = frame.isThrottled;
    request.now = now;
    this.#admit(request, this.#parkedReader.wrap(frame.bytes, 0, frame.bytes.length), isLongWriteTurn);
  }

  /** Admits a frame that arrives now. */
  admit(cnxn: Cnxn, reader: Reader, arrivedMs: Millis, now: Now): void {
    const request = this.#request;
    request.cnxn = cnxn;
    request.identities = cnxn.identities;
    request.arrivedMs = arrivedMs;
    request.isThrottled = false;
    request.now = now;
    this.#admit(request, reader, false);
  }

  #admit(request: Request, reader: Reader, isLongWriteTurn: boolean): void {
    const { cnxn, arrivedMs, now } = request;
    request.frameStart = reader.offset;
    switch (cnxn.state) {
      case 'new':
        this.#handshake(cnxn, reader, now);
        return;
      case 'opening':
      case 'parked':
      case 'queued':
        cnxn.deferredFrames.push(this.#sessionQueue.park(request, reader));
        return;
      case 'closed':
        return;
      case 'open':
        break;
      default:
        cnxn.state satisfies never;
    }
    if (reader.remaining < headerBytes) {
      this.#cnxns.close(cnxn, 'malformed request');
      return;
    }
    request.xid = reader.int32();
    request.opCode = reader.int32();
    // A session that is closing accepts no more requests. Its connection is closed when the
    // closeSession is applied.
    if (cnxn.slot === -1 || this.#tracker.sessions.isClosing(cnxn.slot)) return;
    // A queued frame counted as a sign of life when it arrived; its client may be dead by now.
    if (arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
    const { opCode } = request;
    const units = isLongWriteTurn ? 0 : this.#longWriteUnits(opCode, reader);
    // A write that must wait is queued; one that the limits refuse is refused below.
    if (units > 0 && this.#mustQueueLongWrite() && !this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes)) {
      this.#queueLongWrite(cnxn, this.#sessionQueue.park(request, reader), units);
      return;
    }
    if (units > 0) this.#longWriteQueue.chargeStarted(cnxn, units);
    this.#observer.admitted(cnxn.id, opCode, reader.limit - request.frameStart + 4, now.elapsedMs - arrivedMs);
    this.#start(request, reader);
  }

  /** Hands an admitted request to what validates or answers it. */
  #start(request: Request, reader: Reader): void {
    const { cnxn, xid, opCode, now } = request;
    if (opCode === OpCode.auth || opCode === OpCode.sasl) {
      // Credentials are hashed, and identities added.
      this.#scheduler.addWork(unitsPerCredentials + reader.remaining / hashedBytesPerUnit);
      this.#authentication.authenticate(cnxn, opCode, xid, reader, now);
      return;
    }
    if (!this.#authentication.isAuthenticated(request.identities)) {
      this.#authentication.rejectUnauthenticated(cnxn, opCode, xid, now);
      return;
    }
    if (this.#isOrdered(opCode)) {
      if (!request.isThrottled && !this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes)) {
        if (opCode === OpCode.closeSession && this.#localSessions.closesHere(cnxn.slot)) {
          this.#localSessions.closeRequested(cnxn.slot);
          this.#sessionQueue.read(request, reader);
        } else {
          this.#write(request, reader);
        }
        return;
      }
      request.isThrottled = true;
      // Report it now: the connection may be closed before the reply is sent.
      this.#observer.requestRejected(cnxn.id, opCode, ErrorCode.ThrottledOp);
    }
    if (opCode === OpCode.sync && !request.isThrottled && !this.#sequencer.isCaughtUp) this.#sessionQueue.enqueueSync(request, reader);
    else this.#sessionQueue.read(request, reader);
  }

  // ---- writes and handshakes

  #write({ cnxn, xid, opCode, identities, arrivedMs, now }: Request, reader: Reader): void {
    const { id, sessionHigh: high, sessionLow: low, slot } = cnxn;
    const isUpgradeRefused = this.#localSessions.refusesEphemeral(slot, opCode, reader, now);
    const origin: WriteOrigin = {
      kind: 'write',
      cnxn: id,
      owner: localOwner,
      sessionHigh: high,
      sessionLow: low,
      cxid: xid,
      opCode,
      identities,
      heldBytes: this.#sequencer.forwardsToLeader ? reader.remaining + identities.bytes : 0,
      frameBytes: reader.remaining,
      isUpgradeRefused,
      keeperParts: this.#keeperPartsOf(opCode, reader),
      arrivedMs,
    };
    this.#sessionQueue.enqueueWrite(cnxn, origin);
    this.#submitWrite(origin, reader, now);
  }

  /** Whether the request goes to the leader; otherwise this server answers it by itself. */
  #isOrdered(opCode: number): boolean {
    const { isReadOnly, acceptsTransfers } = this.#sequencer;
    if (isReadOnly || !isWrite(opCode)) return false;
    if (opCode === OpCode.transferLeader) return acceptsTransfers;
    return !isKeeperWrite(opCode) || this.#acceptsKeeperWrites;
  }

  get #acceptsKeeperWrites(): boolean {
    return this.#options.keeperExtensions && this.#sequencer.acceptsKeeperWrites;
  }

  /** Without Keeper's extensions such a multi is refused like one with any other strange part. */
  #keeperPartsOf(opCode: number, reader: Reader): WriteOrigin['keeperParts'] {
    return opCode === OpCode.multi && this.#acceptsKeeperWrites ? keeperPartsOf(reader) : undefined;
  }

  #submitWrite(origin: WriteOrigin, reader: Reader, now: Now): void {
    this.#scheduler.addWork(writeUnits(origin.opCode, reader.remaining));
    const job = this.#sequencer.submitWrite(origin, reader, now);
    if (job !== undefined) this.#scheduler.startJob(job, origin.cnxn);
  }

  #handshake(cnxn: Cnxn, reader: Reader, now: Now): void {
    const outcome = this.#handshakes.request(cnxn, reader, now);
    if (outcome.kind === 'create') {
      this.#sessionQueue.enqueueWrite(cnxn, outcome.origin);
      this.#sequencer.openSession(outcome.origin, cnxn.timeoutMs, now);
    } else if (outcome.kind === 'resumed') {
      this.admitDeferred(cnxn, now);
    }
  }

  /**
   * Admits the frames that arrived before the connection was ready for them, before its held
   * frames.
   */
  admitDeferred(cnxn: Cnxn, now: Now): void {
    const early = cnxn.deferredFrames.takeAll();
    for (const frame of early) this.#load.unparked(frame, cnxn.addressLoad);
    for (const [at, frame] of early.entries()) {
      if (!this.#canAdmit() || this.#scheduler.isBudgetSpent()) {
        this.#reportThrottled();
        this.#admissionQueue.requeue(cnxn, early.slice(at), now.elapsedMs);
        this.#canResume = this.#canAdmit();
        return;
      }
      this.#scheduler.addWork(unitsPerRequest);
      // An earlier frame may have authenticated the client.
      this.#admitParked(cnxn, { ...frame, identities: cnxn.identities }, now);
    }
  }
}

/**
 * The cost of validating a write beyond the fixed cost of a request: parts of a multi and entries
 * of an ACL are short but expensive.
 */
function writeUnits(opCode: number, bytes: number): number {
  if (opCode === OpCode.multi) return bytes * unitsPerByteOfParts;
  return bytes / (opCode === OpCode.setACL ? bytesPerUnitOfAcl : bytesPerUnit);
}

/** The operation of a frame; undefined if the frame is too short to have one. */
function opCodeOf({ bytes }: ParkedFrame): number | undefined {
  return bytes.length < headerBytes ? undefined : bytes.readInt32BE(4);
}
