/**
 * The state machine of a session: which server to try, when to ping, when to close a connection,
 * which request an answer belongs to.
 *
 * The machine is pure. Inputs are method calls with the time; outputs go, in order, to a
 * `SessionOutput`, which never calls back. `deadline()` says when to call `wake` if there is no other
 * input before. So a test can play any sequence of events, and a simulator can run real clients.
 *
 *     waiting ─wake─> resolving ─> dialling ─> handshaking ─> connected ─close─> closing ─> closed
 *        ^                │           │             │             │
 *        └────────────────┴─ cut off ─┴─────────────┴─────────────┘       rejected ─────────> closed
 *
 * An attempt at a server tries each address of its name until one of them leads to a session.
 * Before that, an SRV name may have to be resolved to servers: at first, and whenever all servers
 * have failed.
 *
 * With SASL, the phase `authenticating` lies between handshaking and connected: both sides exchange
 * tokens, and everything else waits.
 *
 * A session outlives its connections, but requests do not. When a connection is lost, every earlier
 * request fails: its result is unknown, and no later request may be applied after one that was not.
 * Later requests wait for the next connection, until every address of every server has failed.
 * Before the first connection, requests wait as long as the session is being opened: that has its
 * own time limit (`giveUp`), and a server that starts late should not make them fail.
 */
import {
  ErrorCode,
  FrameDecoder,
  formatSessionId,
  type Millis,
  OpCode,
  operations,
  ProtocolError,
  type Reader,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  replyHeaderBytes,
  type SessionId,
  sessionPasswordBytes,
  type WatcherEvent,
  writeAuthRequest,
  writeConnectRequest,
  Writer,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { Random } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { ResolvedAddress, ServerAddress, SrvRecord } from '../transport.ts';
import type { KeeperState } from '../watched-event.ts';
import { Fifo } from './fifo.ts';
import type { HostProvider } from './host-provider.ts';
import { SessionLiveness } from './session-liveness.ts';
import { Outbox } from './outbox.ts';
import type { Request } from './request.ts';
import { DialPlan, type DialPlanOptions, type DialStep } from './dial-plan.ts';
import {
  backoffMs,
  connectTimeoutMs,
  lateWakeGraceMs,
  lateWakeMs,
  drainMsMax,
  effectiveTimeoutMs,
  pingAfterMs,
  readTimeoutMs,
  localExpiryMs,
  stableMs,
} from './timings.ts';

/** The proof of an identity: a scheme and its data, such as `digest` and `user:password`. */
export interface Credentials {
  readonly scheme: string;
  readonly auth: Uint8Array;
}

/**
 * Credentials whose caller waits for the first answer. One object per call, which identifies the
 * call.
 */
export interface AuthCall {
  readonly credentials: Credentials;
}

export interface SessionOptions extends DialPlanOptions {
  /** The requested time-out; a server grants it or the nearest value that it allows. */
  readonly sessionTimeoutMs: Millis;
  /** Whether to accept a server without a quorum. */
  readonly readOnly: boolean;
  /**
   * Maximum length of a frame to a server, and with a small margin of one from it: jute.maxbuffer.
   */
  readonly packetBytesMax: number;
  /** The session to resume; undefined for a new one. */
  readonly session: { readonly id: SessionId; readonly password: Uint8Array } | undefined;
  /** Sent to every server, in this order. */
  readonly auth: readonly AuthCall[];
  /**
   * Whether to declare the session expired after 4/3 of its time-out without a server, as
   * ZooKeeper's client does since 3.9, instead of waiting for a server to say so.
   */
  readonly expireLocally: boolean;
  /**
   * Whether to leave the session to another client that uses it too, instead of taking it back for
   * ever.
   */
  readonly yieldSession: boolean;
  /**
   * Whether requests wait for the first connection as long as the session is being opened, which
   * the owner limits (`giveUp`). If not, they fail after all servers have failed, as after the loss
   * of a connection.
   */
  readonly waitForFirstConnection: boolean;
  /** Whether to prove an identity by SASL on each connection, before any request. */
  readonly sasl: boolean;
  /**
   * How long a server may take for the session's own requests on a new connection: identities,
   * watches. undefined: no limit.
   */
  readonly requestTimeoutMs: Millis | undefined;
}

/** The outputs of the machine, in order. An implementation must not call the machine back. */
export interface SessionOutput<R extends Request> {
  /** Resolve a name; then call `resolved` or `disconnected`. */
  resolve(host: string): void;
  /** Resolve an SRV name; then call `srvResolved` or `disconnected`. */
  resolveSrv(name: string): void;
  dial(address: ResolvedAddress): void;
  /**
   * Ask this server, on a separate connection, whether it is part of a quorum; then call `probed`.
   */
  probe(server: ServerAddress): void;
  /** Send bytes on the connection; the receiver owns them. */
  send(bytes: Buffer): void;
  /**
   * Start a SASL exchange for this connection; then call `saslToken` or `saslFailed`, unless the
   * connection ends first.
   */
  startSasl(server: ServerAddress): void;
  /**
   * The server's answer to the last token; null: accepted without a token. The receiver owns the
   * bytes. Then call `saslToken` or `saslFailed`.
   */
  continueSasl(challenge: Buffer | null): void;
  /**
   * Close the connection, or cancel the attempt or the look-up. `gently`: send what is queued
   * first.
   */
  closeCnxn(gracefully: boolean): void;
  /** The answer to a request. Throws a ProtocolError if it cannot be read. */
  answered(request: R, err: number, reader: Reader, zxid: Zxid): void;
  failed(request: R, refusal: RequestFailure): void;
  authenticated(call: AuthCall): void;
  authFailed(call: AuthCall, refusal: RequestFailure): void;
  event(event: WatcherEvent, zxid: Zxid): void;
  /** A connection to this place was lost, or an attempt has failed. */
  connectionFailed(server: string, reason: string): void;
  state(state: KeeperState, reason: string | undefined): void;
  /** The requests that set watches again, on a server that compares with this zxid. */
  restoreWatches(lastZxid: Zxid): Iterable<{ readonly opCode: OpCode; write(writer: Writer): void }>;
}

interface Drain {
  readonly reason: string;
  readonly untilMs: Millis;
}

type Phase = 'waiting' | 'resolvingSrv' | 'resolving' | 'dialling' | 'handshaking' | 'authenticating' | 'connected' | 'closing' | 'closed';

/**
 * Why a client has ended.
 *
 * - `closed`: `close` was called.
 * - `expired`: the ensemble has expired the session, and its ephemerals are gone.
 * - `authFailed`: a server has rejected an identity.
 * - `moved`: the client has left the session to another client of it (`yieldSession`); the session
 *   continues there.
 */
export type EndReason = 'closed' | 'expired' | 'authFailed' | 'moved';

/** An answer can be longer than the request that wrote the data: it adds a header and a Stat. */
const replyMarginBytes = 1024;
/**
 * A failing server may close two or three connections early; this many in a row mean another client
 * that takes the session each time.
 */
const takeoversMax = 5;
/** Pauses between probes for a server with a quorum, doubling, as in ZooKeeper's client. */
const probePauseMsMin = 100;
const probePauseMsMax = 60_000;
const noPassword = Buffer.alloc(sessionPasswordBytes);

export class SessionMachine<R extends Request> {
  readonly #options: SessionOptions;
  readonly #dialPlan: DialPlan;
  readonly #random: Random;
  readonly #output: SessionOutput<R>;
  readonly #liveness: SessionLiveness;

  #phase: Phase = 'waiting';
  #endReason: EndReason | undefined;
  /** Why the session was closed, if the program did not close it. */
  #closeReason: string | undefined;
  /** Requests wait, however many attempts fail. */
  #waitsForFirstConnection: boolean;
  /** Consecutive connections that were good and did not last. */
  #takeovers = 0;
  /** The client leaves for another server as soon as pending requests are answered. */
  #drain: Drain | undefined;
  /** A connection or an attempt exists, and has neither ended by itself nor been closed. */
  #hasCnxn = false;
  #isServerReadOnly = false;

  #sessionId: SessionId;
  #password: Uint8Array;
  /** The granted time-out; before that, the requested one. */
  #timeoutMs: Millis;
  /** The time-out that the client's own limits are based on. */
  #effectiveTimeoutMs: Millis;
  /**
   * Other servers do not know an id that a read-only server has assigned, so the client sends it to
   * them only after one of them has seen it.
   */
  #isKnownToQuorum: boolean;
  /**
   * Highest zxid of an answer. A server that has not applied it must not serve this client. Events
   * do not count: others of the same txn may follow.
   */
  #lastZxid: Zxid = 0;

  #cutter: FrameDecoder;
  readonly #outbox: Outbox<R>;
  #pingsUnanswered = 0;
  #setWatchesUnanswered = 0;
  /** Number of unanswered identities that were sent again when the connection was made. */
  #authsToRestore = 0;
  /** When the server must have answered those and the watches. */
  #restoreDeadlineMs: Millis = Infinity;
  #closeXid = 0;
  /** While closing: when the next answer is due at the latest. */
  #closeDeadlineMs: Millis = 0;
  /** When the SASL exchange must be complete. */
  #saslDeadlineMs: Millis = 0;
  /** xid of the unanswered SASL token; 0 while a token is being created. */
  #saslXid = 0;

  readonly #credentials: AuthCall[];
  /** Credentials without a first answer: their callers wait. */
  readonly #authsWithoutVerdict: Set<AuthCall>;
  /** Sent on this connection and not answered. */
  readonly #pendingAuths = new Fifo<AuthCall>();

  #dialAtMs: Millis;
  #attemptStartMs: Millis = 0;
  #connectedAtMs: Millis = 0;
  #lastReceivedMs: Millis;
  #lastSentMs: Millis = 0;
  #failures = 0;

  /** When to probe for a server with a quorum next, while connected to one without. */
  #probeAtMs: Millis = 0;
  #probePauseMs: Millis = 0;
  #probedServer: ServerAddress | undefined;

  constructor(options: SessionOptions, hostProvider: HostProvider, random: Random, output: SessionOutput<R>, nowMs: Millis) {
    this.#options = options;
    this.#waitsForFirstConnection = options.waitForFirstConnection;
    this.#dialPlan = new DialPlan(hostProvider, random, options);
    this.#outbox = new Outbox(options.packetBytesMax);
    this.#random = random;
    this.#output = output;
    this.#sessionId = options.session?.id ?? 0n;
    this.#password = options.session?.password ?? noPassword;
    this.#timeoutMs = this.#effectiveTimeoutMs = options.sessionTimeoutMs;
    this.#isKnownToQuorum = this.#sessionId !== 0n;
    this.#credentials = [...options.auth];
    this.#authsWithoutVerdict = new Set(options.auth);
    this.#cutter = new FrameDecoder(options.packetBytesMax + replyMarginBytes);
    this.#dialAtMs = nowMs;
    this.#lastReceivedMs = nowMs;
    this.#liveness = new SessionLiveness(nowMs);
  }

  // --- State

  get sessionId(): SessionId {
    return this.#sessionId;
  }

  get password(): Uint8Array {
    return this.#password;
  }

  get timeoutMs(): Millis {
    return this.#timeoutMs;
  }

  /**
   * The rest of the time-out since the last contact with a server with a quorum; 0 if there is no
   * session.
   */
  remainingMs(nowMs: Millis): Millis {
    if (this.#phase === 'closed' || !this.#isKnownToQuorum) return 0;
    return Math.max(0, this.#timeoutMs - (nowMs - this.#liveness.confirmedMs));
  }

  get lastZxid(): Zxid {
    return this.#lastZxid;
  }

  get isConnected(): boolean {
    return this.#phase === 'connected' || this.#phase === 'closing';
  }

  /** Start of the current or the last connection. */
  get connectedAtMs(): Millis {
    return this.#connectedAtMs;
  }

  get isReadOnly(): boolean {
    return this.isConnected && this.#isServerReadOnly;
  }

  get isSuspended(): boolean {
    return !this.isConnected && this.#phase !== 'closed' && this.#isKnownToQuorum;
  }

  get endReason(): EndReason | undefined {
    return this.#endReason;
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
        return this.#dialAtMs;
      case 'resolvingSrv':
      case 'resolving':
      case 'dialling':
      case 'handshaking':
        return this.#attemptStartMs + this.#attemptTimeoutMs;
      case 'authenticating':
        return Math.min(this.#lastReceivedMs + readTimeoutMs(this.#effectiveTimeoutMs), this.#saslDeadlineMs);
      case 'connected':
      case 'closing': {
        const alive = Math.min(
          this.#lastReceivedMs + readTimeoutMs(this.#effectiveTimeoutMs),
          this.#lastSentMs + pingAfterMs(this.#effectiveTimeoutMs),
          this.#drain?.untilMs ?? Infinity,
          this.#phase === 'closing' ? this.#closeDeadlineMs : Infinity,
          this.#isRestoring ? this.#restoreDeadlineMs : Infinity,
        );
        return this.#shouldProbe ? Math.min(alive, this.#probeAtMs) : alive;
      }
      case 'closed':
        return undefined;
    }
  }

  get #attemptTimeoutMs(): Millis {
    const { servers, addresses } = this.#dialPlan.shares;
    return connectTimeoutMs(this.#effectiveTimeoutMs, servers, addresses);
  }

  get #isRestoring(): boolean {
    return this.#setWatchesUnanswered > 0 || this.#authsToRestore > 0;
  }

  get #shouldProbe(): boolean {
    return this.#phase === 'connected' && this.#drain === undefined && this.#isServerReadOnly && this.#probedServer === undefined;
  }

  #localExpiryDeadline(): Millis | undefined {
    if (!this.#options.expireLocally || this.#sessionId === 0n || this.isConnected || this.#phase === 'closed') return undefined;
    return this.#lastReceivedMs + localExpiryMs(this.#timeoutMs);
  }

  // --- Inputs from the program

  /** Accepts a request. Throws a Refusal if that is not possible; then nothing is changed. */
  submit(request: R): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#endFailure('notSent');
    if (this.#phase === 'connected' && this.#drain === undefined) this.#outbox.addPending(request);
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
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#endFailure('notSent');
    this.#credentials.push(call);
    this.#authsWithoutVerdict.add(call);
    if (this.#phase === 'connected') this.#writeAuth(call);
  }

  /**
   * Closes the connection, if there is one, for a reason of the caller: a server that answers only
   * pings shows no other sign of failure.
   */
  abandonCnxn(reason: string, nowMs: Millis): void {
    if (this.isConnected) this.#disconnect(reason, nowMs);
  }

  /**
   * Ends the session. Earlier requests are answered first. If the server answers nothing for as
   * long as the session's time-out, the client closes the connection; the session then expires by
   * itself, as it gets no more pings.
   */
  close(nowMs: Millis): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') return;
    if (this.#phase !== 'connected') {
      // Without a connection there is no server to ask: the ensemble expires the session after its
      // time-out.
      this.#end('closed', undefined);
      return;
    }
    if (this.#drain !== undefined) {
      // The client no longer moves, so send the kept requests here.
      this.#drain = undefined;
      this.#outbox.sendWaiting();
    }
    this.#phase = 'closing';
    this.#closeDeadlineMs = nowMs + this.#effectiveTimeoutMs;
    this.#closeXid = this.#outbox.nextXid();
    this.#outbox.writeRequest(this.#closeXid, OpCode.closeSession);
  }

  /** Ends a session that could not be opened, and fails waiting requests with the refusal. */
  abort(refusal: RequestFailure, nowMs: Millis): void {
    if (this.#phase === 'closed') return;
    if (this.isConnected) {
      this.close(nowMs);
      return;
    }
    this.#closeReason = refusal.reason;
    this.#end('closed', refusal.reason, refusal);
  }

  /**
   * Replaces the list of servers. Returns whether the client leaves the connected server, at random
   * to spread clients (`HostProvider.update`), or because that server is not in the list any more.
   * Pending requests are answered first; later ones wait for the next server.
   */
  updateServers(servers: readonly ServerAddress[], nowMs: Millis): boolean {
    if (this.#phase === 'closed') return false;
    const isLookingUpSrv = this.#phase === 'resolvingSrv';
    // A client that is leaving counts as a client of the server that it would have gone to.
    const isDraining = this.#drain !== undefined;
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
        this.#dialAtMs = nowMs + backoffMs(this.#random, this.#failures, this.#effectiveTimeoutMs);
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
    this.#lastSentMs = nowMs;
    this.#output.send(bytes);
  }

  // --- Inputs from the outside

  /** The addresses of the server to dial. */
  addressesResolved(addresses: readonly string[], nowMs: Millis): void {
    if (this.#phase !== 'resolving') return;
    this.#hasCnxn = false;
    const step = this.#dialPlan.addressesResolved(addresses);
    if (step === undefined) this.#onDisconnected(`the name ${this.#dialPlan.server!.host} has no address`, nowMs);
    else this.#runStep(step, nowMs);
  }

  /** The servers of the SRV name. */
  srvResolved(records: readonly SrvRecord[], nowMs: Millis): void {
    if (this.#phase !== 'resolvingSrv') return;
    this.#hasCnxn = false;
    const step = this.#dialPlan.srvResolved(records);
    if (step === undefined) this.#srvLookupFailed('SRV lookup found no servers', nowMs);
    else this.#runStep(step, nowMs);
  }

  #srvLookupFailed(reason: string, nowMs: Millis): void {
    const step = this.#dialPlan.srvLookupFailed();
    if (step === undefined) this.#onDisconnected(reason, nowMs);
    else this.#runStep(step, nowMs);
  }

  /** The connection is open. */
  cnxnOpened(nowMs: Millis): void {
    if (this.#phase !== 'dialling') return;
    this.#phase = 'handshaking';
    this.#outbox.writeFrame((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: this.#lastZxid,
        timeOut: this.#options.sessionTimeoutMs,
        sessionId: this.#isKnownToQuorum ? this.#sessionId : 0n,
        passwd: this.#isKnownToQuorum ? this.#password : noPassword,
        readOnly: this.#options.readOnly,
      }),
    );
    this.flush(nowMs);
  }

  received(bytes: Buffer, nowMs: Millis): void {
    if (!this.#canSend) return;
    this.#lastReceivedMs = nowMs;
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
    this.#saslXid = this.#outbox.nextXid();
    this.#outbox.writeRequest(this.#saslXid, OpCode.sasl, (writer) => operations.sasl.request.write(writer, { token }));
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
    const because = error === undefined ? '' : `: ${error}`;
    switch (this.#phase) {
      case 'resolvingSrv':
        this.#srvLookupFailed(`SRV lookup failed${because}`, nowMs);
        break;
      case 'resolving':
        this.#onDisconnected(`address lookup failed${because}`, nowMs);
        break;
      case 'dialling':
        this.#onDisconnected(`connection failed${because}`, nowMs);
        break;
      default:
        this.#onDisconnected(error === undefined ? 'the connection was closed by the server' : `the connection broke${because}`, nowMs);
    }
  }

  /** The deadline has passed. */
  wake(nowMs: Millis): void {
    const silence = this.#localExpiryDeadline();
    if (silence !== undefined && nowMs >= silence) {
      this.#expire(`no server was reached for ${localExpiryMs(this.#timeoutMs)} ms`);
      return;
    }
    switch (this.#phase) {
      case 'waiting':
        if (nowMs >= this.#dialAtMs) this.#runStep(this.#dialPlan.nextStep(), nowMs);
        break;
      case 'resolvingSrv':
      case 'resolving':
      case 'dialling':
      case 'handshaking':
        if (nowMs >= this.#attemptStartMs + this.#attemptTimeoutMs) this.#onAttemptTimeout(nowMs);
        break;
      case 'authenticating': {
        const limit = readTimeoutMs(this.#effectiveTimeoutMs);
        const missing = this.#saslXid === 0 ? 'no token was created' : 'the server did not answer';
        if (nowMs >= this.#lastReceivedMs + limit) this.#disconnect(`the SASL exchange stalled: ${missing} for ${limit} ms`, nowMs);
        else if (nowMs >= this.#saslDeadlineMs) this.#disconnect(`the SASL exchange timed out after ${this.#effectiveTimeoutMs} ms`, nowMs);
        break;
      }
      case 'connected':
      case 'closing':
        if (this.#drain !== undefined && nowMs >= this.#drain.untilMs) {
          this.#onDrainDeadline(this.#drain, nowMs);
          break;
        }
        if (this.#isRestoring && nowMs >= this.#restoreDeadlineMs) {
          this.#onRestoreDeadline(nowMs);
          break;
        }
        if (this.#phase === 'closing' && nowMs >= this.#closeDeadlineMs) {
          this.#onCloseDeadline(nowMs);
          break;
        }
        if (this.#shouldProbe && nowMs >= this.#probeAtMs) this.#probe(nowMs);
        this.#keepAlive(nowMs);
        break;
      case 'closed':
        break;
    }
  }

  #onAttemptTimeout(nowMs: Millis): void {
    const limit = `timed out after ${this.#attemptTimeoutMs} ms`;
    if (this.#phase === 'resolvingSrv') {
      this.#closeCnxn(false);
      this.#srvLookupFailed(`SRV lookup ${limit}`, nowMs);
      return;
    }
    this.#disconnect(this.#phase === 'resolving' ? `address lookup ${limit}` : `opening the session ${limit}`, nowMs);
  }

  #probe(nowMs: Millis): void {
    this.#probedServer = this.#dialPlan.nextToProbe();
    this.#probeAtMs = nowMs + this.#probePauseMs;
    this.#probePauseMs = Math.min(this.#probePauseMs * 2, probePauseMsMax);
    this.#output.probe(this.#probedServer);
  }

  /** The result of a probe of a server at this address. */
  probed(hasQuorum: boolean, address: string | undefined, nowMs: Millis): void {
    const server = this.#probedServer;
    this.#probedServer = undefined;
    if (server === undefined || !hasQuorum || this.#phase !== 'connected') return;
    // The list may have changed meanwhile.
    if (this.#drain !== undefined || !this.#dialPlan.prefer(server, address ?? server.host)) return;
    this.#startDrain(`moving from this read-only server to ${formatServer(server)}, which has a quorum`, nowMs);
  }

  /** A voluntary move must not lose calls. */
  #startDrain(reason: string, nowMs: Millis): void {
    this.#drain = { reason, untilMs: nowMs + drainMsMax };
    this.#maybeFinishDrain(nowMs);
  }

  #onDrainDeadline({ reason, untilMs }: Drain, nowMs: Millis): void {
    if (nowMs - untilMs <= lateWakeMs) this.#disconnect(reason, nowMs);
    // As in `#keepAlive`: the answers may have arrived while the process was paused.
    else this.#drain = { reason, untilMs: nowMs + lateWakeGraceMs };
  }

  #onRestoreDeadline(nowMs: Millis): void {
    if (nowMs - this.#restoreDeadlineMs <= lateWakeMs)
      this.#disconnect(`restoring identities and watches timed out after ${this.#options.requestTimeoutMs} ms`, nowMs);
    else this.#restoreDeadlineMs = nowMs + lateWakeGraceMs;
  }

  #onCloseDeadline(nowMs: Millis): void {
    if (nowMs - this.#closeDeadlineMs <= lateWakeMs)
      this.#disconnect(`closing the session timed out after ${this.#effectiveTimeoutMs} ms without an answer`, nowMs);
    // As above.
    else this.#closeDeadlineMs = nowMs + lateWakeGraceMs;
  }

  #maybeFinishDrain(nowMs: Millis): void {
    if (this.#drain !== undefined && this.#outbox.pendingCount === 0) this.#disconnect(this.#drain.reason, nowMs);
  }

  #keepAlive(nowMs: Millis): void {
    const readTimeout = readTimeoutMs(this.#effectiveTimeoutMs);
    const pingAfter = pingAfterMs(this.#effectiveTimeoutMs);
    const due = Math.min(this.#lastReceivedMs + readTimeout, this.#lastSentMs + pingAfter);
    if (nowMs - due > lateWakeMs) {
      // Timers run before input: what the server has sent while the process was paused has not been
      // read yet.
      this.#lastReceivedMs = Math.max(this.#lastReceivedMs, nowMs - readTimeout + Math.min(lateWakeGraceMs, readTimeout / 2));
    }
    if (nowMs >= this.#lastReceivedMs + readTimeout) {
      this.#disconnect(`received nothing for ${readTimeout} ms`, nowMs);
    } else if (nowMs >= this.#lastSentMs + pingAfter) {
      this.#outbox.writeRequest(Xid.ping, OpCode.ping);
      this.#pingsUnanswered++;
      this.#liveness.pinged(nowMs);
      this.flush(nowMs);
    }
  }

  // --- Connections

  get #canSend(): boolean {
    return this.#phase === 'handshaking' || this.#phase === 'authenticating' || this.isConnected;
  }

  /** Starts the next step of an attempt. */
  #runStep(step: DialStep, nowMs: Millis): void {
    this.#attemptStartMs = nowMs;
    this.#hasCnxn = true;
    switch (step.kind) {
      case 'resolveSrv':
        this.#phase = 'resolvingSrv';
        this.#output.resolveSrv(step.name);
        break;
      case 'resolve':
        this.#phase = 'resolving';
        this.#output.resolve(step.host);
        break;
      case 'dial':
        this.#phase = 'dialling';
        this.#cutter = new FrameDecoder(this.#options.packetBytesMax + replyMarginBytes);
        this.#output.dial(step.address);
        break;
    }
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
    this.#output.closeCnxn(gracefully);
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
    const wasDraining = this.#drain !== undefined;
    // Requests for the next server followed unanswered ones, so they must not be applied without
    // them.
    const isOrderBroken = wasDraining && this.#outbox.pendingCount > 0;
    this.#resetCnxn();
    if (phase === 'closing') {
      this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
      this.#end('closed', undefined);
      return;
    }
    const wasConnected = phase === 'connected';
    if (wasConnected && nowMs - this.#connectedAtMs >= stableMs) this.#failures = this.#takeovers = 0;
    // This client has closed the connection itself, so no other client took the session.
    else if (wasConnected && isByClient) this.#takeovers = 0;
    else if (wasConnected && !wasDraining) this.#takeovers++;
    if (this.#options.yieldSession && this.#takeovers >= takeoversMax) {
      this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
      this.#end(
        'moved',
        `${reason}, for the ${takeoversMax}th time in a row right after the connection was made: another client uses this session`,
      );
      return;
    }
    this.#phase = 'waiting';
    this.#scheduleDial(phase === 'dialling', wasDraining, nowMs);
    const isRoundOver = !wasConnected && this.#dialPlan.attemptFailed();
    this.#failPending(ErrorCode.ConnectionLoss, reason, cause);
    if (isOrderBroken || (isRoundOver && !this.#waitsForFirstConnection))
      this.#failWaiting(new RequestFailure(ErrorCode.ConnectionLoss, 'notSent', reason, { cause }));
    this.#output.connectionFailed(description, what);
    if (wasConnected) this.#output.state('Disconnected', reason);
  }

  /**
   * Schedules the next attempt. No pause is needed, as there is no herd of clients to spread,
   * before a server that was found by a probe, nor between an unreachable address and the next one
   * of the same name.
   */
  #scheduleDial(isUnreachable: boolean, wasDraining: boolean, nowMs: Millis): void {
    if (this.#dialPlan.hasPreferred || (isUnreachable && this.#dialPlan.hasAddressesToTry)) {
      this.#dialAtMs = nowMs;
      return;
    }
    this.#dialAtMs = nowMs + backoffMs(this.#random, this.#failures, this.#effectiveTimeoutMs);
    if (!wasDraining) this.#failures++;
  }

  #resetCnxn(): void {
    this.#cutter.close();
    this.#outbox.clearBytes();
    this.#pingsUnanswered = 0;
    this.#liveness.disconnected();
    this.#setWatchesUnanswered = 0;
    this.#authsToRestore = 0;
    this.#saslXid = 0;
    this.#probedServer = undefined;
    this.#drain = undefined;
    // Callers that wait for an answer get it from the next server.
    this.#pendingAuths.clear();
  }

  #failPending(errno: number, reason: string, cause?: unknown): void {
    for (const { request, outcome } of this.#outbox.dropPending())
      this.#output.failed(request, new RequestFailure(errno, outcome, reason, { cause }));
  }

  #failWaiting(refusal: RequestFailure): void {
    for (const request of this.#outbox.dropWaiting()) this.#output.failed(request, refusal);
  }

  // --- Input from servers

  /** Processes one frame, which has arrived at `#heardMs`. Returns whether another may follow. */
  readonly #onFrame = (reader: Reader): boolean => {
    if (this.#phase === 'handshaking') this.#onHandshakeReply(reader, this.#lastReceivedMs);
    else if (this.#phase === 'authenticating') this.#onSaslReply(reader, this.#lastReceivedMs);
    else if (this.isConnected) this.#onReply(reader, this.#lastReceivedMs);
    return this.#canSend;
  };

  #onHandshakeReply(reader: Reader, nowMs: Millis): void {
    if (reader.remaining === replyHeaderBytes) {
      // Not an answer to a handshake: a server without a quorum says so that it cannot open
      // sessions.
      const { err } = readReplyHeader(reader);
      const why = err === ErrorCode.NotReadOnly ? 'it is read-only, and ZooKeeper then requires localSessionsEnabled=true' : `error ${err}`;
      this.#disconnect(`the server did not open a session (${why})`, nowMs);
      return;
    }
    const { timeOut, sessionId, passwd, readOnly } = readConnectResponse(reader);
    const asked = this.#isKnownToQuorum ? this.#sessionId : 0n;
    if (timeOut <= 0) {
      // An answer about a session that the client did not send is invalid, and says nothing about a
      // session that it has.
      if (asked === 0n) this.#disconnect('the server refused to open a session', nowMs);
      else this.#expire(`${this.#dialPlan.description} no longer knows session ${formatSessionId(asked)}`);
      return;
    }
    if (sessionId === 0n) {
      this.#disconnect('the server opened a session without an id', nowMs);
      return;
    }
    if (asked !== 0n && sessionId !== asked) {
      // Servers other than ZooKeeper do this. The old session's ephemerals are no longer ours, and
      // only this tells the program.
      this.#expire(`${this.#dialPlan.description} opened session ${formatSessionId(sessionId)} instead of ${formatSessionId(asked)}`);
      return;
    }
    this.#sessionId = sessionId;
    this.#password = Buffer.from(passwd ?? noPassword);
    this.#timeoutMs = timeOut;
    this.#effectiveTimeoutMs = effectiveTimeoutMs(timeOut, this.#options.sessionTimeoutMs);
    this.#isServerReadOnly = readOnly ?? false;
    if (!this.#isServerReadOnly) {
      this.#isKnownToQuorum = true;
      this.#liveness.opened(this.#lastSentMs);
    }
    if (!this.#options.sasl) {
      this.#becomeConnected(nowMs);
      return;
    }
    this.#phase = 'authenticating';
    this.#saslDeadlineMs = nowMs + this.#effectiveTimeoutMs;
    this.#output.startSasl(this.#dialPlan.server!);
  }

  #onSaslReply(reader: Reader, nowMs: Millis): void {
    const { xid, err } = readReplyHeader(reader);
    if (this.#saslXid === 0 || xid !== this.#saslXid) {
      this.#disconnect(`the server answered request ${xid}, which was not sent`, nowMs);
      return;
    }
    this.#saslXid = 0;
    if (err !== ErrorCode.Ok) {
      this.#failAuth(`${this.#dialPlan.description} rejected the SASL identity (error ${err})`);
      return;
    }
    const { token } = operations.sasl.reply.read(reader);
    this.#output.continueSasl(token === null ? null : Buffer.from(token));
  }

  /** The server is ready for the program's requests. */
  #becomeConnected(nowMs: Millis): void {
    this.#phase = 'connected';
    this.#waitsForFirstConnection = false;
    this.#connectedAtMs = nowMs;
    this.#probePauseMs = probePauseMsMin;
    this.#probeAtMs = nowMs + probePauseMsMin;
    this.#dialPlan.connected();
    // Identities decide which events watches may receive, and both precede the program's requests.
    for (const call of this.#credentials) this.#writeAuth(call);
    this.#authsToRestore = this.#credentials.length;
    this.#restoreDeadlineMs = nowMs + (this.#options.requestTimeoutMs ?? Infinity);
    this.#restoreWatches();
    this.#outbox.sendWaiting();
    this.#output.state(this.#isServerReadOnly ? 'ConnectedReadOnly' : 'SyncConnected', undefined);
    this.flush(nowMs);
  }

  #onReply(reader: Reader, nowMs: Millis): void {
    const { xid, zxid, err } = readReplyHeader(reader);
    if (zxid > Number.MAX_SAFE_INTEGER) {
      this.#disconnect(`the server sent a zxid above 0x${Number.MAX_SAFE_INTEGER.toString(16)}, which this client cannot represent`, nowMs);
      return;
    }
    switch (xid) {
      case Xid.notification:
        this.#output.event(readWatcherEvent(reader), zxid);
        return;
      case Xid.ping:
        if (this.#pingsUnanswered === 0) this.#disconnect('the server answered a ping that was not sent', nowMs);
        else this.#onPong();
        return;
      case Xid.setWatches:
        if (this.#setWatchesUnanswered === 0) this.#disconnect('the server answered a setWatches that was not sent', nowMs);
        else if (err !== ErrorCode.Ok) this.#disconnect(`the server did not restore watches (error ${err})`, nowMs);
        else this.#setWatchesUnanswered--;
        return;
      case Xid.auth:
        this.#onAuthReply(err, nowMs);
        return;
      default:
        this.#onRequestReply(xid, zxid, err, reader, nowMs);
    }
  }

  #onPong(): void {
    this.#pingsUnanswered--;
    if (!this.#isServerReadOnly) this.#liveness.ponged();
  }

  #onRequestReply(xid: number, zxid: Zxid, err: number, reader: Reader, nowMs: Millis): void {
    const request = this.#outbox.nextPending;
    if (request === undefined) {
      if (this.#phase === 'closing' && xid === this.#closeXid) {
        this.#end('closed', undefined);
      } else {
        this.#disconnect(`the server answered request ${xid}, which was not sent`, nowMs);
      }
      return;
    }
    if (request.xid !== xid) {
      this.#disconnect(`the server answered request ${xid}, expected an answer to ${request.xid}`, nowMs);
      return;
    }
    // Read the answer before removing the request: if it cannot be read, the request fails with the
    // others.
    if (!request.isCancelled) this.#output.answered(request, err, reader, zxid);
    this.#outbox.answered();
    if (this.#phase === 'closing') this.#closeDeadlineMs = nowMs + this.#effectiveTimeoutMs;
    if (!this.#isServerReadOnly) this.#liveness.answered(request.ordinal);
    // Only after a valid answer: with an invalid zxid, no correct server could serve this client
    // any more.
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  #onAuthReply(err: number, nowMs: Millis): void {
    const call = this.#pendingAuths.shift();
    if (call === undefined) {
      this.#disconnect('the server answered credentials that were not sent', nowMs);
      return;
    }
    if (this.#authsToRestore > 0) this.#authsToRestore--;
    if (err === ErrorCode.Ok) {
      if (this.#authsWithoutVerdict.delete(call)) this.#output.authenticated(call);
      return;
    }
    // ZooKeeper's rule: a session with rejected credentials ends, whatever else they would have
    // allowed.
    const reason = `${this.#dialPlan.description} rejected the credentials for scheme ${call.credentials.scheme}`;
    this.#closeCnxn(false);
    this.#authsWithoutVerdict.delete(call);
    this.#output.authFailed(call, new RequestFailure(ErrorCode.AuthFailed, 'refused', reason));
    this.#failPending(ErrorCode.AuthFailed, reason);
    this.#end('authFailed', reason);
  }

  /** The same for SASL: otherwise a session meant for an identity would continue without it. */
  #failAuth(reason: string): void {
    this.#closeCnxn(false);
    this.#end('authFailed', reason);
  }

  // --- Writing

  #writeAuth(call: AuthCall): void {
    this.#outbox.writeRequest(Xid.auth, OpCode.auth, (writer) => writeAuthRequest(writer, { type: 0, ...call.credentials }));
    this.#pendingAuths.push(call);
  }

  #restoreWatches(): void {
    for (const piece of this.#output.restoreWatches(this.#lastZxid)) {
      this.#outbox.writeRequest(Xid.setWatches, piece.opCode, (writer) => piece.write(writer));
      this.#setWatchesUnanswered++;
    }
  }

  // --- The end

  #expire(reason: string): void {
    this.#failPending(ErrorCode.SessionExpired, reason);
    this.#end('expired', reason);
  }

  #end(endReason: EndReason, reason: string | undefined, why?: RequestFailure): void {
    // Cancel an attempt in progress at once; after an answer there is nothing left to receive.
    this.#closeCnxn(this.isConnected || this.#phase === 'handshaking');
    this.#resetCnxn();
    this.#phase = 'closed';
    this.#endReason = endReason;
    const refusal = why ?? this.#endFailure('notSent', reason);
    this.#failWaiting(refusal);
    for (const call of this.#authsWithoutVerdict) this.#output.authFailed(call, refusal);
    this.#authsWithoutVerdict.clear();
    this.#output.state(endReason === 'expired' ? 'Expired' : endReason === 'authFailed' ? 'AuthFailed' : 'Closed', reason);
  }

  #endFailure(outcome: 'notSent', reason?: string): RequestFailure {
    switch (this.#endReason) {
      case 'authFailed':
        return new RequestFailure(ErrorCode.AuthFailed, outcome, reason ?? 'the credentials of this client were rejected; connect again');
      case 'moved':
        return new RequestFailure(
          ErrorCode.SessionMoved,
          outcome,
          reason ?? 'another client uses the session of this client; connect again',
        );
      case 'expired':
        return new RequestFailure(ErrorCode.SessionExpired, outcome, reason ?? 'the session of this client has expired; connect again');
      default:
        return new RequestFailure(
          ErrorCode.SessionExpired,
          outcome,
          reason ?? `this client was closed${this.#closeReason === undefined ? '' : `: ${this.#closeReason}`}`,
        );
    }
  }
}
