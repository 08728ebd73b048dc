/**
 * The states of a session, and the inputs that move it from one to another.
 *
 * The machine is pure. Inputs are method calls with the time; outputs go, in order, to the
 * receivers in `SessionOutputs`, which never call back. `deadline()` says when to call `wake` if
 * there is no other input before. So a test can play any sequence of events, and a simulator can
 * run real clients.
 *
 *     waiting ─wake─> connecting ─> handshaking ─> connected ─close─> closing ─> closed
 *        ^                │              │             │
 *        └─── cut off ────┴──────────────┴─────────────┘       rejected ─────────> closed
 *
 * The parts decide everything within a state: the next server (`DialPlan`) and the steps to a
 * connection (`ServerAttempt`), the pauses between attempts (`DialPacing`), the handshake
 * (`NegotiatedSession`), what goes first on a new connection (`SessionRestore`, `SessionAuth`),
 * pings (`KeepAlive`), which request an answer belongs to (`ReplyMatcher`), the search for a server
 * with a quorum (`QuorumProbe`), the closing request (`SessionEnd`). The parts never change the
 * state: they return what follows, and the machine does it.
 *
 * With SASL, the phase `authenticating` lies between handshaking and connected: both sides exchange
 * tokens, and everything else waits.
 *
 * A session outlives its connections, but requests do not. When a connection is lost, every earlier
 * request fails: its result is unknown, and no later request may be applied after one that was not.
 * Later requests wait for the next connection, until every address of every server has failed.
 * Before the first connection, requests wait as long as the session is being opened: that has its
 * own time limit (`connectTimeoutMs`), and a server that starts late should not make them fail.
 */
import {
  ErrorCode,
  FrameDecoder,
  type Millis,
  OpCode,
  ProtocolError,
  type Reader,
  readReplyHeader,
  type SessionId,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { AuthCall } from '../auth/credentials.ts';
import type { Random } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { ServerAddress, SrvRecord } from '../transport.ts';
import { DialPacing, takeoversMax } from './dial-pacing.ts';
import { DialPlan } from './dial-plan.ts';
import { Drain } from './drain.ts';
import type { CnxnLimit } from './grace-deadline.ts';
import type { HostProvider } from './host-provider.ts';
import { KeepAlive } from './keep-alive.ts';
import { NegotiatedSession } from './negotiated-session.ts';
import { Outbox } from './outbox.ts';
import { QuorumProbe } from './quorum-probe.ts';
import { type ReplyConsequence, ReplyMatcher } from './reply-matcher.ts';
import type { Request } from './request.ts';
import { ServerAttempt } from './server-attempt.ts';
import { SessionAuth } from './session-auth.ts';
import { type EndReason, SessionEnd } from './session-end.ts';
import { SessionLiveness } from './session-liveness.ts';
import type { SessionOptions } from './session-options.ts';
import type { SessionOutputs } from './session-output.ts';
import { SessionRestore } from './session-restore.ts';
import { localExpiryMs } from './timings.ts';

/** `connecting`: the steps of an attempt (`ServerAttempt`), up to an open connection. */
type Phase = 'waiting' | 'connecting' | 'handshaking' | 'authenticating' | 'connected' | 'closing' | 'closed';

/** An answer can be longer than the request that wrote the data: it adds a header and a Stat. */
const replyMarginBytes = 1024;

export class SessionMachine<R extends Request> {
  readonly #options: SessionOptions;
  readonly #output: SessionOutputs<R>;
  readonly #session: NegotiatedSession;
  readonly #outbox: Outbox<R>;
  readonly #dialPlan: DialPlan;
  readonly #pacing: DialPacing;
  readonly #attempt: ServerAttempt;
  readonly #keepAlive: KeepAlive;
  readonly #liveness: SessionLiveness;
  readonly #auth: SessionAuth;
  readonly #restore: SessionRestore;
  readonly #quorumProbe: QuorumProbe;
  readonly #drain: Drain;
  readonly #end: SessionEnd;
  /** Where several are due, the first counts. */
  readonly #limits: readonly CnxnLimit[];
  readonly #replies: ReplyMatcher<R>;

  #phase: Phase = 'waiting';
  /** Requests wait, however many attempts fail. */
  #waitsForFirstConnection: boolean;
  /** A connection or an attempt exists, and has neither ended by itself nor been closed. */
  #hasCnxn = false;
  #connectedAtMs: Millis = 0;
  #cnxnNumber = 0;
  #cutter: FrameDecoder;

  constructor(options: SessionOptions, hostProvider: HostProvider, random: Random, output: SessionOutputs<R>, nowMs: Millis) {
    const session = new NegotiatedSession(options);
    const outbox = new Outbox<R>(options.packetBytesMax);
    const keepAlive = new KeepAlive(session, nowMs);
    const liveness = new SessionLiveness(nowMs);
    const auth = new SessionAuth(options.auth, session, outbox, output.identities, output.cnxn);
    const restore = new SessionRestore(options.requestTimeoutMs, auth, outbox, output.watches);
    const drain = new Drain(outbox);
    const end = new SessionEnd(session, outbox);
    this.#options = options;
    this.#output = output;
    this.#session = session;
    this.#outbox = outbox;
    this.#dialPlan = new DialPlan(hostProvider, random, options);
    this.#pacing = new DialPacing(this.#dialPlan, session, random, nowMs);
    this.#attempt = new ServerAttempt(this.#dialPlan, session, output.cnxn);
    this.#keepAlive = keepAlive;
    this.#liveness = liveness;
    this.#auth = auth;
    this.#restore = restore;
    this.#quorumProbe = new QuorumProbe(this.#dialPlan, output.probes);
    this.#drain = drain;
    this.#end = end;
    this.#limits = [drain, restore, end];
    this.#replies = new ReplyMatcher({ outbox, session, auth, restore, keepAlive, liveness, end }, output);
    this.#waitsForFirstConnection = options.waitForFirstConnection;
    this.#cutter = new FrameDecoder(options.packetBytesMax + replyMarginBytes);
  }

  // --- State

  get sessionId(): SessionId {
    return this.#session.id;
  }

  get password(): Uint8Array {
    return this.#session.password;
  }

  get timeoutMs(): Millis {
    return this.#session.timeoutMs;
  }

  /**
   * The rest of the time-out since the last contact with a server with a quorum; 0 if there is no
   * session.
   */
  remainingMs(nowMs: Millis): Millis {
    if (this.#phase === 'closed' || !this.#session.isKnownToQuorum) return 0;
    return Math.max(0, this.#session.timeoutMs - (nowMs - this.#liveness.confirmedMs));
  }

  get lastZxid(): Zxid {
    return this.#session.lastZxid;
  }

  get isConnected(): boolean {
    return this.#phase === 'connected' || this.#phase === 'closing';
  }

  /** Start of the current or the last connection. */
  get connectedAtMs(): Millis {
    return this.#connectedAtMs;
  }

  /** Counts the connections made. */
  get cnxnNumber(): number {
    return this.#cnxnNumber;
  }

  /** A request submitted now is sent on the current connection, and not on the next one. */
  get sendsAtOnce(): boolean {
    return this.#phase === 'connected' && !this.#drain.isActive;
  }

  get isReadOnly(): boolean {
    return this.isConnected && this.#session.isServerReadOnly;
  }

  get isSuspended(): boolean {
    return !this.isConnected && this.#phase !== 'closed' && this.#session.isKnownToQuorum;
  }

  get endReason(): EndReason | undefined {
    return this.#end.reason;
  }

  /** The connected server, or the one that is tried. */
  get server(): ServerAddress | undefined {
    return this.#dialPlan.server;
  }

  /** Number of requests without an answer, including those whose caller no longer waits. */
  get pendingCount(): number {
    return this.#outbox.pendingCount;
  }

  get waitingCount(): number {
    return this.#outbox.waitingCount;
  }

  /** When to call `wake` if there is no other input before; undefined: never. */
  deadline(): Millis | undefined {
    const next = this.#phaseDeadline();
    const silence = this.#localExpiryDeadline();
    return next === undefined || silence === undefined ? next : Math.min(next, silence);
  }

  #phaseDeadline(): Millis | undefined {
    switch (this.#phase) {
      case 'waiting':
        return this.#pacing.dialAtMs;
      case 'connecting':
      case 'handshaking':
        return this.#attempt.deadlineMs;
      case 'authenticating':
        return Math.min(this.#keepAlive.readDeadlineMs, this.#auth.saslDeadlineMs);
      case 'connected':
      case 'closing': {
        const alive = Math.min(this.#keepAlive.deadlineMs, this.#drain.deadlineMs, this.#end.deadlineMs, this.#restore.deadlineMs);
        return this.#mayProbe ? Math.min(alive, this.#quorumProbe.deadlineMs) : alive;
      }
      case 'closed':
        return undefined;
    }
  }

  /** Another server may be better than the connected one. */
  get #mayProbe(): boolean {
    return this.#phase === 'connected' && !this.#drain.isActive && this.#session.isServerReadOnly;
  }

  #localExpiryDeadline(): Millis | undefined {
    if (!this.#options.expireLocally || this.#session.id === 0n || this.isConnected || this.#phase === 'closed') return undefined;
    return this.#keepAlive.lastReceivedMs + localExpiryMs(this.#session.timeoutMs);
  }

  // --- Inputs from the program

  /**
   * Accepts a request. Throws a RequestFailure if that is not possible; then nothing is changed.
   */
  submit(request: R): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#end.failure();
    if (this.sendsAtOnce) this.#outbox.addPending(request);
    else this.#outbox.addWaiting(request);
  }

  /**
   * The caller no longer waits for this request. Returns whether it was certainly not sent, and
   * will not be.
   */
  cancel(request: R): boolean {
    request.isCancelled = true;
    return request.xid === 0;
  }

  /** Adds credentials, for this connection and all later ones. */
  authenticate(call: AuthCall): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#end.failure();
    this.#auth.add(call, this.#phase === 'connected');
  }

  /**
   * Closes the connection, if there is one, for a reason of the caller: a server that answers only
   * pings shows no other sign of failure.
   */
  abandonCnxn(reason: string, nowMs: Millis): void {
    if (this.isConnected) this.#disconnect(reason, nowMs);
  }

  /** Ends the session. Earlier requests are answered first. */
  close(nowMs: Millis): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') return;
    if (this.#phase !== 'connected') {
      // Without a connection there is no server to ask: the ensemble expires the session after its
      // time-out.
      this.#finish('closed', undefined);
      return;
    }
    if (this.#drain.isActive) {
      // The client no longer moves, so send the kept requests here.
      this.#drain.stop();
      this.#outbox.sendWaiting();
    }
    this.#phase = 'closing';
    this.#end.requestClose(nowMs);
  }

  /** Ends a session that could not be opened, and fails waiting requests with the refusal. */
  abort(refusal: RequestFailure, nowMs: Millis): void {
    if (this.#phase === 'closed') return;
    if (this.isConnected) {
      this.close(nowMs);
      return;
    }
    this.#finish('closed', refusal.reason, refusal);
  }

  /**
   * Replaces the list of servers. Returns whether the client leaves the connected server, at random
   * to spread clients (`HostProvider.updateServerList`), or because that server is no longer in the
   * list. Pending requests are answered first; later ones wait for the next server.
   */
  updateServers(servers: readonly ServerAddress[], nowMs: Millis): boolean {
    if (this.#phase === 'closed') return false;
    const isLookingUpSrv = this.#isAtStep('resolveSrv');
    // A client that is leaving counts as a client of the server that it would have gone to.
    const isDraining = this.#drain.isActive;
    const isBetweenAttempts = isLookingUpSrv || isDraining || (this.#phase === 'waiting' && !this.#dialPlan.hasAddressesToTry);
    const moves = this.#dialPlan.updateServerList(servers, isBetweenAttempts);
    if (!moves && !isLookingUpSrv) return isDraining;
    this.#dialPlan.skipServer();
    switch (this.#phase) {
      case 'connected':
        if (!isDraining) this.#startDrain('moving to another server of the new list', nowMs);
        return true;
      case 'waiting':
      case 'closing':
        return false;
      default:
        this.#closeCnxn(false);
        this.#resetCnxn();
        this.#phase = 'waiting';
        this.#pacing.scheduleAfterPause(nowMs);
        return false;
    }
  }

  /** In the order in which they are tried. Empty until an SRV name has been resolved. */
  get servers(): readonly ServerAddress[] {
    return this.#dialPlan.servers;
  }

  /** Sends what the inputs of this turn have written. Call it after each turn of inputs. */
  flush(nowMs: Millis): void {
    if (!this.#canSend) return;
    const bytes = this.#outbox.takeBytes();
    if (bytes === undefined) return;
    this.#liveness.sent(this.#outbox.lastOrdinal, nowMs);
    this.#keepAlive.sent(nowMs);
    this.#output.cnxn.send(bytes);
  }

  // --- Inputs from the outside

  /** The addresses of the server to dial. */
  addressesResolved(addresses: readonly string[], nowMs: Millis): void {
    if (!this.#isAtStep('resolve')) return;
    this.#hasCnxn = false;
    this.#onStepEnd(this.#attempt.addressesResolved(addresses, nowMs), nowMs);
  }

  /** The servers of the SRV name. */
  srvResolved(records: readonly SrvRecord[], nowMs: Millis): void {
    if (!this.#isAtStep('resolveSrv')) return;
    this.#hasCnxn = false;
    this.#onStepEnd(this.#attempt.srvResolved(records, nowMs), nowMs);
  }

  #isAtStep(step: ServerAttempt['step']): boolean {
    return this.#phase === 'connecting' && this.#attempt.step === step;
  }

  /** A step of the attempt has ended; `failure` says why the attempt has failed, if it has. */
  #onStepEnd(failure: string | undefined, nowMs: Millis): void {
    if (failure === undefined) this.#hasCnxn = true;
    else this.#onDisconnected(failure, nowMs);
  }

  /** The connection is open. */
  cnxnOpened(nowMs: Millis): void {
    if (!this.#isAtStep('dial')) return;
    this.#phase = 'handshaking';
    this.#cutter = new FrameDecoder(this.#options.packetBytesMax + replyMarginBytes);
    this.#outbox.writeFrame((writer) => this.#session.writeHandshake(writer));
    this.flush(nowMs);
  }

  received(bytes: Buffer, nowMs: Millis): void {
    if (!this.#canSend) return;
    this.#keepAlive.received(nowMs);
    try {
      this.#cutter.feed(bytes, 0, bytes.length, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#disconnect(`the server sent invalid data: ${error.message}`, nowMs, error);
    }
    this.#maybeFinishDrain(nowMs);
  }

  /**
   * The next token of the SASL exchange; undefined: the exchange is complete, and both sides are
   * authenticated.
   */
  saslToken(token: Uint8Array | undefined, nowMs: Millis): void {
    if (this.#phase !== 'authenticating') return;
    if (token === undefined) {
      this.#becomeConnected(nowMs);
      return;
    }
    this.#auth.writeSaslToken(token);
    this.flush(nowMs);
  }

  /**
   * The SASL exchange has failed on this side: the server cannot be trusted, or no token can be
   * created.
   */
  saslFailed(reason: string): void {
    if (this.#phase !== 'authenticating') return;
    this.#failAuth(`${this.#dialPlan.description}: ${reason}`);
  }

  /** The connection was lost, or the attempt has failed. */
  cnxnClosed(error: string | undefined, nowMs: Millis): void {
    if (this.#phase === 'waiting' || this.#phase === 'closed') return;
    this.#hasCnxn = false;
    if (this.#phase === 'connecting') this.#onStepEnd(this.#attempt.stepFailed(error, nowMs), nowMs);
    else this.#onDisconnected(error === undefined ? 'the connection was closed by the server' : `the connection broke: ${error}`, nowMs);
  }

  /** The deadline has passed. */
  wake(nowMs: Millis): void {
    const silence = this.#localExpiryDeadline();
    if (silence !== undefined && nowMs >= silence) {
      this.#expire(`no server was reached for ${localExpiryMs(this.#session.timeoutMs)} ms`);
      return;
    }
    switch (this.#phase) {
      case 'waiting':
        if (nowMs >= this.#pacing.dialAtMs) this.#startAttempt(nowMs);
        break;
      case 'connecting':
      case 'handshaking':
        if (nowMs >= this.#attempt.deadlineMs) this.#onAttemptTimeout(nowMs);
        break;
      case 'authenticating':
        this.#onSaslWake(nowMs);
        break;
      case 'connected':
      case 'closing':
        this.#onConnectedWake(nowMs);
        break;
      case 'closed':
        break;
    }
  }

  #onAttemptTimeout(nowMs: Millis): void {
    this.#closeCnxn(false);
    this.#onStepEnd(this.#attempt.stepTimedOut(nowMs), nowMs);
  }

  #onSaslWake(nowMs: Millis): void {
    const missing = this.#auth.isSaslReplyDue ? 'the server did not answer' : 'no token was created';
    if (nowMs >= this.#keepAlive.readDeadlineMs)
      this.#disconnect(`the SASL exchange stalled: ${missing} for ${this.#keepAlive.readTimeoutMs} ms`, nowMs);
    else if (nowMs >= this.#auth.saslDeadlineMs)
      this.#disconnect(`the SASL exchange timed out after ${this.#session.effectiveTimeoutMs} ms`, nowMs);
  }

  /** At most one of the limits is applied per wake: the first may end the connection. */
  #onConnectedWake(nowMs: Millis): void {
    const limit = this.#limits.find((each) => each.isDue(nowMs));
    if (limit !== undefined) {
      if (!limit.maybeExtend(nowMs)) this.#disconnect(limit.overdueReason, nowMs);
      return;
    }
    if (this.#mayProbe && nowMs >= this.#quorumProbe.deadlineMs) this.#quorumProbe.start(nowMs);
    this.#pingOrLeave(nowMs);
  }

  #pingOrLeave(nowMs: Millis): void {
    switch (this.#keepAlive.due(nowMs)) {
      case 'leave':
        this.#disconnect(`received nothing for ${this.#keepAlive.readTimeoutMs} ms`, nowMs);
        break;
      case 'ping':
        this.#outbox.writeRequest(Xid.ping, OpCode.ping);
        this.#keepAlive.pinged();
        this.#liveness.pinged(nowMs);
        this.flush(nowMs);
        break;
      case undefined:
        break;
    }
  }

  /** The result of a probe of a server at this address. */
  probed(hasQuorum: boolean, address: string | undefined, nowMs: Millis): void {
    const server = this.#quorumProbe.finish();
    if (server === undefined || !hasQuorum || this.#phase !== 'connected') return;
    // The list may have changed meanwhile.
    if (this.#drain.isActive || !this.#dialPlan.prefer(server, address ?? server.host)) return;
    this.#startDrain(`moving from this read-only server to ${formatServer(server)}, which has a quorum`, nowMs);
  }

  #startDrain(reason: string, nowMs: Millis): void {
    this.#drain.start(reason, nowMs);
    this.#maybeFinishDrain(nowMs);
  }

  #maybeFinishDrain(nowMs: Millis): void {
    const reason = this.#drain.reasonToLeave;
    if (reason !== undefined) this.#disconnect(reason, nowMs);
  }

  // --- Connections

  get #canSend(): boolean {
    return this.#phase === 'handshaking' || this.#phase === 'authenticating' || this.isConnected;
  }

  #startAttempt(nowMs: Millis): void {
    this.#phase = 'connecting';
    this.#hasCnxn = true;
    this.#attempt.start(nowMs);
  }

  /** Closes the connection. */
  #disconnect(reason: string, nowMs: Millis, cause?: unknown): void {
    this.#closeCnxn(false);
    this.#onDisconnected(reason, nowMs, { cause, isOwnDoing: true });
  }

  #closeCnxn(gracefully: boolean): void {
    if (!this.#hasCnxn) return;
    this.#hasCnxn = false;
    this.#cutter.close();
    this.#output.cnxn.closeCnxn(gracefully);
  }

  /** The connection no longer exists. */
  #onDisconnected(
    what: string,
    nowMs: Millis,
    { cause, isOwnDoing: isByClient = false }: { readonly cause?: unknown; readonly isOwnDoing?: boolean } = {},
  ): void {
    const { description } = this.#dialPlan;
    const reason = `${description}: ${what}`;
    const phase = this.#phase;
    const wasDraining = this.#drain.isActive;
    // Requests for the next server followed unanswered ones, so they must not be applied without
    // them.
    const isOrderBroken = wasDraining && this.#outbox.pendingCount > 0;
    this.#resetCnxn();
    if (phase === 'closing') {
      this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
      this.#finish('closed', undefined);
      return;
    }
    const wasConnected = phase === 'connected';
    if (wasConnected) this.#pacing.cnxnLost(nowMs - this.#connectedAtMs, isByClient, wasDraining);
    if (this.#options.yieldSession && this.#pacing.isTakenOver) {
      this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
      this.#finish(
        'moved',
        `${reason}, for the ${takeoversMax}th time in a row right after the connection was made: another client uses this session`,
      );
      return;
    }
    this.#phase = 'waiting';
    this.#pacing.schedule(phase === 'connecting' && this.#attempt.step === 'dial', wasDraining, nowMs);
    const isRoundOver = !wasConnected && this.#dialPlan.attemptFailed();
    this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
    if (isOrderBroken || (isRoundOver && !this.#waitsForFirstConnection))
      this.#failWaiting(new RequestFailure(ErrorCode.ConnectionLoss, 'notSent', reason, { cause }));
    this.#output.states.connectionFailed(description, what);
    if (wasConnected) this.#output.states.state('Disconnected', reason);
  }

  #resetCnxn(): void {
    this.#cutter.close();
    this.#outbox.clearBytes();
    this.#keepAlive.disconnected();
    this.#liveness.disconnected();
    this.#restore.disconnected();
    this.#auth.disconnected();
    this.#quorumProbe.disconnected();
    this.#drain.stop();
  }

  #failPending(errno: number, reason: string, cause?: unknown): void {
    for (const { request, outcome } of this.#outbox.dropPending())
      this.#output.calls.failed(request, new RequestFailure(errno, outcome, reason, { cause }));
  }

  #failWaiting(refusal: RequestFailure): void {
    for (const request of this.#outbox.dropWaiting()) this.#output.calls.failed(request, refusal);
  }

  // --- Input from servers

  /** Processes one frame, which has arrived just now. Returns whether another may follow. */
  readonly #onFrame = (reader: Reader): boolean => {
    const nowMs = this.#keepAlive.lastReceivedMs;
    if (this.#phase === 'handshaking') this.#onHandshakeReply(reader, nowMs);
    else if (this.#phase === 'authenticating') this.#onSaslReply(reader, nowMs);
    else if (this.isConnected) {
      const consequence = this.#replies.onReply(reader, nowMs);
      if (consequence !== undefined) this.#onConsequence(consequence, nowMs);
    }
    return this.#canSend;
  };

  #onHandshakeReply(reader: Reader, nowMs: Millis): void {
    const result = this.#session.onHandshakeReply(reader, this.#dialPlan.description);
    switch (result.kind) {
      case 'refused':
        this.#disconnect(result.reason, nowMs);
        return;
      case 'expired':
        this.#expire(result.reason);
        return;
      case 'opened':
    }
    if (!this.#session.isServerReadOnly) this.#liveness.opened(this.#keepAlive.lastSentMs);
    if (!this.#options.sasl) {
      this.#becomeConnected(nowMs);
      return;
    }
    this.#phase = 'authenticating';
    this.#auth.startSasl(this.#dialPlan.server!, nowMs);
  }

  #onSaslReply(reader: Reader, nowMs: Millis): void {
    const { xid, err } = readReplyHeader(reader);
    if (!this.#auth.saslAnswered(xid)) this.#disconnect(`the server answered request ${xid}, which was not sent`, nowMs);
    else if (err !== ErrorCode.Ok) this.#failAuth(`${this.#dialPlan.description} rejected the SASL identity (error ${err})`);
    else this.#auth.continueSasl(reader);
  }

  /** The server is ready for the program's requests. */
  #becomeConnected(nowMs: Millis): void {
    this.#phase = 'connected';
    this.#waitsForFirstConnection = false;
    this.#connectedAtMs = nowMs;
    this.#cnxnNumber++;
    this.#quorumProbe.connected(nowMs);
    this.#dialPlan.connected();
    this.#restore.start(this.#session.lastZxid, nowMs);
    this.#outbox.sendWaiting();
    this.#output.states.state(this.#session.isServerReadOnly ? 'ConnectedReadOnly' : 'SyncConnected', undefined);
    this.flush(nowMs);
  }

  #onConsequence(consequence: ReplyConsequence, nowMs: Millis): void {
    switch (consequence.kind) {
      case 'invalid':
        this.#disconnect(consequence.reason, nowMs);
        break;
      case 'closed':
        this.#finish('closed', undefined);
        break;
      case 'authRejected':
        this.#onAuthRejected(consequence.call);
        break;
    }
  }

  /**
   * ZooKeeper's rule: a session with rejected credentials ends, whatever else they would have
   * allowed.
   */
  #onAuthRejected(call: AuthCall): void {
    const reason = `${this.#dialPlan.description} rejected the credentials for scheme ${call.credentials.scheme}`;
    this.#closeCnxn(false);
    this.#auth.rejected(call, reason);
    this.#failPending(ErrorCode.AuthFailed, reason);
    this.#finish('authFailed', reason);
  }

  /** The same for SASL: otherwise a session meant for an identity would continue without it. */
  #failAuth(reason: string): void {
    this.#closeCnxn(false);
    this.#finish('authFailed', reason);
  }

  // --- The end

  #expire(reason: string): void {
    this.#failPending(ErrorCode.SessionExpired, reason);
    this.#finish('expired', reason);
  }

  #finish(endReason: EndReason, reason: string | undefined, why?: RequestFailure): void {
    // Cancel an attempt in progress at once; after an answer there is nothing left to receive.
    this.#closeCnxn(this.isConnected || this.#phase === 'handshaking');
    this.#resetCnxn();
    this.#phase = 'closed';
    this.#end.ended(endReason, why?.reason);
    const refusal = why ?? this.#end.failure(reason);
    this.#failWaiting(refusal);
    this.#auth.failAll(refusal);
    this.#output.states.state(endReason === 'expired' ? 'Expired' : endReason === 'authFailed' ? 'AuthFailed' : 'Closed', reason);
  }
}
