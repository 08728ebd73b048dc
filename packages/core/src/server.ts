/**
 * Serves clients, whatever the role of this peer: one method per input; output to clients goes to
 * `ClientOutput`.
 *
 * The path of a request, top to bottom: `frame` (admit, session order) -> read-handler.ts, which answers at
 * once; or write-sequencer.ts, which orders a write -> `appended` -> replica.ts changes the tree -> watch-notifier.ts
 * sends the watch events -> reply-writer.ts replies -> the requests that waited for this one.
 */
import {
  ErrorCode,
  type Millis,
  OpCode,
  ProtocolError,
  Reader,
  type SessionId,
  sessionHigh,
  sessionIdOf,
  sessionLow,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { AuthRegistry, type AuthTicket, type AuthResult } from './auth/auth-provider.ts';
import { Authentication } from './auth/authentication.ts';
import { digestProvider } from './auth/digest-provider.ts';
import { Identities } from './auth/identities.ts';
import { ipProvider } from './auth/ip-provider.ts';
import { Permissions } from './auth/permissions.ts';
import { Cnxn } from './cnxn/cnxn.ts';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { Inspector } from './inspector.ts';
import { ServerInspector } from './server-inspector.ts';
import type { Now } from './now.ts';
import type { Observer } from './observer.ts';
import type { CoreOptions } from './options.ts';
import type { ClientOutput, CnxnId, SessionOwner } from './client-output.ts';
import type { Random } from './random.ts';
import { ReplyWriter } from './request/reply-writer.ts';
import { earlierOf, type OrderFactory } from './request/local-sequencer.ts';
import { bytesPerUnit, type Job, StepBudget, type StepKind, unitsPerChange, unitsPerRequest, unitsPerTxn } from './request/step-budget.ts';
import { AdmissionQueue } from './request/admission-queue.ts';
import { AddressLoad, Load } from './request/load.ts';
import { LongWriteQueue, type QueuedForward } from './request/long-write-queue.ts';
import { MemoryLimits, type MemoryState } from './request/memory-limits.ts';
import { WatchNotifier } from './request/watch-notifier.ts';
import type { WriteSequencer } from './request/write-sequencer.ts';
import {
  changeCountOf,
  isCloseSession,
  type ForwardedRequest,
  isWrite,
  noCnxn,
  type Proposal,
  type WriteOrigin,
} from './request/proposal.ts';
import { type ReadRequest, ReadHandler } from './request/read-handler.ts';
import { silentChangeListener, Replica, replicaOptions } from './request/replica.ts';
import { parkFrame, type ParkedFrame, type PendingSync } from './request/pending-request.ts';
import { writeResult } from './request/write-result.ts';
import { requestsExistingSession, Handshakes } from './session/handshake.ts';
import { previousOwner, localOwner, SessionTracker } from './session/session-tracker.ts';
import type { SnapshotWriter } from './snapshot/snapshot-writer.ts';
import { WatchTable } from './tree/watch-table.ts';

const headerBytes = 8;
const int32Bytes = 4;

/** Validating credentials: a short text is hashed, and the result is added to the identities. */
const unitsPerCredentials = 32;
const hashedBytesPerUnit = 64;
/** A part of a multi costs 48 units; a short part has 24 bytes. */
const unitsPerByteOfParts = 2;
/** An entry of an ACL costs two units and has about 16 bytes or more. */
const bytesPerUnitOfAcl = 8;

export class Server {
  readonly #options: CoreOptions;
  readonly #budget: StepBudget;
  readonly #out: ClientOutput;
  readonly #observer: Observer;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #watches: WatchTable;
  readonly #load = new Load();
  readonly #memoryLimits: MemoryLimits;
  readonly #cnxns: CnxnTable;
  readonly #replyWriter: ReplyWriter;
  readonly #authentication: Authentication;
  readonly #permissions: Permissions;
  readonly #handshakes: Handshakes;
  readonly #sequencer: WriteSequencer;
  readonly #readHandler: ReadHandler;
  readonly inspect: Inspector;

  /** A job of more than one step. While it runs, nothing else is applied or answered. */
  #job: Job | undefined;
  /** Whether the job was started from a queue, not directly by an input. */
  #jobFromQueue = false;
  /** The connection whose request the job serves. */
  #jobCnxn: CnxnId = noCnxn;
  /** The write that the job validates; undefined if it validates none. */
  #preparingWrite: WriteOrigin | undefined;
  /** Work done in steps of jobs so far, in units. */
  #jobUnits = 0;
  /**
   * Set while the continuation of a finished job runs. It starts nothing long, so that other
   * connections get their turn before the next job.
   */
  #isCompletingJob = false;
  /** Set while `#advanceQueues` runs. */
  #isAdvancing = false;
  #onJobDone: ((now: Now) => void) | undefined;
  #jobKind: StepKind = 'request';
  /** All input that had arrived by this time has been delivered. */
  #inputWatermarkMs: Millis = -Infinity;
  /** The last txn that has been applied completely. */
  #appliedZxid: Zxid;
  /**
   * Connections whose parked reads need more than one step. No txn is applied before they are
   * answered.
   */
  readonly #replyQueue: Cnxn[] = [];
  /**
   * Work done so far in units, except what replica, order, permissions and reads count themselves;
   * and the amount of work at which this step ends.
   */
  #ownWorkUnits = 0;
  #stepEndUnits = 0;
  readonly #admissionQueue: AdmissionQueue;
  readonly #longWriteQueue = new LongWriteQueue();
  /** Held frames or a long write could be admitted, but the budget of the step is spent. */
  #canResumeAdmission = false;
  /** Placed over frames that were parked or held. */
  readonly #parkedReader = new Reader();
  /** The read being answered. Reads are answered one at a time, so one object serves all. */
  readonly #readRequest: ReadRequest;
  /** Sub-results of the multi being applied. */
  readonly #multiResults = new Writer(256);

  /**
   * @param createSequencer creates the order of the server's writes: `standaloneOrder`, or that of a leader
   * or a learner.
   * @param replica the state that the storage has recovered; by default the server starts empty.
   * @param recordsTouches whether `takeTouched` will be called: another server decides which sessions
   * live.
   */
  constructor(
    options: CoreOptions,
    out: ClientOutput,
    random: Random,
    observer: Observer,
    now: Now,
    createSequencer: OrderFactory,
    replica: Replica = new Replica(replicaOptions(options, random)),
    recordsTouches = false,
  ) {
    this.#options = options;
    this.#budget = new StepBudget(options.stepUnits);
    this.#out = out;
    this.#observer = observer;
    this.#replica = replica;
    this.#appliedZxid = replica.lastZxid;
    this.#tracker = new SessionTracker(options.tickTimeMs, recordsTouches);
    this.#watches = new WatchTable({ hashSeed: random.uint32(), reapedAtOnce: Math.max(1, this.#budget.rows >>> 4) });
    this.#memoryLimits = new MemoryLimits(options, replica.tree, this.#watches, this.#load, observer);
    this.#cnxns = new CnxnTable(out, this.#tracker, this.#watches, this.#load);
    this.#replyWriter = new ReplyWriter(out, observer);
    const registry = new AuthRegistry([
      ipProvider,
      ...(options.digestAuthEnabled ? [digestProvider(options.digestAlgorithm, options.superDigest)] : []),
      ...options.authProviders,
    ]);
    this.#permissions = new Permissions(replica.tree.acls, registry, options.skipAcl);
    this.#authentication = new Authentication(registry, options, this.#cnxns, this.#replyWriter, observer);
    const tracker = this.#tracker;
    const oldestPendingWrite = (high: number, low: number, zxid: Zxid) => this.#oldestPendingWrite(high, low, zxid);
    this.#sequencer = createSequencer(
      { options, replica, tracker, load: this.#load, oldestPendingWrite, registry, permissions: this.#permissions, observer },
      now,
    );
    this.#handshakes = new Handshakes(
      options,
      replica,
      this.#tracker,
      this.#cnxns,
      this.#replyWriter,
      observer,
      now,
      (high, low, timeoutMs, then) => this.#sequencer.revalidate(high, low, timeoutMs, then),
    );
    this.#readHandler = new ReadHandler(
      replica,
      this.#watches,
      this.#cnxns,
      this.#memoryLimits,
      this.#replyWriter,
      registry,
      this.#permissions,
      observer,
      this.#budget,
    );
    this.#admissionQueue = new AdmissionQueue(options, this.#load);
    this.inspect = new ServerInspector(this.#sequencer.role, replica, this.#tracker, this.#watches, this.#cnxns, this.#load);
    const notifier = new WatchNotifier(this.#watches, this.#cnxns, this.#replyWriter, this.#permissions, observer, this.#budget);
    replica.onNotice = (notice) => observer.notice(notice);
    const { namespaces } = replica.tree;
    for (const [id, name] of namespaces.entries()) observer.namespaceAssigned(id, name);
    namespaces.onAssigned = (id, name) => observer.namespaceAssigned(id, name);
    const watches = this.#watches;
    const answers = this.#replyWriter;
    replica.listener = {
      get isListening() {
        return watches.count > 0;
      },
      get workUnits() {
        return answers.workUnits;
      },
      znodeChanged: (path, eventType, zxid, acl, parentAcl) => notifier.znodeChanged(path, eventType, zxid, acl, parentAcl),
      znodeWritten: (namespace, bytes) => observer.znodeWritten(namespace, bytes),
      sessionOpened: (high, low, timeoutMs) => observer.sessionOpened(sessionIdOf(high, low), timeoutMs),
      sessionClosed: (high, low, cxid) => this.#sessionClosed(high, low, cxid),
    };
    const unconnected = new Cnxn(
      noCnxn,
      { remoteAddress: '', remotePort: 0, localPort: 0, secure: false, peerCertificate: undefined },
      new AddressLoad(''),
      now.wallMs,
    );
    this.#readRequest = { cnxn: unconnected, xid: 0, opCode: 0, identities: Identities.none, arrivedMs: 0, now };
    observer.roleChanged(this.#sequencer.role);
  }

  // ---- inputs

  /** A client has connected. Only its address is known so far. */
  connect(id: CnxnId, context: CnxnContext, now: Now): void {
    this.#cnxns.open(id, context, now.wallMs);
    this.#observer.cnxnOpened(id, context);
  }

  /**
   * Takes a frame, without its length; the first frame is the handshake. `reader` is placed over
   * it; its bytes may be reused after the call. A frame that had to wait in the port arrived at
   * `arrivedMs`, and `heard` was called then.
   */
  frame(id: CnxnId, reader: Reader, now: Now, arrivedMs: Millis = now.elapsedMs): void {
    const cnxn = this.#cnxns.get(id);
    // Input of a connection that the server has closed must not have any effect.
    if (cnxn === undefined || cnxn.isClosed) return;
    cnxn.packetsReceived++;
    // Resuming a session costs little, and the session's timeout runs while the handshake waits; so
    // only a long job delays it.
    const resumesSession = cnxn.state === 'new' && cnxn.framesAwaitingAdmission === 0 && !this.isBusy && requestsExistingSession(reader);
    if (this.#mustQueueForAdmission() && !resumesSession) {
      this.#queueForAdmission(cnxn, reader, arrivedMs, now);
      return;
    }
    this.#admit(cnxn, reader, cnxn.identities, arrivedMs, now);
  }

  /**
   * Bytes of a connection have arrived, but no complete frame can be delivered yet. They show that
   * the client is alive: a client whose turn comes late was not silent.
   */
  bytesReceived(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn !== undefined && cnxn.slot !== -1) this.#tracker.touch(cnxn.slot, now.elapsedMs, cnxn.timeoutMs);
  }

  /**
   * A client resumes its session, but its handshake waits for a long job. The session must not
   * expire meanwhile.
   */
  handshakeDelayed(reader: Reader, now: Now): void {
    this.#handshakes.handshakeDelayed(reader, now);
  }

  /**
   * Takes a frame that had arrived when its connection broke and was not delivered before. It shows
   * that the client was alive. A write takes effect; no reply is sent.
   */
  lastFrame(id: CnxnId, reader: Reader, now: Now, arrivedMs: Millis = now.elapsedMs): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.isClosed) return;
    if (this.#mustQueueForAdmission()) {
      this.#queueForAdmission(cnxn, reader, arrivedMs, now);
      return;
    }
    if (cnxn.state !== 'open' || reader.remaining < headerBytes) return;
    const opCode = reader.bytes.readInt32BE(reader.offset + 4);
    if (isWrite(opCode) || opCode === OpCode.auth || opCode === OpCode.sasl) {
      this.#admit(cnxn, reader, cnxn.identities, arrivedMs, now);
    } else if (cnxn.slot !== -1 && arrivedMs === now.elapsedMs) {
      this.#tracker.touch(cnxn.slot, now.elapsedMs, cnxn.timeoutMs);
    }
  }

  /** The client has disconnected, or the server has closed the connection. The session lives on. */
  disconnected(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined) return;
    const reason = cnxn.closeReason;
    const mayKeep = cnxn.state === 'queued' && !this.#options.requestThrottleDropStale;
    const keepsTurn = mayKeep && this.#longWriteQueue.keepsTurn(cnxn);
    if (!keepsTurn) this.#longWriteQueue.remove(cnxn);
    this.#cnxns.remove(cnxn, keepsTurn);
    this.#observer.cnxnClosed(id, reason, cnxn.context, sessionIdOf(cnxn.sessionHigh, cnxn.sessionLow));
    // The requests of this connection no longer count: other connections may get their turn.
    this.#advance(now);
  }

  /** A connection whose output was full has room again: the replies held back for it may follow. */
  drained(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || !cnxn.isOutputFull) return;
    cnxn.isOutputFull = false;
    // A job of another connection may be running.
    this.#replyQueue.push(cnxn);
    this.#advance(now);
  }

  /** All txns sent to the log up to `zxid` are durable. */
  appended(zxid: Zxid, now: Now): void {
    this.#sequencer.appended(zxid);
    this.#advance(now);
  }

  /**
   * Time has passed. All input that had arrived by `heardMs` has been delivered, by `frame` or
   * `heard`. Sessions are judged as of that time, since later input may contain the last sign of
   * life of one.
   */
  wake(now: Now, inputWatermarkMs: Millis = now.elapsedMs): void {
    this.#inputWatermarkMs = inputWatermarkMs;
    this.#advance(now);
    if (this.isBusy) return;
    this.#watches.reap(this.#budget.rows);
    this.#wakeSequencer(now);
  }

  /**
   * When `wake` must be called if no other input comes first, on the monotonic clock; a time in the
   * past means at once.
   */
  deadline(): Millis | undefined {
    if (this.isBusy || this.#watches.hasDeadRows || this.#canResumeAdmission || this.#replyQueue.length > 0 || this.#sequencer.hasCommitted)
      return 0;
    return earlierOf(this.#sequencer.deadline(), this.#admissionQueue.deadline);
  }

  /** An authentication that was decided elsewhere is complete (see `AuthOutcome`, kind `later`). */
  authenticated(ticket: AuthTicket, result: AuthResult, now: Now): void {
    this.#stepEndUnits = this.#stepWorkUnits() + this.#options.stepUnits;
    const cnxn = this.#authentication.complete(ticket, result, now);
    if (cnxn !== undefined) this.#admitDeferred(cnxn, now);
  }

  // ---- inputs of a server in an ensemble

  /** A learner has forwarded a request of one of its clients. */
  forwarded(request: ForwardedRequest, now: Now): void {
    if (!this.#mustQueueForAdmission()) {
      this.#submitForwarded(request, now);
      return;
    }
    this.#load.forwardQueued(request);
    this.#admissionQueue.pushForwarded(request, this.#tracker.moveCountOf(request.sessionHigh, request.sessionLow), now.elapsedMs);
  }

  /**
   * All txns that were committed when a sync was requested have been delivered. The sync is
   * answered when all of them have been applied.
   */
  synced(sync: PendingSync, now: Now): void {
    this.#sequencer.synced(sync);
    this.#replySyncs(now);
    this.#advance(now);
  }

  /**
   * The leader has answered whether a session that a client wants to resume here is alive. All
   * requests that the session sent before, through another server or connection, have a zxid of at
   * most `zxid`.
   */
  revalidated(high: number, low: number, isValid: boolean, zxid: Zxid, now: Now): void {
    this.#stepEndUnits = this.#stepWorkUnits() + this.#options.stepUnits;
    const cnxn = this.#handshakes.revalidated(sessionIdOf(high, low), isValid, now);
    if (cnxn === undefined) return;
    cnxn.resumedAtZxid = zxid;
    this.#admitDeferred(cnxn, now);
  }

  /**
   * A learner asks whether a session is alive, for one of its clients. From here on the session's
   * requests come from that learner.
   */
  validateSession(high: number, low: number, timeoutMs: Millis, owner: SessionOwner, now: Now): boolean {
    const slot = this.#tracker.findLive(high, low);
    this.#observer.sessionValidated(sessionIdOf(high, low), slot !== -1);
    if (slot === -1) return false;
    const older = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    if (older !== undefined) this.#cnxns.close(older, 'session moved');
    this.#tracker.setOwner(slot, owner);
    // The session is on another connection now, even if that is at the same server.
    this.#tracker.countMove(slot);
    const judging = this.#preparingWrite;
    // Its txn comes after the move and must not be taken for a request of the new connection.
    if (judging?.sessionHigh === high && judging.sessionLow === low && judging.owner === owner) judging.owner = previousOwner;
    this.#tracker.touch(slot, now.elapsedMs, Math.max(0, timeoutMs));
    return true;
  }

  /** A learner has reported that a session is alive. */
  touched(high: number, low: number, timeoutMs: Millis, now: Now): void {
    const slot = this.#tracker.findLive(high, low);
    if (slot !== -1) this.#tracker.touch(slot, now.elapsedMs, Math.max(0, timeoutMs));
  }

  /** Visits the sessions that showed a sign of life here since the last call. */
  takeTouched(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    this.#tracker.takeTouched(visit);
  }

  /**
   * Stops serving. The state afterwards is that of the log: txns in the log that have not been
   * applied are applied now, all in one call, since a server that takes part in an election must
   * have the state that its vote states.
   */
  stop(now: Now): void {
    for (const cnxn of this.#cnxns.all()) this.#cnxns.close(cnxn, 'not serving');
    while (this.#job !== undefined) this.#runJob(now);
    this.#replica.listener = silentChangeListener;
    for (const { header, txn, digest } of this.#sequencer.drainUnapplied()) {
      const job = this.#replica.apply(header, txn, digest);
      if (job !== undefined) while (job.next(now).done !== true);
      this.#sequencer.forgetApplied(header.zxid);
    }
  }

  /**
   * Everything that can influence behaviour, for an explorer, except the replica, which its owner
   * writes. Throws an `Error` if part of it cannot be written down: a running job, held frames,
   * long writes that wait, watches.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    if (this.isBusy || !this.#admissionQueue.isEmpty || !this.#longWriteQueue.isEmpty || this.#watches.count > 0) {
      throw new Error('jobs, held frames, long writes that wait, and watches have no fingerprint');
    }
    this.#sequencer.fingerprint(to, now);
    this.#tracker.fingerprint(to, now.elapsedMs);
    this.#handshakes.fingerprint(to);
    to.number(this.#replyQueue.length);
    for (const { id } of this.#replyQueue) to.number(id);
    to.number(this.#cnxns.size);
    const cnxns = [...this.#cnxns.all()].sort((a, b) => a.id - b.id);
    for (const cnxn of cnxns) cnxn.fingerprint(to);
  }

  /** Sets the state of the memory; see `MemoryLimits`. */
  setMemoryState(state: MemoryState, watchesMayGrow: boolean): void {
    this.#memoryLimits.setState(state, watchesMayGrow);
  }

  // ---- questions of the runtime

  /**
   * A long job is running: frames delivered now would only be copied and wait. Call `wake` again
   * soon.
   */
  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /**
   * The connection whose request the running job serves; undefined without a job, or if the request
   * came from no connection of this server.
   */
  get busyCnxn(): CnxnId | undefined {
    return this.#job === undefined || this.#jobCnxn === noCnxn ? undefined : this.#jobCnxn;
  }

  /** Units of work done so far, including those of jobs; see step-budget.ts. */
  get workUnits(): number {
    return this.#stepWorkUnits() + this.#jobUnits;
  }

  /**
   * False while frames of this connection should stay in the port: its handshake is not answered,
   * or too much is outstanding.
   */
  wantsInput(id: CnxnId): boolean {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined) return false;
    if (cnxn.isOutputFull || (cnxn.state !== 'open' && cnxn.state !== 'new')) return false;
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

  /** Memory that the tree holds for future znodes, in bytes. */
  get idleTreeBytes(): number {
    return this.#replica.tree.idleBytes;
  }

  /** Memory that the tree has released since its peak, in bytes. */
  get returnedTreeBytes(): number {
    return this.#replica.tree.releasedBytes;
  }

  /** Whether a snapshot can begin: no txn is partly applied. */
  get canSnapshot(): boolean {
    return !this.isBusy;
  }

  /** Memory of the watches, in bytes. */
  get watchBytes(): number {
    return this.#watches.bytes;
  }

  /**
   * A snapshot of this moment, to be written in slices while requests continue. One at a time. See
   * `SnapshotSource` for `writeLastZxid`.
   */
  snapshot(writeLastZxid = true): SnapshotWriter {
    return this.#replica.snapshot(writeLastZxid);
  }

  /**
   * Expires a session on request of an operator, as if it had timed out. Returns false if there is
   * no such session.
   */
  expireSession(session: SessionId, now: Now): boolean {
    if (!this.#sequencer.expireNow(sessionHigh(session), sessionLow(session))) return false;
    if (!this.isBusy) this.#wakeSequencer(now);
    return true;
  }

  // ---- admit

  #mustQueueForAdmission(): boolean {
    return !this.#admissionQueue.isEmpty || !this.#canAdmit();
  }

  /**
   * Whether a request may be admitted now: no job is running, and the number of outstanding
   * requests is below the limit.
   */
  #canAdmit(): boolean {
    const limit = this.#options.requestThrottleLimit;
    return !this.isBusy && (limit === 0 || this.#load.requests < limit);
  }

  #queueForAdmission(cnxn: Cnxn, reader: Reader, arrivedMs: Millis, now: Now): void {
    const frame = parkFrame(reader.bytes, reader.offset, reader.limit, cnxn.identities, arrivedMs, false);
    this.#reportThrottled();
    this.#admissionQueue.push(cnxn, frame, now.elapsedMs);
    // The client was alive at this time, whenever the request gets its turn.
    if (cnxn.slot !== -1 && arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
  }

  #reportThrottled(): void {
    if (this.#admissionQueue.isEmpty && !this.isBusy) this.#observer.requestThrottled();
  }

  #admitQueued(now: Now): void {
    this.#canResumeAdmission = false;
    while (!this.#admissionQueue.isEmpty && this.#canAdmit()) {
      if (this.#yieldsStep('request')) {
        this.#canResumeAdmission = true;
        return;
      }
      this.#ownWorkUnits += unitsPerRequest;
      const taken = this.#admissionQueue.take(now.elapsedMs);
      if (taken.kind === 'forwarded') {
        const { request, sessionMoves, afterLongWrite } = taken;
        this.#load.forwardTaken(request);
        this.#submitForwarded(request, now, sessionMoves, afterLongWrite !== 'no');
        if (afterLongWrite === 'last') this.#longWriteQueue.resume(request.sessionHigh, request.sessionLow);
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
    if (!this.#admissionQueue.isEmpty && !this.isBusy) this.#observer.requestThrottled();
    this.#admissionQueue.scheduleRetry(now.elapsedMs);
  }

  /**
   * Handles a held request whose connection has closed meanwhile. After a dropped request, no later
   * request of that connection has an effect.
   */
  #onStaleRequest(cnxn: Cnxn, frame: ParkedFrame, now: Now): void {
    const opCode = opCodeOf(frame);
    // A client that closes its session disconnects at once; the closeSession is valid all the same.
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
    if (this.#tracker.findLive(high, low) === -1 || this.#tracker.moveCountOf(high, low) !== cnxn.sessionMoves) return;
    const reader = this.#parkedReader.wrap(bytes, 0, bytes.length);
    const xid = reader.int32();
    const opCode = reader.int32();
    if (!isWrite(opCode)) return;
    if (this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes)) {
      cnxn.hasDroppedRequest = true;
      return;
    }
    const cxid = xid;
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
        arrivedMs,
      },
      reader,
      now,
    );
  }

  /**
   * @param movesAtArrival how often the session had moved when the request arrived, if the request was held.
   * @param isLongWriteTurn for a long write whose turn has come, and for requests that waited for one.
   */
  #submitForwarded(forwarded: ForwardedRequest, now: Now, movesAtArrival?: number, isLongWriteTurn = false): void {
    if (!isLongWriteTurn && this.#maybeQueueForwarded(forwarded, movesAtArrival)) return;
    this.#ownWorkUnits += unitsPerRequest;
    const { record, ...request } = forwarded;
    const { sessionHigh: high, sessionLow: low } = request;
    // The session has since moved to another connection at the same server: the request must not be
    // taken for one of the new connection.
    const isOld =
      movesAtArrival !== undefined &&
      this.#tracker.moveCountOf(high, low) !== movesAtArrival &&
      this.#tracker.isOwnedBy(high, low, request.owner);
    const owner = isOld ? previousOwner : request.owner;
    const origin: WriteOrigin = { kind: 'write', cnxn: noCnxn, ...request, owner, heldBytes: 0, frameBytes: 0 };
    const reader = this.#parkedReader.wrap(record, 0, record.length);
    if (request.opCode === OpCode.createSession && this.#isSessionCreation(origin, reader))
      this.#sequencer.openSession(origin, reader.int32(), now);
    else this.#submitWrite(origin, reader, now);
  }

  /**
   * Whether this is the createSession of a learner for a new session. A createSession that a client
   * of a ZooKeeper server sends as an ordinary request comes the same way, with any record: it is
   * judged like any other unknown request.
   */
  #isSessionCreation({ sessionHigh: high, sessionLow: low }: WriteOrigin, reader: Reader): boolean {
    if (reader.remaining < int32Bytes || (high === 0 && low === 0) || this.#tracker.find(high, low) !== -1) return false;
    return reader.bytes.readInt32BE(reader.offset) > 0;
  }

  // ---- long writes

  /** Units that it takes to validate a write, if that is more than a step; otherwise 0. */
  #longWriteUnits(opCode: number, bytes: number): number {
    const stepUnits = this.#budget.units;
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

  /** A request of an unknown session does not wait, however long it is: it is refused. */
  #maybeQueueForwarded(request: ForwardedRequest, movesBefore: number | undefined): boolean {
    const { sessionHigh: high, sessionLow: low, opCode, record } = request;
    const long = this.#longWriteUnits(opCode, record.length);
    const units = long > 0 && this.#tracker.find(high, low) !== -1 ? long : 0;
    if (!(units > 0 && this.#mustQueueLongWrite()) && !this.#longWriteQueue.hasRequestsOf(high, low)) {
      if (units > 0) this.#longWriteQueue.chargeStarted(request, units);
      return false;
    }
    this.#load.forwardQueued(request);
    if (units > 0) this.#observer.longWriteQueued(true);
    this.#longWriteQueue.pushForwarded({ request, sessionMoves: movesBefore ?? this.#tracker.moveCountOf(high, low), units });
    return true;
  }

  #queueLongWrite(cnxn: Cnxn, frame: ParkedFrame, units: number): void {
    this.#observer.longWriteQueued(false);
    cnxn.deferredFrames.push(frame);
    cnxn.state = 'queued';
    this.#longWriteQueue.push(cnxn, units);
  }

  /** Starts long writes while the limits allow. */
  #startLongWrites(now: Now): void {
    if (this.#longWriteQueue.isEmpty) return;
    // However many short writes were admitted before, they were a step's work at most.
    this.#extendBudget();
    while (!this.#longWriteQueue.isEmpty && !this.isBusy && this.#canStartLongWrite()) {
      if (this.#yieldsStep('request')) {
        this.#canResumeAdmission = true;
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
    if (!cnxn.isClosed) this.#admitDeferred(cnxn, now);
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
    this.#canResumeAdmission = true;
  }

  #startForwardedWrite([first, ...others]: readonly QueuedForward[], now: Now): void {
    this.#load.forwardTaken(first!.request);
    if (others.length > 0) {
      this.#admissionQueue.requeueForwarded(others, now.elapsedMs);
      this.#canResumeAdmission = true;
    }
    this.#submitForwarded(first!.request, now, first!.sessionMoves, true);
  }

  #admitParked(cnxn: Cnxn, frame: ParkedFrame, now: Now, isLongWriteTurn = false): void {
    const reader = this.#parkedReader.wrap(frame.bytes, 0, frame.bytes.length);
    this.#admit(cnxn, reader, frame.identities, frame.arrivedMs, now, frame.isThrottled, isLongWriteTurn);
  }

  #admit(
    cnxn: Cnxn,
    reader: Reader,
    identities: Identities,
    arrivedMs: Millis,
    now: Now,
    throttled = false,
    isLongWriteTurn = false,
  ): void {
    const start = reader.offset;
    switch (cnxn.state) {
      case 'new':
        this.#handshake(cnxn, reader, now);
        return;
      case 'opening':
      case 'parked':
      case 'queued':
        cnxn.deferredFrames.push(this.#parkedFrame(cnxn, reader, start, identities, arrivedMs, throttled));
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
    const xid = reader.int32();
    const opCode = reader.int32();
    // A session that is closing accepts no more requests. Its connection is closed when the
    // closeSession is applied.
    if (cnxn.slot === -1 || this.#tracker.isClosing(cnxn.slot)) return;
    // A held frame counted as a sign of life when it arrived; its client may be dead by now.
    if (arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
    const units = isLongWriteTurn ? 0 : this.#longWriteUnits(opCode, reader.remaining);
    // A write that must wait is queued; one that the limits refuse is refused below.
    if (units > 0 && this.#mustQueueLongWrite() && !this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes)) {
      this.#queueLongWrite(cnxn, this.#parkedFrame(cnxn, reader, start, identities, arrivedMs, throttled), units);
      return;
    }
    if (units > 0) this.#longWriteQueue.chargeStarted(cnxn, units);
    this.#observer.admitted(cnxn.id, opCode, reader.limit - start + 4, now.elapsedMs - arrivedMs);

    if (opCode === OpCode.auth || opCode === OpCode.sasl) {
      // Credentials are hashed, and identities added.
      this.#ownWorkUnits += unitsPerCredentials + reader.remaining / hashedBytesPerUnit;
      this.#authentication.authenticate(cnxn, opCode, xid, reader, now);
      return;
    }
    if (!this.#authentication.isAuthenticated(identities)) {
      this.#authentication.rejectUnauthenticated(cnxn, opCode, xid, now);
      return;
    }
    if (isWrite(opCode)) {
      const isRefused = throttled || this.#memoryLimits.rejects(opCode, reader, this.#sequencer.queuedBytes);
      // Report it now: the connection may be closed before the reply is sent.
      if (isRefused) this.#observer.requestRejected(cnxn.id, opCode, ErrorCode.ThrottledOp);
      if (isRefused) this.#readOrPark(cnxn, reader, start, identities, arrivedMs, true, now);
      else this.#write(cnxn, opCode, xid, reader, identities, arrivedMs, now);
      return;
    }
    if (opCode === OpCode.sync && !throttled && !this.#sequencer.isCaughtUp) {
      this.#sync(cnxn, this.#parkedFrame(cnxn, reader, start, identities, arrivedMs, throttled), now);
      return;
    }
    this.#readOrPark(cnxn, reader, start, identities, arrivedMs, throttled, now);
  }

  #sync(cnxn: Cnxn, frame: ParkedFrame, now: Now): void {
    const { id, sessionHigh: high, sessionLow: low } = cnxn;
    const heldBytes = this.#sequencer.forwardsToLeader ? frame.identities.bytes : 0;
    const sync: PendingSync = { kind: 'sync', cnxn: id, sessionHigh: high, sessionLow: low, frame, heldBytes, isDone: false };
    cnxn.pendingRequests.push(sync);
    this.#load.syncQueued(sync, cnxn.addressLoad);
    this.#sequencer.sync(sync, now);
  }

  #replySyncs(now: Now): void {
    const applied = this.#appliedZxid;
    for (let sync = this.#sequencer.takeSynced(applied); sync !== undefined; sync = this.#sequencer.takeSynced(applied)) {
      sync.isDone = true;
      const cnxn = this.#cnxns.get(sync.cnxn);
      if (cnxn === undefined || cnxn.pendingRequests.peek() !== sync) continue;
      if (this.isBusy || !this.#isAdvancing) this.#replyQueue.push(cnxn);
      else this.#answerPendingReads(cnxn, now);
    }
  }

  /**
   * Session order: a read waits while an earlier request of its connection is unanswered; otherwise
   * it is answered at once.
   */
  #readOrPark(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean, now: Now): void {
    if (cnxn.pendingRequests.length > 0) this.#park(cnxn, reader, start, identities, arrivedMs, throttled);
    else this.#read(cnxn, reader, start, identities, arrivedMs, throttled, now);
  }

  #park(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean): void {
    reader.offset = start + int32Bytes;
    const opCode = reader.int32();
    const isLong = this.#isLong(opCode, reader);
    if (isLong) cnxn.pendingLongReadCount++;
    cnxn.pendingRequests.push(this.#parkedFrame(cnxn, reader, start, identities, arrivedMs, throttled, isLong));
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

  #parkedFrame(
    cnxn: Cnxn,
    reader: Reader,
    start: number,
    identities: Identities,
    arrivedMs: Millis,
    throttled: boolean,
    isLong = false,
  ): ParkedFrame {
    const frame = parkFrame(reader.bytes, start, reader.limit, identities, arrivedMs, throttled, isLong);
    this.#load.parked(frame, cnxn.addressLoad);
    return frame;
  }

  #read(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean, now: Now): void {
    reader.offset = start;
    const xid = reader.int32();
    const opCode = reader.int32();
    if (throttled && opCode !== OpCode.ping) {
      if (!isWrite(opCode)) this.#observer.requestRejected(cnxn.id, opCode, ErrorCode.ThrottledOp);
      this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, this.#replica.lastZxid, ErrorCode.ThrottledOp, arrivedMs, now.elapsedMs, false);
      return;
    }
    const request = this.#readRequest;
    request.cnxn = cnxn;
    request.xid = xid;
    request.opCode = opCode;
    request.identities = identities;
    request.arrivedMs = arrivedMs;
    request.now = now;
    const job = this.#readHandler.handle(request, reader);
    if (job !== undefined) this.#startJob(job, cnxn.id, (later) => this.#answerPendingReads(cnxn, later));
  }

  // ---- writes

  #oldestPendingWrite(high: number, low: number, zxid: Zxid): WriteOrigin | undefined {
    const slot = this.#tracker.find(high, low);
    if (slot === -1) return undefined;
    const cnxn = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    // It belongs to an older connection of the session, which may have used the same xids.
    if (cnxn === undefined || zxid <= cnxn.resumedAtZxid) return undefined;
    const head = cnxn.pendingRequests.peek();
    return head?.kind === 'write' ? head : undefined;
  }

  #write(cnxn: Cnxn, opCode: number, xid: number, reader: Reader, identities: Identities, arrivedMs: Millis, now: Now): void {
    const { id, sessionHigh: high, sessionLow: low } = cnxn;
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
      arrivedMs,
    };
    this.#enqueue(cnxn, origin);
    this.#submitWrite(origin, reader, now);
  }

  #enqueue(cnxn: Cnxn, origin: WriteOrigin): void {
    cnxn.pendingRequests.push(origin);
    cnxn.pendingWriteCount++;
    this.#load.writeQueued(origin, cnxn.addressLoad);
    if (!cnxn.isOutputFull) return;
    cnxn.isOutputFull = false;
    this.#replyQueue.push(cnxn);
  }

  #submitWrite(origin: WriteOrigin, reader: Reader, now: Now): void {
    this.#ownWorkUnits += writeUnits(origin.opCode, reader.remaining);
    const job = this.#sequencer.submitWrite(origin, reader, now);
    if (job === undefined) return;
    this.#startJob(job, origin.cnxn, noop);
    this.#preparingWrite = origin;
  }

  /** Continues the running job, then applies txns of the log, then admits requests that waited. */
  #advance(now: Now): void {
    this.#stepEndUnits = this.#stepWorkUnits() + this.#budget.units;
    this.#isAdvancing = true;
    this.#advanceQueues(now);
    this.#isAdvancing = false;
  }

  #advanceQueues(now: Now): void {
    if (this.isBusy) {
      const waited = this.#jobFromQueue;
      if (!this.#runJob(now)) return;
      this.#expireSessions(now);
      if (this.isBusy) return;
      // Requests that waited and new input take turns: after a job from a queue, connections with
      // new input are served, or a few clients with expensive requests would have the server to
      // themselves; after any other job, the queues are served.
      if (waited) {
        this.#canResumeAdmission = !this.#admissionQueue.isEmpty || (!this.#longWriteQueue.isEmpty && this.#canStartLongWrite());
        return;
      }
    }
    while (this.#replyQueue.length > 0) {
      if (this.#yieldsStep('request')) return;
      this.#answerPendingReads(this.#replyQueue.shift()!, now);
      if (this.isBusy) return;
    }
    while (this.#sequencer.hasCommitted) {
      if (this.#yieldsStep('commit')) return;
      this.#apply(this.#sequencer.takeCommitted(), now);
      // No later write may be answered before an unanswered read of the same connection.
      if (this.isBusy || this.#replyQueue.length > 0) return;
    }
    this.#admitQueued(now);
    this.#startLongWrites(now);
  }

  #stepWorkUnits(): number {
    return (
      this.#ownWorkUnits + this.#sequencer.workUnits + this.#replica.workUnits + this.#permissions.workUnits + this.#readHandler.workUnits
    );
  }

  readonly #isBudgetSpent = (): boolean => this.#stepWorkUnits() >= this.#stepEndUnits;

  /** Ends the step if its budget is spent. Call it only where work of this kind is left. */
  #yieldsStep(kind: StepKind): boolean {
    if (!this.#isBudgetSpent()) return false;
    this.#observer.stepYielded(kind);
    return true;
  }

  #apply(proposal: Proposal, now: Now): void {
    const { header, txn, node, digest } = proposal;
    this.#multiResults.clear();
    this.#ownWorkUnits += unitsPerTxn + changeCountOf(txn) * unitsPerChange;
    const job = this.#replica.apply(header, txn, digest, this.#multiResults, node);
    if (job === undefined) {
      this.#sequencer.forgetApplied(header.zxid);
      this.#applied(proposal, now);
    } else {
      this.#startJob(this.#applying(job, header.zxid), proposal.origin.cnxn, (later) => this.#applied(proposal, later), 'commit');
    }
  }

  *#applying(job: Job, zxid: Zxid): Job {
    yield* job;
    while (!this.#sequencer.forgetApplied(zxid, this.#budget.records)) yield;
  }

  #applied(proposal: Proposal, now: Now): void {
    this.#appliedZxid = proposal.zxid;
    this.#replyToWrite(proposal, now);
    this.#replySyncs(now);
  }

  #replyToWrite(proposal: Proposal, now: Now): void {
    const { zxid, header, txn, origin } = proposal;
    const error = txn.kind === 'error' ? txn.err : ErrorCode.Ok;
    this.#observer.applied(zxid, header.type, error, now.wallMs - header.time);
    const cnxn = this.#cnxns.get(origin.cnxn);
    // The connection may be closed by now, and its id may have been reused.
    if (cnxn === undefined || cnxn.pendingRequests.peek() !== origin) return;
    cnxn.pendingRequests.shift();
    cnxn.pendingWriteCount--;
    this.#load.writeDone(origin, cnxn.addressLoad);
    this.#reply(cnxn, proposal, error, now);
    if (isCloseSession(origin)) this.#cnxns.close(cnxn, 'closed by the client');
    this.#answerPendingReads(cnxn, now);
  }

  #reply(cnxn: Cnxn, proposal: Proposal, error: number, now: Now): void {
    const { zxid, origin } = proposal;
    const { opCode, cxid, arrivedMs } = origin;
    if (error === ErrorCode.SessionMoved) {
      // The client is connected to another server by now and must not receive this error.
      this.#cnxns.close(cnxn, 'session moved');
      return;
    }
    if (opCode === OpCode.createSession) {
      this.#handshakes.sessionCreated(cnxn, arrivedMs, now);
      this.#admitDeferred(cnxn, now);
      return;
    }
    const answers = this.#replyWriter;
    const writer = answers.begin(cnxn, cxid, zxid, error);
    writeResult(writer, proposal, this.#replica, this.#multiResults);
    answers.end(cnxn, writer, opCode, cxid, zxid, error, arrivedMs, now.elapsedMs, true);
  }

  /** Answers the reads that waited for the request just answered, up to the next write. */
  #answerPendingReads(cnxn: Cnxn, now: Now): void {
    while (!this.isBusy && !cnxn.isClosed) {
      const next = cnxn.pendingRequests.peek();
      if (next === undefined || next.kind === 'write' || (next.kind === 'sync' && !next.isDone)) return;
      if (this.#isCompletingJob || this.#yieldsStep('request')) {
        this.#replyQueue.push(cnxn);
        return;
      }
      // Many small requests may have large replies. They need not all be in memory at once, unless
      // a write follows them: they must not see its effect.
      if (cnxn.pendingWriteCount === 0) {
        cnxn.isOutputFull = this.#out.isFull(cnxn.id);
        if (cnxn.isOutputFull) return;
      }
      this.#ownWorkUnits += unitsPerRequest;
      cnxn.pendingRequests.shift();
      const frame = next.kind === 'sync' ? next.frame : next;
      if (next.kind === 'sync') this.#load.syncDone(next, cnxn.addressLoad);
      this.#load.unparked(frame, cnxn.addressLoad);
      if (frame.isLong) cnxn.pendingLongReadCount--;
      const reader = this.#parkedReader.wrap(frame.bytes, 0, frame.bytes.length);
      this.#read(cnxn, reader, 0, frame.identities, frame.arrivedMs, frame.isThrottled, now);
    }
  }

  /**
   * Admits the frames that arrived before the connection was ready for them, before its held
   * frames.
   */
  #admitDeferred(cnxn: Cnxn, now: Now): void {
    const early = cnxn.deferredFrames.takeAll();
    for (const frame of early) this.#load.unparked(frame, cnxn.addressLoad);
    for (const [at, frame] of early.entries()) {
      if (!this.#canAdmit() || this.#isBudgetSpent()) {
        this.#reportThrottled();
        this.#admissionQueue.requeue(cnxn, early.slice(at), now.elapsedMs);
        this.#canResumeAdmission = this.#canAdmit();
        return;
      }
      this.#ownWorkUnits += unitsPerRequest;
      // An earlier frame may have authenticated the client.
      this.#admitParked(cnxn, { ...frame, identities: cnxn.identities }, now);
    }
  }

  #startJob(job: Job, cnxn: CnxnId, then: (now: Now) => void, kind: StepKind = 'request'): void {
    this.#job = job;
    this.#jobCnxn = cnxn;
    this.#jobFromQueue = this.#isAdvancing;
    this.#jobUnits += this.#budget.units;
    this.#onJobDone = then;
    this.#jobKind = kind;
    this.#observer.jobBegan();
    this.#observer.stepYielded(kind);
  }

  /** Runs the next step of the current job. Returns whether no job is left. */
  #runJob(now: Now): boolean {
    if (this.#job === undefined) return true;
    this.#jobUnits += this.#budget.units;
    if (this.#job.next(now).done !== true) {
      this.#observer.stepYielded(this.#jobKind);
      return false;
    }
    const then = this.#onJobDone!;
    this.#job = undefined;
    this.#onJobDone = undefined;
    this.#preparingWrite = undefined;
    this.#observer.jobEnded();
    this.#isCompletingJob = true;
    then(now);
    this.#isCompletingJob = false;
    return !this.isBusy;
  }

  /**
   * Clients can keep a server busy with long work. A session that is due expires before the next
   * job starts.
   */
  #expireSessions(now: Now): void {
    this.#extendBudget();
    const job = this.#sequencer.expireSessions(now, this.#inputWatermarkMs, this.#isBudgetSpent);
    if (job !== undefined) this.#startJob(job, noCnxn, noop);
  }

  /** Work that was done earlier in this step must not delay the expiry of sessions. */
  #extendBudget(): void {
    this.#stepEndUnits = Math.max(this.#stepEndUnits, this.#stepWorkUnits() + this.#budget.units / 4);
  }

  // ---- sessions

  #handshake(cnxn: Cnxn, reader: Reader, now: Now): void {
    const outcome = this.#handshakes.request(cnxn, reader, now);
    if (outcome.kind === 'create') {
      this.#enqueue(cnxn, outcome.origin);
      this.#sequencer.openSession(outcome.origin, cnxn.timeoutMs, now);
    } else if (outcome.kind === 'taken up') {
      this.#admitDeferred(cnxn, now);
    }
  }

  #wakeSequencer(now: Now): void {
    this.#extendBudget();
    const job = this.#sequencer.wake(now, this.#inputWatermarkMs, this.#isBudgetSpent);
    if (job !== undefined) this.#startJob(job, noCnxn, noop);
  }

  /** A closeSession has been applied, whichever server received it. */
  #sessionClosed(high: number, low: number, cxid: number): void {
    const slot = this.#tracker.find(high, low);
    if (slot === -1) return;
    const cnxn = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    const timeoutMs = this.#tracker.timeoutMs(slot);
    this.#tracker.remove(slot);
    // The client may be gone.
    this.#observer.sessionClosed(sessionIdOf(high, low), cxid === 0, timeoutMs, cnxn?.context);
    if (cnxn === undefined) return;
    cnxn.slot = -1;
    // A client that sent this closeSession here still gets its reply. A client that sent another
    // one, through a server that the session has left, never would.
    const waitsForReply = cnxn.pendingRequests.some((one) => one.kind === 'write' && isCloseSession(one) && one.cxid === cxid);
    if (!waitsForReply) this.#cnxns.close(cnxn, 'session expired');
  }
}

function noop(): void {}

/**
 * The cost of validating a write beyond the fixed cost of a request: parts of a multi and entries
 * of an ACL are short but expensive.
 */
function writeUnits(opCode: number, bytes: number): number {
  if (opCode === OpCode.multi) return bytes * unitsPerByteOfParts;
  return bytes / (opCode === OpCode.setACL ? bytesPerUnitOfAcl : bytesPerUnit);
}

function opCodeOf({ bytes }: ParkedFrame): number | undefined {
  return bytes.length < headerBytes ? undefined : bytes.readInt32BE(4);
}
