/**
 * What clients talk to, whatever the server's role: one method per input, output to clients goes to `ClientOutput`.
 *
 * The way of a request, top to bottom: `frame` (admit, session order) -> read.ts, which answers at once; or order.ts, which brings a write
 * in order -> `appended` -> replica.ts changes the tree -> notify.ts tells watchers -> answer.ts replies -> what waited behind it.
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
import { AuthRegistry, type AuthTicket, type AuthVerdict } from './auth/auth-provider.ts';
import { Authentication } from './auth/authentication.ts';
import { digestProvider } from './auth/digest-provider.ts';
import { Identities } from './auth/identities.ts';
import { ipProvider } from './auth/ip-provider.ts';
import { Permissions } from './auth/permission.ts';
import { Cnxn } from './cnxn/cnxn.ts';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import { CnxnTable } from './cnxn/cnxn-table.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { Inspect } from './inspect.ts';
import { Inspection } from './inspection.ts';
import type { Now } from './now.ts';
import type { Observer } from './observer.ts';
import type { CoreOptions } from './options.ts';
import type { ClientOutput, CnxnId, SessionOwner } from './client-output.ts';
import type { Random } from './random.ts';
import { Answers } from './request/answer.ts';
import { earliest, type OrderFactory } from './request/authority.ts';
import { bytesPerUnit, type Job, StepBudget, type StepKind, unitsPerChange, unitsPerRequest, unitsPerTxn } from './request/budget.ts';
import { HeldFrames } from './request/held-frames.ts';
import { AddressLoad, Load } from './request/load.ts';
import { LongWrites, type WaitingRequest } from './request/long-writes.ts';
import { MemoryLimits, type MemoryState } from './request/memory-limits.ts';
import { Notifier } from './request/notify.ts';
import type { Order } from './request/order.ts';
import { changesOf, closesSession, type ForwardedRequest, isWrite, noCnxn, type Proposal, type WriteOrigin } from './request/proposal.ts';
import { type ReadRequest, Reads } from './request/read.ts';
import { nobody, Replica, replicaOptions } from './request/replica.ts';
import { parkFrame, type ParkedFrame, type WaitingSync } from './request/session-order.ts';
import { writeResult } from './request/write-result.ts';
import { asksForItsSession, Handshakes } from './session/handshake.ts';
import { ownerBefore, ownerHere, SessionTracker } from './session/session-tracker.ts';
import type { SnapshotSource } from './snapshot/snapshot-source.ts';
import { WatchTable } from './tree/watch-table.ts';

const headerBytes = 8;
const int32Bytes = 4;

/** Credentials judged: a short text hashed, and what it says added to the identities. */
const unitsPerCredentials = 32;
const hashedBytesPerUnit = 64;
/** A part of a multi takes 48 units, and a short one 24 bytes. */
const unitsPerByteOfParts = 2;
/** An entry of an ACL takes two units, and no less than about 16 bytes. */
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
  readonly #limits: MemoryLimits;
  readonly #cnxns: CnxnTable;
  readonly #answers: Answers;
  readonly #authentication: Authentication;
  readonly #permissions: Permissions;
  readonly #handshakes: Handshakes;
  readonly #order: Order;
  readonly #reads: Reads;
  readonly inspect: Inspect;

  /** Work that takes more than one step. While there is one, nothing else is applied or answered. */
  #job: Job | undefined;
  /** Whether it came out of what waits here, and not straight from a client. */
  #jobWaited = false;
  /** Whose request that is. */
  #jobCnxn: CnxnId = noCnxn;
  /** The write that it judges, if it does. */
  #judging: WriteOrigin | undefined;
  /** Steps of jobs so far, in units. */
  #jobUnits = 0;
  /** What follows a job is being begun: nothing long, so that others get their turn before the next job. */
  #endsJob = false;
  /** What waits is being brought on. */
  #isAdvancing = false;
  #afterJob: ((now: Now) => void) | undefined;
  #jobKind: StepKind = 'request';
  /** Everything that had arrived by then has been heard. */
  #heardMs: Millis = -Infinity;
  /** The last txn that has been applied to its end. */
  #appliedZxid: Zxid;
  /** Connections whose waiting reads are more than one step's work. Nothing is applied before they have been answered. */
  readonly #draining: Cnxn[] = [];
  /** Units of work done so far, those that replica, order and answers count left out; and where this step has had enough. */
  #units = 0;
  #enough = 0;
  readonly #held: HeldFrames;
  readonly #longWrites = new LongWrites();
  /** There is room for held frames or for a long write, and only the step's budget is spent. */
  #releasing = false;
  /** Over frames that had to wait. */
  readonly #parkedReader = new Reader();
  /** The read being answered: one at a time, so one object serves all. */
  readonly #readRequest: ReadRequest;
  /** Sub-results of the multi being applied. */
  readonly #multiResults = new Writer(256);

  /**
   * @param orderOf makes what orders the server's writes: `standaloneOrder`, or that of a leader or a learner.
   * @param replica what the storage has recovered; without one the server begins empty.
   * @param notesTouches whether `takeTouched` will be called: somebody else decides which sessions live.
   */
  constructor(
    options: CoreOptions,
    out: ClientOutput,
    random: Random,
    observer: Observer,
    now: Now,
    orderOf: OrderFactory,
    replica: Replica = new Replica(replicaOptions(options, random)),
    notesTouches = false,
  ) {
    this.#options = options;
    this.#budget = new StepBudget(options.turnUnits);
    this.#out = out;
    this.#observer = observer;
    this.#replica = replica;
    this.#appliedZxid = replica.lastZxid;
    this.#tracker = new SessionTracker(options.tickTimeMs, notesTouches);
    this.#watches = new WatchTable({ hashSeed: random.uint32(), reapedAtOnce: Math.max(1, this.#budget.rows >>> 4) });
    this.#limits = new MemoryLimits(options, replica.tree, this.#watches, this.#load, observer);
    this.#cnxns = new CnxnTable(out, this.#tracker, this.#watches, this.#load);
    this.#answers = new Answers(out, observer);
    const registry = new AuthRegistry([
      ipProvider,
      ...(options.digestAuthEnabled ? [digestProvider(options.digestAlgorithm, options.superDigest)] : []),
      ...options.authProviders,
    ]);
    this.#permissions = new Permissions(replica.tree.acls, registry, options.skipAcl);
    this.#authentication = new Authentication(registry, options, this.#cnxns, this.#answers, observer);
    const tracker = this.#tracker;
    const headOfLine = (high: number, low: number, zxid: Zxid) => this.#headOfLine(high, low, zxid);
    this.#order = orderOf(
      { options, replica, tracker, load: this.#load, headOfLine, registry, permissions: this.#permissions, observer },
      now,
    );
    this.#handshakes = new Handshakes(
      options,
      replica,
      this.#tracker,
      this.#cnxns,
      this.#answers,
      observer,
      now,
      (high, low, timeoutMs, then) => this.#order.revalidate(high, low, timeoutMs, then),
    );
    this.#reads = new Reads(
      replica,
      this.#watches,
      this.#cnxns,
      this.#limits,
      this.#answers,
      registry,
      this.#permissions,
      observer,
      this.#budget,
    );
    this.#held = new HeldFrames(options, this.#load);
    this.inspect = new Inspection(this.#order.role, replica, this.#tracker, this.#watches, this.#cnxns, this.#load);
    const notifier = new Notifier(this.#watches, this.#cnxns, this.#answers, this.#permissions, observer, this.#budget);
    replica.notice = (notice) => observer.notice(notice);
    const { namespaces } = replica.tree;
    for (const [id, name] of namespaces.entries()) observer.namespaceNamed(id, name);
    namespaces.named = (id, name) => observer.namespaceNamed(id, name);
    const watches = this.#watches;
    const answers = this.#answers;
    replica.listener = {
      get listens() {
        return watches.count > 0;
      },
      get work() {
        return answers.work;
      },
      changed: (path, eventType, zxid, acl, parentAcl) => notifier.changed(path, eventType, zxid, acl, parentAcl),
      written: (namespace, bytes) => observer.znodeWritten(namespace, bytes),
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
    observer.roleChanged(this.#order.role);
  }

  // ---- inputs ----------------------------------------------------------------------------------------------------------------------

  /** A client has connected. Nothing is known of it but where it comes from. */
  connect(id: CnxnId, context: CnxnContext, now: Now): void {
    this.#cnxns.open(id, context, now.wallMs);
    this.#observer.cnxnOpened(id, context);
  }

  /**
   * A frame, without its length; the first is the handshake. `reader` is placed over it, and its bytes may be used again after the call.
   * One that had to wait in the port arrived at `arrivedMs`, and `heard` has been called then.
   */
  frame(id: CnxnId, reader: Reader, now: Now, arrivedMs: Millis = now.elapsedMs): void {
    const cnxn = this.#cnxns.get(id);
    // What still comes from a connection that has been given up must not have any effect.
    if (cnxn === undefined || cnxn.isClosed) return;
    cnxn.packetsReceived++;
    // Taking up a session brings no work, and its time runs out while it waits; so it waits for a long job only.
    const takesUpSession = cnxn.state === 'new' && cnxn.framesHeld === 0 && !this.busy && asksForItsSession(reader);
    if (this.#mustHold() && !takesUpSession) {
      this.#hold(cnxn, reader, arrivedMs, now);
      return;
    }
    this.#admit(cnxn, reader, cnxn.identities, arrivedMs, now);
  }

  /**
   * Bytes of a connection have arrived, and no frame of them can be handed over yet. They show that its client is alive: whose turn comes late
   * has not been silent.
   */
  heard(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn !== undefined && cnxn.slot !== -1) this.#tracker.touch(cnxn.slot, now.elapsedMs, cnxn.timeoutMs);
  }

  /** A client has come back, or is about to: its handshake waits for a long job. Its session must not end meanwhile. */
  handshakeHeard(reader: Reader, now: Now): void {
    this.#handshakes.heard(reader, now);
  }

  /**
   * A frame that had arrived when its connection broke, and was not handed over before. It shows that the client was alive, and what it
   * asks to be changed is changed; nobody is answered.
   */
  lastFrame(id: CnxnId, reader: Reader, now: Now, arrivedMs: Millis = now.elapsedMs): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.isClosed) return;
    if (this.#mustHold()) {
      this.#hold(cnxn, reader, arrivedMs, now);
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

  /** The other side has gone, or we have dropped it. Its session lives on. */
  disconnected(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined) return;
    const reason = cnxn.closeReason;
    const mayKeep = cnxn.state === 'queued' && !this.#options.requestThrottleDropStale;
    const keepsTurn = mayKeep && this.#longWrites.keeps(cnxn);
    if (!keepsTurn) this.#longWrites.remove(cnxn);
    this.#cnxns.remove(cnxn, keepsTurn);
    this.#observer.cnxnClosed(id, reason, cnxn.context, sessionIdOf(cnxn.sessionHigh, cnxn.sessionLow));
    // What it had under way no longer counts: others may get their turn.
    this.#advance(now);
  }

  /** Output of a connection that was full has left: the answers held back for it may follow. */
  drained(id: CnxnId, now: Now): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || !cnxn.isFull) return;
    cnxn.isFull = false;
    // A job of another connection may be under way.
    this.#draining.push(cnxn);
    this.#advance(now);
  }

  /** What was sent to the log up to `zxid` is safe. */
  appended(zxid: Zxid, now: Now): void {
    this.#order.appended(zxid);
    this.#advance(now);
  }

  /**
   * Time has passed. Everything that had arrived here by `heardMs` has been handed over, as a frame or by `heard`: sessions are judged as of
   * then, since the last word of one may be among what has not.
   */
  wake(now: Now, heardMs: Millis = now.elapsedMs): void {
    this.#heardMs = heardMs;
    this.#advance(now);
    if (this.busy) return;
    this.#watches.reap(this.#budget.rows);
    this.#wakeOrder(now);
  }

  /** When `wake` must be called if no other input comes first, on the monotonic clock; in the past means at once. */
  deadline(): Millis | undefined {
    if (this.busy || this.#watches.hasDead || this.#releasing || this.#draining.length > 0 || this.#order.hasNext) return 0;
    return earliest(this.#order.deadline(), this.#held.deadline);
  }

  /** An authentication that was decided elsewhere has come to its end (see `AuthOutcome`, kind `later`). */
  authenticated(ticket: AuthTicket, verdict: AuthVerdict, now: Now): void {
    this.#enough = this.#work() + this.#options.turnUnits;
    const cnxn = this.#authentication.decided(ticket, verdict, now);
    if (cnxn !== undefined) this.#readmit(cnxn, now);
  }

  // ---- inputs of a server in an ensemble ---------------------------------------------------------------------------------------------

  /** A learner has passed on a request of one of its clients. */
  forwarded(request: ForwardedRequest, now: Now): void {
    if (!this.#mustHold()) {
      this.#forwarded(request, now);
      return;
    }
    this.#load.held(request);
    this.#held.pushForwarded(request, this.#tracker.movesOf(request.sessionHigh, request.sessionLow), now.elapsedMs);
  }

  /** Everything that was committed when a sync was asked for has been handed over. It is answered when all of that has been applied. */
  synced(sync: WaitingSync, now: Now): void {
    this.#order.synced(sync);
    this.#releaseSyncs(now);
    this.#advance(now);
  }

  /**
   * The leader has said whether a session lives that a client wants to go on with here. What the session has asked before, elsewhere or over
   * another connection, it has brought in order up to `zxid`.
   */
  revalidated(high: number, low: number, isValid: boolean, zxid: Zxid, now: Now): void {
    this.#enough = this.#work() + this.#options.turnUnits;
    const cnxn = this.#handshakes.revalidated(sessionIdOf(high, low), isValid, now);
    if (cnxn === undefined) return;
    cnxn.tookUpBehind = zxid;
    this.#readmit(cnxn, now);
  }

  /** A learner asks whether a session lives, for a client of its own; from here on its requests come from there. */
  validate(high: number, low: number, timeoutMs: Millis, owner: SessionOwner, now: Now): boolean {
    const slot = this.#tracker.findLive(high, low);
    this.#observer.sessionValidated(sessionIdOf(high, low), slot !== -1);
    if (slot === -1) return false;
    const older = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    if (older !== undefined) this.#cnxns.close(older, 'session moved');
    this.#tracker.setOwner(slot, owner);
    // Over another connection, also if it is at the same server.
    this.#tracker.moved(slot);
    const judging = this.#judging;
    // Its txn comes after the take-over, and must not pass for what the session asks over its new connection.
    if (judging?.sessionHigh === high && judging.sessionLow === low && judging.owner === owner) judging.owner = ownerBefore;
    this.#tracker.touch(slot, now.elapsedMs, Math.max(0, timeoutMs));
    return true;
  }

  /** A learner has heard of a session. */
  touched(high: number, low: number, timeoutMs: Millis, now: Now): void {
    const slot = this.#tracker.findLive(high, low);
    if (slot !== -1) this.#tracker.touch(slot, now.elapsedMs, Math.max(0, timeoutMs));
  }

  /** The sessions that were heard of here since the last call. */
  takeTouched(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    this.#tracker.takeTouched(visit);
  }

  /**
   * Serves nobody any more. The state it leaves is that of the log: what stands in there and has not been applied is applied now, all in
   * one go, since whoever takes part in an election must be what it says it is.
   */
  end(now: Now): void {
    for (const cnxn of this.#cnxns.all()) this.#cnxns.close(cnxn, 'not serving');
    while (this.#job !== undefined) this.#runJob(now);
    this.#replica.listener = nobody;
    for (const { header, txn, digest } of this.#order.rest()) {
      const job = this.#replica.apply(header, txn, digest);
      if (job !== undefined) while (job.next(now).done !== true);
      this.#order.applied(header.zxid);
    }
  }

  /**
   * Everything that can influence behaviour, for an explorer; that of the replica is the owner's to write. Throws an `Error` where there is
   * something that cannot be written down: a job under way, frames that are held back, watches.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    if (this.busy || !this.#held.isEmpty || !this.#longWrites.isEmpty || this.#watches.count > 0) {
      throw new Error('jobs, held frames, long writes that wait, and watches have no fingerprint');
    }
    this.#order.fingerprint(to, now);
    this.#tracker.fingerprint(to, now.elapsedMs);
    this.#handshakes.fingerprint(to);
    to.number(this.#draining.length);
    for (const { id } of this.#draining) to.number(id);
    to.number(this.#cnxns.size);
    const cnxns = [...this.#cnxns.all()].sort((a, b) => a.id - b.id);
    for (const cnxn of cnxns) cnxn.fingerprint(to);
  }

  /** How memory is; see `MemoryLimits`. */
  memory(state: MemoryState, watchesMayGrow: boolean): void {
    this.#limits.set(state, watchesMayGrow);
  }

  // ---- what the runtime may ask ------------------------------------------------------------------------------------------------------

  /** A long job is under way: frames given now would only be copied and wait. Call `wake` again soon. */
  get busy(): boolean {
    return this.#job !== undefined;
  }

  /** Whose request the job under way is; undefined without one, and where no connection of this server has asked for it. */
  get busyWith(): CnxnId | undefined {
    return this.#job === undefined || this.#jobCnxn === noCnxn ? undefined : this.#jobCnxn;
  }

  /** Units of work done so far, those of jobs included; see budget.ts. */
  get work(): number {
    return this.#work() + this.#jobUnits;
  }

  /** False while frames of this connection should stay where they are: its handshake is not answered, or too much is under way. */
  wantsInput(id: CnxnId): boolean {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined) return false;
    if (cnxn.isFull || (cnxn.state !== 'open' && cnxn.state !== 'new')) return false;
    if (cnxn.waiting.length === 0 && cnxn.framesHeld === 0) return true;
    // What is behind a handshake that is held back would only be held back with it.
    if (cnxn.longReadsWaiting > 0 || cnxn.state === 'new') return false;
    const load = this.#load;
    const { globalOutstandingLimit, inFlightBytesMax, identityBytesPerAddressMax, fewIdentityBytes } = this.#options;
    const ownIdentityBytes = cnxn.identities.bytes * cnxn.waiting.length;
    if (cnxn.address.identityBytes > identityBytesPerAddressMax && ownIdentityBytes > fewIdentityBytes) {
      this.#observer.limitMet('identityBytesPerAddressMax');
      return false;
    }
    const bytes = Math.max(load.bytes, this.#order.queuedBytes);
    if (load.requests + load.heldBack <= globalOutstandingLimit && bytes <= inFlightBytesMax) return true;
    // Those who have more than their share under way do not keep the others from theirs.
    if (load.isBelowShare(cnxn.address, globalOutstandingLimit, inFlightBytesMax)) return true;
    this.#observer.limitMet(bytes > inFlightBytesMax ? 'inFlightBytesMax' : 'globalOutstandingLimit');
    return false;
  }

  /** Memory that the tree holds and that znodes to come can use, in bytes. */
  get idleTreeBytes(): number {
    return this.#replica.tree.idleBytes;
  }

  /** Memory that the tree has given back since it was at its largest, in bytes. */
  get returnedTreeBytes(): number {
    return this.#replica.tree.returnedBytes;
  }

  /** Whether a snapshot can be begun: the state is that of a txn's end. */
  get canSnapshot(): boolean {
    return !this.busy;
  }

  /** What the watches take, in bytes. */
  get watchBytes(): number {
    return this.#watches.bytes;
  }

  /** A snapshot of this moment, to be written in slices while requests go on. One at a time. See `SnapshotSource` for `writeLastZxid`. */
  snapshot(writeLastZxid = true): SnapshotSource {
    return this.#replica.snapshot(writeLastZxid);
  }

  /** Ends a session at an operator's word, as if nothing had been heard of it for too long. Returns false when there is none to end. */
  expireSession(session: SessionId, now: Now): boolean {
    if (!this.#order.condemn(sessionHigh(session), sessionLow(session))) return false;
    if (!this.busy) this.#wakeOrder(now);
    return true;
  }

  // ---- admit -------------------------------------------------------------------------------------------------------------------------

  #mustHold(): boolean {
    return !this.#held.isEmpty || !this.#hasRoom();
  }

  /** Whether a request may be taken in now: nothing long is under way, and not too many are. */
  #hasRoom(): boolean {
    const limit = this.#options.requestThrottleLimit;
    return !this.busy && (limit === 0 || this.#load.requests < limit);
  }

  #hold(cnxn: Cnxn, reader: Reader, arrivedMs: Millis, now: Now): void {
    const frame = parkFrame(reader.bytes, reader.offset, reader.limit, cnxn.identities, arrivedMs, false);
    this.#noteHolding();
    this.#held.push(cnxn, frame, now.elapsedMs);
    // Its session has been heard of, whenever the request's turn comes.
    if (cnxn.slot !== -1 && arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
  }

  #noteHolding(): void {
    if (this.#held.isEmpty && !this.busy) this.#observer.heldBack();
  }

  #releaseHeld(now: Now): void {
    this.#releasing = false;
    while (!this.#held.isEmpty && this.#hasRoom()) {
      if (this.#stepEnds('request')) {
        this.#releasing = true;
        return;
      }
      this.#units += unitsPerRequest;
      const taken = this.#held.take(now.elapsedMs);
      if (taken.kind === 'forwarded') {
        const { request, moves, behindLong } = taken;
        this.#load.released(request);
        this.#forwarded(request, now, moves, behindLong !== 'no');
        if (behindLong === 'last') this.#longWrites.resume(request.sessionHigh, request.sessionLow);
        continue;
      }
      const { cnxn, frame: held } = taken;
      // What the client has said of itself may have waited with it, ahead of it: it is a request of whoever the client has become.
      const frame = { ...held, identities: cnxn.identities };
      if (!cnxn.isClosed) this.#admitParked(cnxn, frame, now);
      // Its long write keeps its turn, and all of the connection waits behind it.
      else if (cnxn.early.length > 0) this.#waitBehindLong(cnxn, frame);
      else this.#stale(cnxn, frame, now);
    }
    if (!this.#held.isEmpty && !this.busy) this.#observer.heldBack();
    this.#held.lookAgainLater(now.elapsedMs);
  }

  /** The turn of a request whose connection has gone meanwhile. Behind one that is dropped nothing of that connection has an effect. */
  #stale(cnxn: Cnxn, frame: ParkedFrame, now: Now): void {
    const opCode = opCodeOf(frame);
    // Whoever says good-bye hangs up at once, and means it all the same.
    const isGoodBye = opCode === OpCode.closeSession;
    if (opCode === OpCode.auth || opCode === OpCode.sasl) cnxn.hasLostCredentials = true;
    const isUnwanted = !isGoodBye && (this.#options.requestThrottleDropStale || cnxn.hasLostCredentials);
    if (isUnwanted) cnxn.hasDropped = true;
    if (cnxn.hasDropped || !isGoodBye) this.#observer.stale(cnxn.hasDropped);
    if (cnxn.hasDropped) return;
    // A write that is refused is dropped: its connection is gone.
    if (frame.throttled) cnxn.hasDropped = opCode !== undefined && isWrite(opCode);
    else this.#writeStale(cnxn, frame, now);
  }

  /** A write that waited while its client hung up is still the client's wish, as long as the session lives. Nobody is answered. */
  #writeStale(cnxn: Cnxn, { bytes, identities, arrivedMs }: ParkedFrame, now: Now): void {
    // What came from a connection that we have given up must not have any effect.
    if (cnxn.closeReason !== undefined || bytes.length < headerBytes || !this.#authentication.mayWork(identities)) return;
    const { sessionHigh: high, sessionLow: low } = cnxn;
    // Nor what came before the session went on over another one.
    if (this.#tracker.findLive(high, low) === -1 || this.#tracker.movesOf(high, low) !== cnxn.moves) return;
    const reader = this.#parkedReader.place(bytes, 0, bytes.length);
    const xid = reader.int32();
    const opCode = reader.int32();
    if (!isWrite(opCode)) return;
    if (this.#limits.refuses(opCode, reader, this.#order.queuedBytes)) {
      cnxn.hasDropped = true;
      return;
    }
    const cxid = xid;
    this.#bringInOrder(
      {
        kind: 'write',
        cnxn: noCnxn,
        owner: ownerHere,
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

  /** `moves` is how often its session had moved when it came, of one that has waited; `isItsTurn` of a long write, and of what waited behind it. */
  #forwarded(forwarded: ForwardedRequest, now: Now, moves?: number, isItsTurn = false): void {
    if (!isItsTurn && this.#maybeQueueForwarded(forwarded, moves)) return;
    this.#units += unitsPerRequest;
    const { record, ...request } = forwarded;
    const { sessionHigh: high, sessionLow: low } = request;
    // The session has gone on over another connection since, and is at the server through which this came: it must not pass for what it asks there now.
    const isOld = moves !== undefined && this.#tracker.movesOf(high, low) !== moves && this.#tracker.isOwnedBy(high, low, request.owner);
    const owner = isOld ? ownerBefore : request.owner;
    const origin: WriteOrigin = { kind: 'write', cnxn: noCnxn, ...request, owner, heldBytes: 0, frameBytes: 0 };
    const reader = this.#parkedReader.place(record, 0, record.length);
    if (request.opCode === OpCode.createSession && this.#opensSession(origin, reader)) this.#order.openSession(origin, reader.int32(), now);
    else this.#bringInOrder(origin, reader, now);
  }

  /**
   * Whether this is what a learner passes on for a new session. What a client of a ZooKeeper server sends as a createSession of its own comes
   * the same way, with whatever record: it is judged like any other request that there is not.
   */
  #opensSession({ sessionHigh: high, sessionLow: low }: WriteOrigin, reader: Reader): boolean {
    if (reader.remaining < int32Bytes || (high === 0 && low === 0) || this.#tracker.find(high, low) !== -1) return false;
    return reader.bytes.readInt32BE(reader.offset) > 0;
  }

  // ---- long writes -------------------------------------------------------------------------------------------------------------------

  /** What judging a write takes, if that is more than a step; otherwise 0. */
  #unitsOfLong(opCode: number, bytes: number): number {
    const stepUnits = this.#budget.units;
    if (bytes * unitsPerByteOfParts <= stepUnits || !isWrite(opCode)) return 0;
    const units = unitsOfWrite(opCode, bytes);
    return units > stepUnits ? units : 0;
  }

  #mustQueue(): boolean {
    return !this.#longWrites.isEmpty || !this.#hasRoomForLong();
  }

  #hasRoomForLong(): boolean {
    const { unitsProposedMax, multiBytesPassedOnMax } = this.#budget;
    return this.#load.unitsProposed <= unitsProposedMax && this.#load.multiBytesPassedOn <= multiBytesPassedOnMax;
  }

  /** A request of an unknown session does not wait, however long it is: it is refused. */
  #maybeQueueForwarded(request: ForwardedRequest, movesBefore: number | undefined): boolean {
    const { sessionHigh: high, sessionLow: low, opCode, record } = request;
    const long = this.#unitsOfLong(opCode, record.length);
    const units = long > 0 && this.#tracker.find(high, low) !== -1 ? long : 0;
    if (!(units > 0 && this.#mustQueue()) && !this.#longWrites.hasRequestsOf(high, low)) {
      if (units > 0) this.#longWrites.begun(request, units);
      return false;
    }
    this.#load.held(request);
    if (units > 0) this.#observer.longWriteWaits(true);
    this.#longWrites.pushForwarded({ request, moves: movesBefore ?? this.#tracker.movesOf(high, low), units });
    return true;
  }

  #queue(cnxn: Cnxn, frame: ParkedFrame, units: number): void {
    this.#observer.longWriteWaits(false);
    cnxn.early.push(frame);
    cnxn.state = 'queued';
    this.#longWrites.push(cnxn, units);
  }

  /** Begins long writes while there is room for them. */
  #beginLong(now: Now): void {
    if (this.#longWrites.isEmpty) return;
    // However many short ones were let in before: that was a step's work at most.
    this.#leaveRoom();
    while (!this.#longWrites.isEmpty && !this.busy && this.#hasRoomForLong()) {
      if (this.#stepEnds('request')) {
        this.#releasing = true;
        return;
      }
      const next = this.#longWrites.take();
      if (next.kind === 'cnxn') this.#beginQueued(next.cnxn, now);
      else this.#beginForwarded(next.requests, now);
    }
  }

  #beginQueued(cnxn: Cnxn, now: Now): void {
    const first = cnxn.early.shift();
    // We have given the connection up.
    if (first === undefined) return;
    this.#load.unparked(first, cnxn.address);
    if (cnxn.isClosed) {
      this.#stale(cnxn, first, now);
      this.#holdEarly(cnxn, now);
      return;
    }
    cnxn.state = 'open';
    this.#admitParked(cnxn, first, now, true);
    if (!cnxn.isClosed) this.#readmit(cnxn, now);
  }

  #waitBehindLong(cnxn: Cnxn, frame: ParkedFrame): void {
    this.#load.parked(frame, cnxn.address);
    cnxn.early.push(frame);
  }

  /** Of a connection that has gone, what has waited behind a long write whose turn has come. */
  #holdEarly(cnxn: Cnxn, now: Now): void {
    const early = cnxn.early.takeAll();
    if (early.length === 0) return;
    for (const frame of early) this.#load.unparked(frame, cnxn.address);
    this.#noteHolding();
    this.#held.putBack(cnxn, early, now.elapsedMs);
    this.#releasing = true;
  }

  #beginForwarded([first, ...others]: readonly WaitingRequest[], now: Now): void {
    this.#load.released(first!.request);
    if (others.length > 0) {
      this.#held.putBackForwarded(others, now.elapsedMs);
      this.#releasing = true;
    }
    this.#forwarded(first!.request, now, first!.moves, true);
  }

  #admitParked(cnxn: Cnxn, frame: ParkedFrame, now: Now, isItsTurn = false): void {
    const reader = this.#parkedReader.place(frame.bytes, 0, frame.bytes.length);
    this.#admit(cnxn, reader, frame.identities, frame.arrivedMs, now, frame.throttled, isItsTurn);
  }

  #admit(cnxn: Cnxn, reader: Reader, identities: Identities, arrivedMs: Millis, now: Now, throttled = false, isItsTurn = false): void {
    const start = reader.offset;
    switch (cnxn.state) {
      case 'new':
        this.#handshake(cnxn, reader, now);
        return;
      case 'opening':
      case 'parked':
      case 'queued':
        cnxn.early.push(this.#parked(cnxn, reader, start, identities, arrivedMs, throttled));
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
    // A session that is closing takes nothing more. The connection hears of it when its closeSession is applied.
    if (cnxn.slot === -1 || this.#tracker.isClosing(cnxn.slot)) return;
    // A frame that has waited spoke for its session when it arrived; its client may be dead by now.
    if (arrivedMs === now.elapsedMs) this.#tracker.touch(cnxn.slot, arrivedMs, cnxn.timeoutMs);
    const units = isItsTurn ? 0 : this.#unitsOfLong(opCode, reader.remaining);
    // One that waits is held; what is refused for that is refused below.
    if (units > 0 && this.#mustQueue() && !this.#limits.refuses(opCode, reader, this.#order.queuedBytes)) {
      this.#queue(cnxn, this.#parked(cnxn, reader, start, identities, arrivedMs, throttled), units);
      return;
    }
    if (units > 0) this.#longWrites.begun(cnxn, units);
    this.#observer.admitted(cnxn.id, opCode, reader.limit - start + 4, now.elapsedMs - arrivedMs);

    if (opCode === OpCode.auth || opCode === OpCode.sasl) {
      // Credentials are hashed, and identities gathered.
      this.#units += unitsPerCredentials + reader.remaining / hashedBytesPerUnit;
      this.#authentication.request(cnxn, opCode, xid, reader, now);
      return;
    }
    if (!this.#authentication.mayWork(identities)) {
      this.#authentication.refuse(cnxn, opCode, xid, now);
      return;
    }
    if (isWrite(opCode)) {
      const isRefused = throttled || this.#limits.refuses(opCode, reader, this.#order.queuedBytes);
      // Told now: its connection may be gone before it is answered.
      if (isRefused) this.#observer.refused(cnxn.id, opCode, ErrorCode.ThrottledOp);
      if (isRefused) this.#answerInOrder(cnxn, reader, start, identities, arrivedMs, true, now);
      else this.#write(cnxn, opCode, xid, reader, identities, arrivedMs, now);
      return;
    }
    if (opCode === OpCode.sync && !throttled && !this.#order.isCaughtUp) {
      this.#sync(cnxn, this.#parked(cnxn, reader, start, identities, arrivedMs, throttled), now);
      return;
    }
    this.#answerInOrder(cnxn, reader, start, identities, arrivedMs, throttled, now);
  }

  #sync(cnxn: Cnxn, frame: ParkedFrame, now: Now): void {
    const { id, sessionHigh: high, sessionLow: low } = cnxn;
    const heldBytes = this.#order.passesOn ? frame.identities.bytes : 0;
    const sync: WaitingSync = { kind: 'sync', cnxn: id, sessionHigh: high, sessionLow: low, frame, heldBytes, isDone: false };
    cnxn.waiting.push(sync);
    this.#load.syncInLine(sync, cnxn.address);
    this.#order.sync(sync, now);
  }

  #releaseSyncs(now: Now): void {
    const applied = this.#appliedZxid;
    for (let sync = this.#order.takeSynced(applied); sync !== undefined; sync = this.#order.takeSynced(applied)) {
      sync.isDone = true;
      const cnxn = this.#cnxns.get(sync.cnxn);
      if (cnxn === undefined || cnxn.waiting.peek() !== sync) continue;
      if (this.busy || !this.#isAdvancing) this.#draining.push(cnxn);
      else this.#drain(cnxn, now);
    }
  }

  /** Session order: behind an unanswered request of the same connection a read waits; otherwise it is answered on the spot. */
  #answerInOrder(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean, now: Now): void {
    if (cnxn.waiting.length > 0) this.#park(cnxn, reader, start, identities, arrivedMs, throttled);
    else this.#read(cnxn, reader, start, identities, arrivedMs, throttled, now);
  }

  #park(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean): void {
    reader.offset = start + int32Bytes;
    const opCode = reader.int32();
    const isLong = this.#isLong(opCode, reader);
    if (isLong) cnxn.longReadsWaiting++;
    cnxn.waiting.push(this.#parked(cnxn, reader, start, identities, arrivedMs, throttled, isLong));
  }

  #isLong(opCode: number, reader: Reader): boolean {
    try {
      return this.#reads.isLong(opCode, reader);
    } catch (error) {
      // When its turn comes it will be answered that it cannot be read.
      if (error instanceof ProtocolError) return false;
      throw error;
    }
  }

  #parked(
    cnxn: Cnxn,
    reader: Reader,
    start: number,
    identities: Identities,
    arrivedMs: Millis,
    throttled: boolean,
    isLong = false,
  ): ParkedFrame {
    const frame = parkFrame(reader.bytes, start, reader.limit, identities, arrivedMs, throttled, isLong);
    this.#load.parked(frame, cnxn.address);
    return frame;
  }

  #read(cnxn: Cnxn, reader: Reader, start: number, identities: Identities, arrivedMs: Millis, throttled: boolean, now: Now): void {
    reader.offset = start;
    const xid = reader.int32();
    const opCode = reader.int32();
    if (throttled && opCode !== OpCode.ping) {
      if (!isWrite(opCode)) this.#observer.refused(cnxn.id, opCode, ErrorCode.ThrottledOp);
      this.#answers.header(cnxn, opCode, xid, this.#replica.lastZxid, ErrorCode.ThrottledOp, arrivedMs, now.elapsedMs, false);
      return;
    }
    const request = this.#readRequest;
    request.cnxn = cnxn;
    request.xid = xid;
    request.opCode = opCode;
    request.identities = identities;
    request.arrivedMs = arrivedMs;
    request.now = now;
    const job = this.#reads.answer(request, reader);
    if (job !== undefined) this.#begin(job, cnxn.id, (later) => this.#drain(cnxn, later));
  }

  // ---- writes ------------------------------------------------------------------------------------------------------------------------

  #headOfLine(high: number, low: number, zxid: Zxid): WriteOrigin | undefined {
    const slot = this.#tracker.find(high, low);
    if (slot === -1) return undefined;
    const cnxn = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    // Of an older connection of the session, whose xids may have been the same.
    if (cnxn === undefined || zxid <= cnxn.tookUpBehind) return undefined;
    const head = cnxn.waiting.peek();
    return head?.kind === 'write' ? head : undefined;
  }

  #write(cnxn: Cnxn, opCode: number, xid: number, reader: Reader, identities: Identities, arrivedMs: Millis, now: Now): void {
    const { id, sessionHigh: high, sessionLow: low } = cnxn;
    const origin: WriteOrigin = {
      kind: 'write',
      cnxn: id,
      owner: ownerHere,
      sessionHigh: high,
      sessionLow: low,
      cxid: xid,
      opCode,
      identities,
      heldBytes: this.#order.passesOn ? reader.remaining + identities.bytes : 0,
      frameBytes: reader.remaining,
      arrivedMs,
    };
    this.#standInLine(cnxn, origin);
    this.#bringInOrder(origin, reader, now);
  }

  #standInLine(cnxn: Cnxn, origin: WriteOrigin): void {
    cnxn.waiting.push(origin);
    cnxn.writesWaiting++;
    this.#load.inLine(origin, cnxn.address);
    if (!cnxn.isFull) return;
    cnxn.isFull = false;
    this.#draining.push(cnxn);
  }

  #bringInOrder(origin: WriteOrigin, reader: Reader, now: Now): void {
    this.#units += unitsOfWrite(origin.opCode, reader.remaining);
    const job = this.#order.write(origin, reader, now);
    if (job === undefined) return;
    this.#begin(job, origin.cnxn, nothing);
    this.#judging = origin;
  }

  /** Goes on with what was begun, then applies what the log has, then lets in what had to wait. */
  #advance(now: Now): void {
    this.#enough = this.#work() + this.#budget.units;
    this.#isAdvancing = true;
    this.#advanceQueues(now);
    this.#isAdvancing = false;
  }

  #advanceQueues(now: Now): void {
    if (this.busy) {
      const waited = this.#jobWaited;
      if (!this.#runJob(now)) return;
      this.#endSessions(now);
      if (this.busy) return;
      // What waits and what comes take turns: after a job that has waited those are heard who have sent something meanwhile, or a few who ask
      // for much would have the server to themselves; after any other job it is the turn of what waits.
      if (waited) {
        this.#releasing = !this.#held.isEmpty || (!this.#longWrites.isEmpty && this.#hasRoomForLong());
        return;
      }
    }
    while (this.#draining.length > 0) {
      if (this.#stepEnds('request')) return;
      this.#drain(this.#draining.shift()!, now);
      if (this.busy) return;
    }
    while (this.#order.hasNext) {
      if (this.#stepEnds('commit')) return;
      this.#apply(this.#order.take(), now);
      // Behind an unanswered read of its connection no later write may be answered.
      if (this.busy || this.#draining.length > 0) return;
    }
    this.#releaseHeld(now);
    this.#beginLong(now);
  }

  #work(): number {
    return this.#units + this.#order.work + this.#replica.work + this.#permissions.work + this.#reads.work;
  }

  readonly #hasEnough = (): boolean => this.#work() >= this.#enough;

  /** The same where there is work of this kind left. */
  #stepEnds(kind: StepKind): boolean {
    if (!this.#hasEnough()) return false;
    this.#observer.stepEnded(kind);
    return true;
  }

  #apply(proposal: Proposal, now: Now): void {
    const { header, txn, node, digest } = proposal;
    this.#multiResults.clear();
    this.#units += unitsPerTxn + changesOf(txn) * unitsPerChange;
    const job = this.#replica.apply(header, txn, digest, this.#multiResults, node);
    if (job === undefined) {
      this.#order.applied(header.zxid);
      this.#applied(proposal, now);
    } else {
      this.#begin(this.#applying(job, header.zxid), proposal.origin.cnxn, (later) => this.#applied(proposal, later), 'commit');
    }
  }

  *#applying(job: Job, zxid: Zxid): Job {
    yield* job;
    while (!this.#order.applied(zxid, this.#budget.records)) yield;
  }

  #applied(proposal: Proposal, now: Now): void {
    this.#appliedZxid = proposal.zxid;
    this.#answerWrite(proposal, now);
    this.#releaseSyncs(now);
  }

  #answerWrite(proposal: Proposal, now: Now): void {
    const { zxid, header, txn, origin } = proposal;
    const error = txn.kind === 'error' ? txn.err : ErrorCode.Ok;
    this.#observer.applied(zxid, header.type, error, now.wallMs - header.time);
    const cnxn = this.#cnxns.get(origin.cnxn);
    // The connection may have gone meanwhile, and its number may even have been given to another.
    if (cnxn === undefined || cnxn.waiting.peek() !== origin) return;
    cnxn.waiting.shift();
    cnxn.writesWaiting--;
    this.#load.answered(origin, cnxn.address);
    this.#reply(cnxn, proposal, error, now);
    if (closesSession(origin)) this.#cnxns.close(cnxn, 'closed by the client');
    this.#drain(cnxn, now);
  }

  #reply(cnxn: Cnxn, proposal: Proposal, error: number, now: Now): void {
    const { zxid, origin } = proposal;
    const { opCode, cxid, arrivedMs } = origin;
    if (error === ErrorCode.SessionMoved) {
      // Its client speaks to another server by now, and does not want to hear this.
      this.#cnxns.close(cnxn, 'session moved');
      return;
    }
    if (opCode === OpCode.createSession) {
      this.#handshakes.open(cnxn, arrivedMs, now);
      this.#readmit(cnxn, now);
      return;
    }
    const answers = this.#answers;
    const writer = answers.begin(cnxn, cxid, zxid, error);
    writeResult(writer, proposal, this.#replica, this.#multiResults);
    answers.end(cnxn, writer, opCode, cxid, zxid, error, arrivedMs, now.elapsedMs, true);
  }

  /** Answers the reads that waited behind the request just answered, up to the next write. */
  #drain(cnxn: Cnxn, now: Now): void {
    while (!this.busy && !cnxn.isClosed) {
      const next = cnxn.waiting.peek();
      if (next === undefined || next.kind === 'write' || (next.kind === 'sync' && !next.isDone)) return;
      if (this.#endsJob || this.#stepEnds('request')) {
        this.#draining.push(cnxn);
        return;
      }
      // A thousand small requests may have waited for a thousand large answers. They do not all have to be in memory at once, unless a
      // write has come behind them: they must not see what it will do.
      if (cnxn.writesWaiting === 0) {
        cnxn.isFull = this.#out.isFull(cnxn.id);
        if (cnxn.isFull) return;
      }
      this.#units += unitsPerRequest;
      cnxn.waiting.shift();
      const frame = next.kind === 'sync' ? next.frame : next;
      if (next.kind === 'sync') this.#load.syncDone(next, cnxn.address);
      this.#load.unparked(frame, cnxn.address);
      if (frame.isLong) cnxn.longReadsWaiting--;
      const reader = this.#parkedReader.place(frame.bytes, 0, frame.bytes.length);
      this.#read(cnxn, reader, 0, frame.identities, frame.arrivedMs, frame.throttled, now);
    }
  }

  /** Takes in the frames that came before the connection was ready for them, ahead of those of its frames that are held. */
  #readmit(cnxn: Cnxn, now: Now): void {
    const early = cnxn.early.takeAll();
    for (const frame of early) this.#load.unparked(frame, cnxn.address);
    for (const [at, frame] of early.entries()) {
      if (!this.#hasRoom() || this.#hasEnough()) {
        this.#noteHolding();
        this.#held.putBack(cnxn, early.slice(at), now.elapsedMs);
        this.#releasing = this.#hasRoom();
        return;
      }
      this.#units += unitsPerRequest;
      // One of those before it may have said who the client is.
      this.#admitParked(cnxn, { ...frame, identities: cnxn.identities }, now);
    }
  }

  #begin(job: Job, cnxn: CnxnId, then: (now: Now) => void, kind: StepKind = 'request'): void {
    this.#job = job;
    this.#jobCnxn = cnxn;
    this.#jobWaited = this.#isAdvancing;
    this.#jobUnits += this.#budget.units;
    this.#afterJob = then;
    this.#jobKind = kind;
    this.#observer.jobBegan();
    this.#observer.stepEnded(kind);
  }

  /** Takes the next step of the job under way. Returns whether there is none left. */
  #runJob(now: Now): boolean {
    if (this.#job === undefined) return true;
    this.#jobUnits += this.#budget.units;
    if (this.#job.next(now).done !== true) {
      this.#observer.stepEnded(this.#jobKind);
      return false;
    }
    const then = this.#afterJob!;
    this.#job = undefined;
    this.#afterJob = undefined;
    this.#judging = undefined;
    this.#observer.jobEnded();
    this.#endsJob = true;
    then(now);
    this.#endsJob = false;
    return !this.busy;
  }

  /** Clients may always have more long work for a server. Whose session is due ends before the next of it begins. */
  #endSessions(now: Now): void {
    this.#leaveRoom();
    const job = this.#order.endSessions(now, this.#heardMs, this.#hasEnough);
    if (job !== undefined) this.#begin(job, noCnxn, nothing);
  }

  /** What others had of this step must not be at the cost of ends of sessions. */
  #leaveRoom(): void {
    this.#enough = Math.max(this.#enough, this.#work() + this.#budget.units / 4);
  }

  // ---- sessions ----------------------------------------------------------------------------------------------------------------------

  #handshake(cnxn: Cnxn, reader: Reader, now: Now): void {
    const outcome = this.#handshakes.request(cnxn, reader, now);
    if (outcome.kind === 'create') {
      this.#standInLine(cnxn, outcome.origin);
      this.#order.openSession(outcome.origin, cnxn.timeoutMs, now);
    } else if (outcome.kind === 'taken up') {
      this.#readmit(cnxn, now);
    }
  }

  #wakeOrder(now: Now): void {
    this.#leaveRoom();
    const job = this.#order.wake(now, this.#heardMs, this.#hasEnough);
    if (job !== undefined) this.#begin(job, noCnxn, nothing);
  }

  /** A closeSession has been applied, whoever asked for it. */
  #sessionClosed(high: number, low: number, cxid: number): void {
    const slot = this.#tracker.find(high, low);
    if (slot === -1) return;
    const cnxn = this.#cnxns.get(this.#tracker.cnxnOf(slot));
    const timeoutMs = this.#tracker.timeoutMs(slot);
    this.#tracker.remove(slot);
    // A client that asked for it need not be there any more.
    this.#observer.sessionClosed(sessionIdOf(high, low), cxid === 0, timeoutMs, cnxn?.context);
    if (cnxn === undefined) return;
    cnxn.slot = -1;
    // Who asked for it, and is there, still gets its reply. Another that asked for it too, at a server that the session has left, never would.
    const waitsForReply = cnxn.waiting.some((one) => one.kind === 'write' && closesSession(one) && one.cxid === cxid);
    if (!waitsForReply) this.#cnxns.close(cnxn, 'session expired');
  }
}

function nothing(): void {}

/** What judging a write costs besides what is counted for every request: a part of a multi, and an entry of an ACL, are short and take long. */
function unitsOfWrite(opCode: number, bytes: number): number {
  if (opCode === OpCode.multi) return bytes * unitsPerByteOfParts;
  return bytes / (opCode === OpCode.setACL ? bytesPerUnitOfAcl : bytesPerUnit);
}

function opCodeOf({ bytes }: ParkedFrame): number | undefined {
  return bytes.length < headerBytes ? undefined : bytes.readInt32BE(4);
}
