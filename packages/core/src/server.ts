/**
 * Serves clients, whatever the role of this peer: one method per input; output to clients goes to
 * `ClientOutput`.
 *
 * The path of a request, top to bottom:
 *
 *     frame             request/admission.ts      starts it at once, or when its turn comes
 *     read              request/session-queue.ts  waits for earlier writes of its connection
 *                       request/read-handler.ts   answers it
 *     write             request/local-sequencer.ts, or request/leader-forwarder.ts at a learner
 *                                                 validates it, gives it a zxid, and logs its txn
 *     appended          request/commit-applier.ts applies the txn to request/replica.ts, sends the
 *                                                 watch events and the reply
 *                       request/session-queue.ts  answers the reads that waited for it
 *
 * request/step-scheduler.ts interrupts whatever takes longer than a step.
 */
import { type Millis, OpCode, type Reader, type SessionId, type Zxid } from '@tskeeper/protocol';
import { clientPortService } from '@tskeeper/protocol/internal';
import { AuthRegistry, type AuthResult, type AuthTicket } from './auth/auth-provider.ts';
import { Authentication } from './request/authentication.ts';
import { DigestMd5Mechanism } from './auth/digest-md5.ts';
import { digestProvider } from './auth/digest-provider.ts';
import { ensembleProvider } from './auth/ensemble-provider.ts';
import { ipProvider } from './auth/ip-provider.ts';
import { Permissions } from './auth/permissions.ts';
import type { ClientFront } from './client-front.ts';
import type { ClientOutput, CnxnId, SessionOwner } from './client-output.ts';
import type { CnxnContext } from './cnxn-context.ts';
import { ConnectionShedder } from './cnxn/connection-shedder.ts';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { Inspector } from './inspector.ts';
import type { Now } from './now.ts';
import type { Observer } from './observer.ts';
import type { CoreOptions } from './options.ts';
import type { Random } from './random.ts';
import { Admission } from './request/admission.ts';
import { CommitApplier } from './request/commit-applier.ts';
import { Load } from './pending/load.ts';
import { earlierOf, type SequencerFactory } from './request/local-sequencer.ts';
import { MemoryLimits, type MemoryState } from './request/memory-limits.ts';
import type { PendingSync } from './pending/pending-request.ts';
import { type ForwardedRequest, isWrite, noCnxn } from './pending/proposal.ts';
import { OperatorRequests } from './request/operator-requests.ts';
import { ReadHandler } from './request/read-handler.ts';
import { Replica, replicaOptions, silentChangeListener } from './request/replica.ts';
import { ReplicaListener } from './request/replica-listener.ts';
import { ReplyWriter } from './request/reply-writer.ts';
import { SessionQueue } from './request/session-queue.ts';
import { StepBudget } from './step-budget.ts';
import { StepScheduler } from './request/step-scheduler.ts';
import { WatchNotifier } from './request/watch-notifier.ts';
import type { WriteSequencer } from './request/write-sequencer.ts';
import { ServerInspector } from './server-inspector.ts';
import { Handshakes, requestsExistingSession } from './request/handshake.ts';
import { LocalSessions } from './request/local-sessions.ts';
import { ForeignSessions } from './session/foreign-sessions.ts';
import { idOfSession, type SessionRef, sessionRefOf } from './session/session-ref.ts';
import { previousOwner, SessionTracker } from './session/session-tracker.ts';
import type { SnapshotWriter } from './snapshot/snapshot-writer.ts';
import { WatchTable } from './tree/watch-table.ts';

const headerBytes = 8;

export class Server implements ClientFront {
  readonly isHolding = false;
  readonly #budget: StepBudget;
  readonly #observer: Observer;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #watches: WatchTable;
  readonly #memoryLimits: MemoryLimits;
  readonly #cnxns: CnxnTable;
  readonly #shedder: ConnectionShedder;
  readonly #authentication: Authentication;
  readonly #handshakes: Handshakes;
  readonly #localSessions: LocalSessions;
  readonly #sequencer: WriteSequencer;
  readonly #scheduler: StepScheduler;
  readonly #sessionQueue: SessionQueue;
  readonly #admission: Admission;
  readonly #applier: CommitApplier;
  readonly inspect: Inspector;
  /** All input that had arrived by this time has been delivered. */
  #inputWatermarkMs: Millis = -Infinity;

  /**
   * @param createSequencer creates the sequencer of the server's writes: `standaloneSequencer`, or
   * the factory of a leader or a learner.
   * @param replica the state that the storage has recovered; by default the server starts empty.
   * @param recordsTouches whether `takeTouched` will be called: another server decides which
   * sessions live.
   */
  constructor(
    options: CoreOptions,
    out: ClientOutput,
    random: Random,
    observer: Observer,
    now: Now,
    createSequencer: SequencerFactory,
    replica: Replica = new Replica(replicaOptions(options, random)),
    recordsTouches = false,
  ) {
    const budget = new StepBudget(options.stepUnits);
    const hasLocalSessions = options.localSessions !== 'disabled';
    const foreign = hasLocalSessions && !recordsTouches ? new ForeignSessions(options.serverId) : undefined;
    const tracker = new SessionTracker(options.tickTimeMs, recordsTouches, foreign);
    const watches = new WatchTable({ hashSeed: random.uint32(), reapedAtOnce: Math.max(1, budget.rows >>> 4) });
    const load = new Load();
    const memoryLimits = new MemoryLimits(options, replica.tree, watches, load, observer);
    const cnxns = new CnxnTable(out, tracker, watches, load);
    const replyWriter = new ReplyWriter(out, observer);
    const registry = new AuthRegistry([
      ipProvider,
      ...(options.digestAuthEnabled ? [digestProvider(options.digestAlgorithm, options.superDigest)] : []),
      ...(options.ensembleAuth === undefined ? [] : [ensembleProvider(options.ensembleAuth.names, observer)]),
      ...options.authProviders,
    ]);
    const permissions = new Permissions(replica.tree.acls, registry, options.skipAcl);
    const sasl = options.sasl === undefined ? undefined : new DigestMd5Mechanism({ service: clientPortService, ...options.sasl, random });
    const authentication = new Authentication(registry, sasl, options, cnxns, replyWriter, observer);
    const sequencer = createSequencer({ options, replica, tracker, cnxns, load, registry, permissions, observer }, now);
    const idSalt = hasLocalSessions ? random.uint32() : 0;
    const handshakes = new Handshakes(options, replica, tracker, cnxns, replyWriter, observer, now, sequencer, idSalt);
    const shedder = new ConnectionShedder(cnxns, random, observer);
    const operatorRequests = new OperatorRequests(replica, permissions, sequencer, shedder);
    const readHandler = new ReadHandler(
      replica,
      watches,
      cnxns,
      memoryLimits,
      replyWriter,
      registry,
      permissions,
      observer,
      budget,
      operatorRequests,
      options,
      sequencer,
    );
    const scheduler = new StepScheduler(budget, observer, sequencer, replica, permissions, readHandler);
    const localSessions = new LocalSessions({ options, observer, tracker, cnxns, replica, replyWriter, sequencer, scheduler });
    const sessionQueue = new SessionQueue(
      out,
      observer,
      cnxns,
      load,
      replica,
      readHandler,
      replyWriter,
      sequencer,
      scheduler,
      localSessions,
      now,
    );
    const shared = {
      options,
      budget,
      observer,
      cnxns,
      tracker,
      load,
      replica,
      replyWriter,
      handshakes,
      localSessions,
      sequencer,
      sessionQueue,
      scheduler,
    };
    const admission = new Admission({ ...shared, memoryLimits, authentication }, now);
    this.#budget = budget;
    this.#observer = observer;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#watches = watches;
    this.#memoryLimits = memoryLimits;
    this.#cnxns = cnxns;
    this.#shedder = shedder;
    this.#authentication = authentication;
    this.#handshakes = handshakes;
    this.#localSessions = localSessions;
    this.#sequencer = sequencer;
    this.#scheduler = scheduler;
    this.#sessionQueue = sessionQueue;
    this.#admission = admission;
    this.#applier = new CommitApplier({ ...shared, admission });
    this.inspect = new ServerInspector(sequencer.role, replica, tracker, watches, cnxns, load, hasLocalSessions);
    const notifier = new WatchNotifier(watches, cnxns, replyWriter, permissions, observer, budget);
    replica.onNotice = (notice) => observer.notice(notice);
    const { namespaces } = replica.tree;
    for (const [id, name] of namespaces.entries()) observer.namespaceAssigned(id, name);
    namespaces.onAssigned = (id, name) => observer.namespaceAssigned(id, name);
    replica.listener = new ReplicaListener({ watches, cnxns, tracker, replyWriter, notifier, observer });
    observer.roleChanged(sequencer.role);
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
   * `arrivedMs`, and `bytesReceived` was called then.
   */
  frame(id: CnxnId, reader: Reader, now: Now, arrivedMs: Millis = now.elapsedMs): void {
    const cnxn = this.#cnxns.get(id);
    // Input of a connection that the server has closed must not have any effect.
    if (cnxn === undefined || cnxn.isClosed) return;
    cnxn.packetsReceived++;
    // Resuming a session costs little, and the session's timeout runs while the handshake waits; so
    // only a long job delays it.
    const resumesSession = cnxn.state === 'new' && cnxn.framesAwaitingAdmission === 0 && !this.isBusy && requestsExistingSession(reader);
    if (this.#admission.mustQueue && !resumesSession) {
      this.#admission.queue(cnxn, reader, arrivedMs, now);
      return;
    }
    this.#admission.admit(cnxn, reader, arrivedMs, now);
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
    if (this.#admission.mustQueue) {
      this.#admission.queue(cnxn, reader, arrivedMs, now);
      return;
    }
    if (cnxn.state !== 'open' || reader.remaining < headerBytes) return;
    const opCode = reader.bytes.readInt32BE(reader.offset + 4);
    if (isWrite(opCode) || opCode === OpCode.auth || opCode === OpCode.sasl) {
      this.#admission.admit(cnxn, reader, arrivedMs, now);
    } else if (cnxn.slot !== -1 && arrivedMs === now.elapsedMs) {
      this.#tracker.touch(cnxn.slot, now.elapsedMs, cnxn.timeoutMs);
    }
  }

  /** The client has disconnected, or the server has closed the connection. The session lives on. */
  disconnected(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined) return;
    const reason = cnxn.closeReason;
    const keepsTurn = this.#admission.disconnected(cnxn);
    this.#cnxns.remove(cnxn, keepsTurn);
    this.#observer.cnxnClosed(id, reason, cnxn.context, cnxn.session);
    // The requests of this connection no longer count: other connections may get their turn.
    this.#advance(now);
  }

  /** A connection whose output was full has room again: the replies held back for it may follow. */
  drained(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || !cnxn.isOutputFull) return;
    cnxn.isOutputFull = false;
    // A job of another connection may be running.
    this.#sessionQueue.queueReplies(cnxn);
    this.#advance(now);
  }

  /** All txns sent to the log up to `zxid` are durable. */
  appended(zxid: Zxid, now: Now): void {
    this.#sequencer.appended(zxid);
    this.#advance(now);
  }

  /**
   * Time has passed. All input that had arrived by `inputWatermarkMs` has been delivered, by
   * `frame` or `bytesReceived`. Sessions expire as of that time, since later input may contain the
   * last sign of life of one.
   */
  wake(now: Now, inputWatermarkMs: Millis = now.elapsedMs): void {
    this.#inputWatermarkMs = inputWatermarkMs;
    this.#advance(now);
    if (this.isBusy) return;
    this.#watches.reap(this.#budget.rows);
    this.#expireLocalSessions();
    this.#shedder.wake(now);
    this.#wakeSequencer(now);
  }

  /**
   * When `wake` must be called if no other input comes first, on the monotonic clock; a time in the
   * past means at once.
   */
  deadline(): Millis | undefined {
    if (
      this.isBusy ||
      this.#watches.hasDeadRows ||
      this.#admission.canResume ||
      this.#sessionQueue.hasReplies ||
      this.#sequencer.hasCommitted
    )
      return 0;
    const waiting = earlierOf(this.#localSessions.deadline(), this.#shedder.deadline());
    return earlierOf(earlierOf(this.#sequencer.deadline(), waiting), this.#admission.deadline);
  }

  /** An authentication that was decided elsewhere is complete (see `AuthOutcome`, kind `later`). */
  authenticated(ticket: AuthTicket, result: AuthResult, now: Now): void {
    this.#scheduler.startStep();
    const cnxn = this.#authentication.complete(ticket, result, now);
    if (cnxn !== undefined) this.#admission.admitDeferred(cnxn, now);
  }

  // ---- inputs of a server in an ensemble

  /** A learner has forwarded a request of one of its clients. */
  forwarded(request: ForwardedRequest, now: Now): void {
    this.#admission.forwarded(request, now);
  }

  /**
   * All txns that were committed when a sync was requested have been delivered. The sync is
   * answered when all of them have been applied.
   */
  synced(sync: PendingSync, now: Now): void {
    this.#sequencer.synced(sync);
    this.#sessionQueue.replySyncs(now);
    this.#advance(now);
  }

  /**
   * The leader has answered whether a session that a client wants to resume here is alive. All
   * requests that the session sent before, through another server or connection, have a zxid of at
   * most `zxid`.
   */
  revalidated(session: SessionRef, isValid: boolean, zxid: Zxid, now: Now): void {
    this.#scheduler.startStep();
    const cnxn = this.#handshakes.revalidated(idOfSession(session), isValid, now);
    if (cnxn === undefined) return;
    cnxn.resumedAtZxid = zxid;
    this.#admission.admitDeferred(cnxn, now);
  }

  /**
   * A learner asks whether a session is alive, for one of its clients. From here on the session's
   * requests come from that learner.
   */
  validateSession(session: SessionRef, timeoutMs: Millis, owner: SessionOwner, now: Now): boolean {
    const { sessionHigh: high, sessionLow: low } = session;
    // A local session of this server is not known elsewhere: its client must come back.
    const slot = this.#tracker.findLiveGlobal(high, low);
    this.#observer.sessionValidated(idOfSession(session), slot !== -1);
    if (slot === -1) return false;
    const older = this.#cnxns.get(this.#tracker.sessions.cnxnOf(slot));
    if (older !== undefined) this.#cnxns.close(older, 'session moved');
    this.#tracker.setOwner(slot, owner);
    // The session is on another connection now, even if that is at the same server.
    this.#tracker.countMove(slot);
    const judging = this.#sequencer.preparingWrite;
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
    while (!this.#scheduler.runJob(now));
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
    if (this.isBusy || !this.#admission.isIdle || this.#watches.count > 0) {
      throw new Error('jobs, held frames, long writes that wait, and watches have no fingerprint');
    }
    this.#sequencer.fingerprint(to, now);
    this.#tracker.fingerprint(to, now.elapsedMs);
    this.#handshakes.fingerprint(to);
    this.#sessionQueue.fingerprint(to);
    to.number(this.#cnxns.size);
    const cnxns = [...this.#cnxns.all()].sort((a, b) => a.id - b.id);
    for (const cnxn of cnxns) cnxn.fingerprint(to);
    this.#shedder.fingerprint(to, now.elapsedMs);
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
    return this.#scheduler.isBusy;
  }

  /** Work on txns goes on: some are not applied and answered, or a job may propose one. */
  get hasUnapplied(): boolean {
    return this.isBusy || this.#sequencer.hasCommitted || this.#sessionQueue.hasReplies;
  }

  /**
   * The connection whose request the running job serves; undefined without a job, or if the request
   * came from no connection of this server.
   */
  get busyCnxn(): CnxnId | undefined {
    return this.#scheduler.busyCnxn;
  }

  /** Units of work done so far, including those of jobs; see budget.ts. */
  get workUnits(): number {
    return this.#scheduler.workUnits;
  }

  /**
   * False while frames of this connection should stay in the port: its handshake is not answered,
   * or too much is outstanding.
   */
  wantsInput(id: CnxnId): boolean {
    const cnxn = this.#cnxns.get(id);
    return cnxn !== undefined && this.#admission.wantsInput(cnxn);
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
   * `SnapshotWriter` for `writeLastZxid`.
   */
  snapshot(writeLastZxid = true): SnapshotWriter {
    return this.#replica.snapshot(writeLastZxid);
  }

  /**
   * Expires a session on request of an operator, as if it had timed out. Returns false if there is
   * no such session.
   */
  expireSession(session: SessionId, now: Now): boolean {
    const ref = sessionRefOf(session);
    if (this.#localSessions.expireNow(ref)) return true;
    if (!this.#sequencer.expireNow(ref)) return false;
    if (!this.isBusy) this.#wakeSequencer(now);
    return true;
  }

  /**
   * Closes `share`, from 0 to 1, of the connections on request of an operator, in random order and
   * about 500 a second. Returns how many. Their sessions live on, except local ones of clients that
   * connect to another server.
   */
  shedConnections(share: number, now: Now): number {
    return this.#shedder.shed(share, undefined, now);
  }

  // ---- what follows an input

  /** Continues the running job, then applies txns of the log, then admits requests that waited. */
  #advance(now: Now): void {
    const scheduler = this.#scheduler;
    scheduler.startStep();
    scheduler.isServingQueues = true;
    this.#serveQueues(now);
    scheduler.isServingQueues = false;
  }

  #serveQueues(now: Now): void {
    const scheduler = this.#scheduler;
    if (scheduler.isBusy) {
      const { isJobFromQueue } = scheduler;
      if (!scheduler.runJob(now)) return;
      this.#expireSessions(now);
      if (scheduler.isBusy) return;
      // Requests that waited and new input take turns: after a job from a queue, connections with
      // new input are served, or a few clients with expensive requests would have the server to
      // themselves; after any other job, the queues are served.
      if (isJobFromQueue) {
        this.#admission.resumeLater();
        return;
      }
    }
    if (!this.#sessionQueue.answerDue(now) || !this.#applier.applyCommitted(now)) return;
    this.#admission.admitQueued(now);
    this.#admission.startLongWrites(now);
  }

  /**
   * Clients can keep a server busy with long work. A session that is due expires before the next
   * job starts.
   */
  #expireSessions(now: Now): void {
    this.#expireLocalSessions();
    this.#scheduler.extendStep();
    const job = this.#sequencer.expireSessions(now, this.#inputWatermarkMs, this.#scheduler.isBudgetSpent);
    if (job !== undefined) this.#scheduler.startJob(job, noCnxn);
  }

  #expireLocalSessions(): void {
    this.#scheduler.extendStep();
    this.#localSessions.expireDue(this.#inputWatermarkMs);
  }

  #wakeSequencer(now: Now): void {
    // Work that was done earlier in this step must not delay the expiry of sessions.
    this.#scheduler.extendStep();
    const job = this.#sequencer.wake(now, this.#inputWatermarkMs, this.#scheduler.isBudgetSpent);
    if (job !== undefined) this.#scheduler.startJob(job, noCnxn);
  }
}
