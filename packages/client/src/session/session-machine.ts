/**
 * The state machine of a session: which server to try, when to ping, when to close a connection,
 * which request an answer belongs to.
 *
 * The machine is pure. Inputs are method calls with the time; outputs go, in order, to a
 * `SessionOut`, which never calls back. `deadline()` says when to call `wake` if there is no other
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
  FrameCutter,
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
import { Refusal } from '../keeper-error.ts';
import type { DialledAddress, ServerAddress, ServiceRecord } from '../transport.ts';
import type { KeeperState } from '../watched-event.ts';
import { Fifo } from './fifo.ts';
import type { HostList } from './host-list.ts';
import { Lease } from './lease.ts';
import { Outbox } from './outbox.ts';
import type { Request } from './request.ts';
import { Route, type RouteOptions, type Step } from './route.ts';
import {
  backoffMs,
  connectTimeoutMs,
  graceMs,
  lateMs,
  leaveMsMax,
  paceMs,
  pingAfterMs,
  readTimeoutMs,
  silenceMsMax,
  steadyMs,
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

export interface SessionOptions extends RouteOptions {
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
  readonly yieldsSession: boolean;
  /**
   * Whether requests wait for the first connection as long as the session is being opened, which
   * the owner limits (`giveUp`). If not, they fail after all servers have failed, as after the loss
   * of a connection.
   */
  readonly waitsForFirst: boolean;
  /** Whether to prove an identity by SASL on each connection, before any request. */
  readonly sasl: boolean;
  /**
   * How long a server may take for the session's own requests on a new connection: identities,
   * watches. undefined: no limit.
   */
  readonly requestTimeoutMs: Millis | undefined;
}

/** The outputs of the machine, in order. An implementation must not call the machine back. */
export interface SessionOut<R extends Request> {
  /** Resolve a name; then call `resolved` or `disconnected`. */
  resolve(host: string): void;
  /** Resolve an SRV name; then call `serviceResolved` or `disconnected`. */
  resolveService(name: string): void;
  dial(address: DialledAddress): void;
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
  saslBegin(server: ServerAddress): void;
  /**
   * The server's answer to the last token; null: accepted without a token. The receiver owns the
   * bytes. Then call `saslToken` or `saslFailed`.
   */
  saslChallenge(challenge: Buffer | null): void;
  /**
   * Close the connection, or cancel the attempt or the look-up. `gently`: send what is queued
   * first.
   */
  hangUp(gently: boolean): void;
  /** The answer to a request. Throws a ProtocolError if it cannot be read. */
  answered(request: R, err: number, reader: Reader, zxid: Zxid): void;
  failed(request: R, refusal: Refusal): void;
  authenticated(call: AuthCall): void;
  authFailed(call: AuthCall, refusal: Refusal): void;
  event(event: WatcherEvent, zxid: Zxid): void;
  /** A connection to this place was lost, or an attempt has failed. */
  troubled(place: string, what: string): void;
  state(state: KeeperState, reason: string | undefined): void;
  /** The requests that set watches again, on a server that compares with this zxid. */
  restoreWatches(lastZxid: Zxid): Iterable<{ readonly opCode: OpCode; write(writer: Writer): void }>;
}

interface Leaving {
  readonly reason: string;
  readonly untilMs: Millis;
}

type Phase =
  | 'waiting'
  | 'resolvingService'
  | 'resolving'
  | 'dialling'
  | 'handshaking'
  | 'authenticating'
  | 'connected'
  | 'closing'
  | 'closed';

/**
 * Why a client has ended.
 *
 * - `closed`: `close` was called.
 * - `expired`: the ensemble has expired the session, and its ephemerals are gone.
 * - `authFailed`: a server has rejected an identity.
 * - `moved`: the client has left the session to another client of it (`yieldsSession`); the session
 *   continues there.
 */
export type EndReason = 'closed' | 'expired' | 'authFailed' | 'moved';

/** An answer can be longer than the request that wrote the data: it adds a header and a Stat. */
const answerMarginBytes = 1024;
/**
 * A failing server may close two or three connections early; this many in a row mean another client
 * that takes the session each time.
 */
const takenAwayMax = 5;
/** Pauses between probes for a server with a quorum, doubling, as in ZooKeeper's client. */
const probePauseMsMin = 100;
const probePauseMsMax = 60_000;
const noPassword = Buffer.alloc(sessionPasswordBytes);

export class SessionMachine<R extends Request> {
  readonly #options: SessionOptions;
  readonly #route: Route;
  readonly #random: Random;
  readonly #out: SessionOut<R>;
  readonly #lease: Lease;

  #phase: Phase = 'waiting';
  #endReason: EndReason | undefined;
  /** Why the session was closed, if the program did not close it. */
  #closedFor: string | undefined;
  /** Requests wait, however many attempts fail. */
  #isPatient: boolean;
  /** Consecutive connections that were good and did not last. */
  #takenAway = 0;
  /** The client leaves for another server as soon as pending requests are answered. */
  #leaving: Leaving | undefined;
  /** A connection or an attempt exists, and has neither ended by itself nor been closed. */
  #hasCnxn = false;
  #readOnlyServer = false;

  #sessionId: SessionId;
  #password: Uint8Array;
  /** The granted time-out; before that, the requested one. */
  #timeoutMs: Millis;
  /** The time-out that the client's own limits are based on. */
  #paceMs: Millis;
  /**
   * Other servers do not know an id that a read-only server has assigned, so the client sends it to
   * them only after one of them has seen it.
   */
  #knownToQuorum: boolean;
  /**
   * Highest zxid of an answer. A server that has not applied it must not serve this client. Events
   * do not count: others of the same txn may follow.
   */
  #lastZxid: Zxid = 0;

  #cutter: FrameCutter;
  readonly #outbox: Outbox<R>;
  #pingsUnanswered = 0;
  #setWatchesUnanswered = 0;
  /** Number of unanswered identities that were sent again when the connection was made. */
  #authRestoring = 0;
  /** When the server must have answered those and the watches. */
  #restoreUntilMs: Millis = Infinity;
  #closeXid = 0;
  /** While closing: when the next answer is due at the latest. */
  #closeUntilMs: Millis = 0;
  /** When the SASL exchange must be complete. */
  #saslUntilMs: Millis = 0;
  /** xid of the unanswered SASL token; 0 while a token is being created. */
  #saslXid = 0;

  readonly #credentials: AuthCall[];
  /** Credentials without a first answer: their callers wait. */
  readonly #authAwaiting: Set<AuthCall>;
  /** Sent on this connection and not answered. */
  readonly #authUnanswered = new Fifo<AuthCall>();

  #dialAtMs: Millis;
  #attemptMs: Millis = 0;
  #connectedMs: Millis = 0;
  #heardMs: Millis;
  #sentMs: Millis = 0;
  #failures = 0;

  /** When to probe for a server with a quorum next, while connected to one without. */
  #probeAtMs: Millis = 0;
  #probePauseMs: Millis = 0;
  #probing: ServerAddress | undefined;

  constructor(options: SessionOptions, hosts: HostList, random: Random, out: SessionOut<R>, nowMs: Millis) {
    this.#options = options;
    this.#isPatient = options.waitsForFirst;
    this.#route = new Route(hosts, random, options);
    this.#outbox = new Outbox(options.packetBytesMax);
    this.#random = random;
    this.#out = out;
    this.#sessionId = options.session?.id ?? 0n;
    this.#password = options.session?.password ?? noPassword;
    this.#timeoutMs = this.#paceMs = options.sessionTimeoutMs;
    this.#knownToQuorum = this.#sessionId !== 0n;
    this.#credentials = [...options.auth];
    this.#authAwaiting = new Set(options.auth);
    this.#cutter = new FrameCutter(options.packetBytesMax + answerMarginBytes);
    this.#dialAtMs = nowMs;
    this.#heardMs = nowMs;
    this.#lease = new Lease(nowMs);
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
  leftMs(nowMs: Millis): Millis {
    if (this.#phase === 'closed' || !this.#knownToQuorum) return 0;
    return Math.max(0, this.#timeoutMs - (nowMs - this.#lease.provenMs));
  }

  get lastZxid(): Zxid {
    return this.#lastZxid;
  }

  get isConnected(): boolean {
    return this.#phase === 'connected' || this.#phase === 'closing';
  }

  /** Start of the current or the last connection. */
  get connectedMs(): Millis {
    return this.#connectedMs;
  }

  get isReadOnly(): boolean {
    return this.isConnected && this.#readOnlyServer;
  }

  get isSuspended(): boolean {
    return !this.isConnected && this.#phase !== 'closed' && this.#knownToQuorum;
  }

  get endReason(): EndReason | undefined {
    return this.#endReason;
  }

  /** The connected server, or the one that is tried. */
  get server(): ServerAddress | undefined {
    return this.#route.server;
  }

  /** Number of requests without an answer, including those whose caller no longer waits. */
  get pendingCount(): number {
    return this.#outbox.underWay;
  }

  get waitingCount(): number {
    return this.#outbox.kept;
  }

  /** When to call `wake` if there is no other input before; undefined: never. */
  deadline(): Millis | undefined {
    const next = this.#phaseDeadline();
    const silence = this.#silenceDeadline();
    return next === undefined || silence === undefined ? next : Math.min(next, silence);
  }

  #phaseDeadline(): Millis | undefined {
    switch (this.#phase) {
      case 'waiting':
        return this.#dialAtMs;
      case 'resolvingService':
      case 'resolving':
      case 'dialling':
      case 'handshaking':
        return this.#attemptMs + this.#attemptMsMax;
      case 'authenticating':
        return Math.min(this.#heardMs + readTimeoutMs(this.#paceMs), this.#saslUntilMs);
      case 'connected':
      case 'closing': {
        const alive = Math.min(
          this.#heardMs + readTimeoutMs(this.#paceMs),
          this.#sentMs + pingAfterMs(this.#paceMs),
          this.#leaving?.untilMs ?? Infinity,
          this.#phase === 'closing' ? this.#closeUntilMs : Infinity,
          this.#isRestoring ? this.#restoreUntilMs : Infinity,
        );
        return this.#seeksQuorum ? Math.min(alive, this.#probeAtMs) : alive;
      }
      case 'closed':
        return undefined;
    }
  }

  get #attemptMsMax(): Millis {
    const { servers, addresses } = this.#route.shares;
    return connectTimeoutMs(this.#paceMs, servers, addresses);
  }

  get #isRestoring(): boolean {
    return this.#setWatchesUnanswered > 0 || this.#authRestoring > 0;
  }

  get #seeksQuorum(): boolean {
    return this.#phase === 'connected' && this.#leaving === undefined && this.#readOnlyServer && this.#probing === undefined;
  }

  #silenceDeadline(): Millis | undefined {
    if (!this.#options.expireLocally || this.#sessionId === 0n || this.isConnected || this.#phase === 'closed') return undefined;
    return this.#heardMs + silenceMsMax(this.#timeoutMs);
  }

  // --- Inputs from the program

  /** Accepts a request. Throws a Refusal if that is not possible; then nothing is changed. */
  submit(request: R): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#ended('notSent');
    if (this.#phase === 'connected' && this.#leaving === undefined) this.#outbox.add(request);
    else this.#outbox.keep(request);
  }

  /**
   * The caller no longer waits for this request. Returns whether it was certainly not sent, and
   * will not be.
   */
  withdraw(request: R): boolean {
    request.withdrawn = true;
    return request.xid === 0;
  }

  /** Adds credentials, for this connection and all later ones. */
  authenticate(call: AuthCall): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#ended('notSent');
    this.#credentials.push(call);
    this.#authAwaiting.add(call);
    if (this.#phase === 'connected') this.#writeAuth(call);
  }

  /**
   * Closes the connection, if there is one, for a reason of the caller: a server that answers only
   * pings shows no other sign of failure.
   */
  leave(reason: string, nowMs: Millis): void {
    if (this.isConnected) this.#cut(reason, nowMs);
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
    if (this.#leaving !== undefined) {
      // The client no longer moves, so send the kept requests here.
      this.#leaving = undefined;
      this.#outbox.sendKept();
    }
    this.#phase = 'closing';
    this.#closeUntilMs = nowMs + this.#paceMs;
    this.#closeXid = this.#outbox.nextXid();
    this.#outbox.say(this.#closeXid, OpCode.closeSession);
  }

  /** Ends a session that could not be opened, and fails waiting requests with the refusal. */
  giveUp(refusal: Refusal, nowMs: Millis): void {
    if (this.#phase === 'closed') return;
    if (this.isConnected) {
      this.close(nowMs);
      return;
    }
    this.#closedFor = refusal.reason;
    this.#end('closed', refusal.reason, refusal);
  }

  /**
   * Replaces the list of servers. Returns whether the client leaves the connected server, at random
   * to spread clients (`HostList.update`), or because that server is not in the list any more.
   * Pending requests are answered first; later ones wait for the next server.
   */
  updateServers(servers: readonly ServerAddress[], nowMs: Millis): boolean {
    if (this.#phase === 'closed') return false;
    const looksUp = this.#phase === 'resolvingService';
    // A client that is leaving counts as a client of the server that it would have gone to.
    const isLeaving = this.#leaving !== undefined;
    const isBetween = looksUp || isLeaving || (this.#phase === 'waiting' && !this.#route.hasAddressesLeft);
    const moves = this.#route.update(servers, isBetween);
    if (!moves && !looksUp) return isLeaving;
    this.#route.leaveServer();
    switch (this.#phase) {
      case 'connected':
        if (!isLeaving) this.#leave('moving to another server of the new list', nowMs);
        return true;
      case 'waiting':
      case 'closing':
        return false;
      default:
        this.#hangUp(false);
        this.#forgetCnxn();
        this.#phase = 'waiting';
        this.#dialAtMs = nowMs + backoffMs(this.#random, this.#failures, this.#paceMs);
        return false;
    }
  }

  /** In the order in which they are tried. Empty until an SRV name has been resolved. */
  get servers(): readonly ServerAddress[] {
    return this.#route.servers;
  }

  /** Sends what the inputs of this turn have written. Call it after each turn of inputs. */
  flush(nowMs: Millis): void {
    if (!this.#canSend) return;
    const bytes = this.#outbox.take();
    if (bytes === undefined) return;
    this.#lease.sent(this.#outbox.order, nowMs);
    this.#sentMs = nowMs;
    this.#out.send(bytes);
  }

  // --- Inputs from the outside

  /** The addresses of the server to dial. */
  resolved(addresses: readonly string[], nowMs: Millis): void {
    if (this.#phase !== 'resolving') return;
    this.#hasCnxn = false;
    const step = this.#route.foundAddresses(addresses);
    if (step === undefined) this.#lose(`the name ${this.#route.server!.host} has no address`, nowMs);
    else this.#take(step, nowMs);
  }

  /** The servers of the SRV name. */
  serviceResolved(records: readonly ServiceRecord[], nowMs: Millis): void {
    if (this.#phase !== 'resolvingService') return;
    this.#hasCnxn = false;
    const step = this.#route.foundServers(records);
    if (step === undefined) this.#serviceFailed('SRV lookup found no servers', nowMs);
    else this.#take(step, nowMs);
  }

  #serviceFailed(reason: string, nowMs: Millis): void {
    const step = this.#route.foundNoServers();
    if (step === undefined) this.#lose(reason, nowMs);
    else this.#take(step, nowMs);
  }

  /** The connection is open. */
  opened(nowMs: Millis): void {
    if (this.#phase !== 'dialling') return;
    this.#phase = 'handshaking';
    this.#outbox.frame((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: this.#lastZxid,
        timeOut: this.#options.sessionTimeoutMs,
        sessionId: this.#knownToQuorum ? this.#sessionId : 0n,
        passwd: this.#knownToQuorum ? this.#password : noPassword,
        readOnly: this.#options.readOnly,
      }),
    );
    this.flush(nowMs);
  }

  received(bytes: Buffer, nowMs: Millis): void {
    if (!this.#canSend) return;
    this.#heardMs = nowMs;
    try {
      this.#cutter.feed(bytes, 0, bytes.length, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cut(`the server sent invalid data: ${error.message}`, nowMs, error);
    }
    this.#maybeLeave(nowMs);
  }

  /**
   * The next token of the SASL exchange; undefined: the exchange is complete, and both sides are
   * authenticated.
   */
  saslToken(token: Uint8Array | undefined, nowMs: Millis): void {
    if (this.#phase !== 'authenticating') return;
    if (token === undefined) {
      this.#enter(nowMs);
      return;
    }
    this.#saslXid = this.#outbox.nextXid();
    this.#outbox.say(this.#saslXid, OpCode.sasl, (writer) => operations.sasl.request.write(writer, { token }));
    this.flush(nowMs);
  }

  /**
   * The SASL exchange has failed on this side: the server cannot be trusted, or no token can be
   * created.
   */
  saslFailed(reason: string): void {
    if (this.#phase !== 'authenticating') return;
    this.#refuseIdentity(`${this.#route.place}: ${reason}`);
  }

  /** The connection was lost, or the attempt has failed. */
  disconnected(error: string | undefined, nowMs: Millis): void {
    if (this.#phase === 'waiting' || this.#phase === 'closed') return;
    this.#hasCnxn = false;
    const because = error === undefined ? '' : `: ${error}`;
    switch (this.#phase) {
      case 'resolvingService':
        this.#serviceFailed(`SRV lookup failed${because}`, nowMs);
        break;
      case 'resolving':
        this.#lose(`address lookup failed${because}`, nowMs);
        break;
      case 'dialling':
        this.#lose(`connection failed${because}`, nowMs);
        break;
      default:
        this.#lose(error === undefined ? 'the connection was closed by the server' : `the connection broke${because}`, nowMs);
    }
  }

  /** The deadline has passed. */
  wake(nowMs: Millis): void {
    const silence = this.#silenceDeadline();
    if (silence !== undefined && nowMs >= silence) {
      this.#expire(`no server was reached for ${silenceMsMax(this.#timeoutMs)} ms`);
      return;
    }
    switch (this.#phase) {
      case 'waiting':
        if (nowMs >= this.#dialAtMs) this.#take(this.#route.next(), nowMs);
        break;
      case 'resolvingService':
      case 'resolving':
      case 'dialling':
      case 'handshaking':
        if (nowMs >= this.#attemptMs + this.#attemptMsMax) this.#tooSlow(nowMs);
        break;
      case 'authenticating': {
        const limit = readTimeoutMs(this.#paceMs);
        const missing = this.#saslXid === 0 ? 'no token was created' : 'the server did not answer';
        if (nowMs >= this.#heardMs + limit) this.#cut(`the SASL exchange stalled: ${missing} for ${limit} ms`, nowMs);
        else if (nowMs >= this.#saslUntilMs) this.#cut(`the SASL exchange timed out after ${this.#paceMs} ms`, nowMs);
        break;
      }
      case 'connected':
      case 'closing':
        if (this.#leaving !== undefined && nowMs >= this.#leaving.untilMs) {
          this.#waitedToLeave(this.#leaving, nowMs);
          break;
        }
        if (this.#isRestoring && nowMs >= this.#restoreUntilMs) {
          this.#waitedToRestore(nowMs);
          break;
        }
        if (this.#phase === 'closing' && nowMs >= this.#closeUntilMs) {
          this.#waitedToClose(nowMs);
          break;
        }
        if (this.#seeksQuorum && nowMs >= this.#probeAtMs) this.#probe(nowMs);
        this.#keepAlive(nowMs);
        break;
      case 'closed':
        break;
    }
  }

  #tooSlow(nowMs: Millis): void {
    const limit = `timed out after ${this.#attemptMsMax} ms`;
    if (this.#phase === 'resolvingService') {
      this.#hangUp(false);
      this.#serviceFailed(`SRV lookup ${limit}`, nowMs);
      return;
    }
    this.#cut(this.#phase === 'resolving' ? `address lookup ${limit}` : `opening the session ${limit}`, nowMs);
  }

  #probe(nowMs: Millis): void {
    this.#probing = this.#route.another();
    this.#probeAtMs = nowMs + this.#probePauseMs;
    this.#probePauseMs = Math.min(this.#probePauseMs * 2, probePauseMsMax);
    this.#out.probe(this.#probing);
  }

  /** The result of a probe of a server at this address. */
  probed(hasQuorum: boolean, address: string | undefined, nowMs: Millis): void {
    const server = this.#probing;
    this.#probing = undefined;
    if (server === undefined || !hasQuorum || this.#phase !== 'connected') return;
    // The list may have changed meanwhile.
    if (this.#leaving !== undefined || !this.#route.turnTo(server, address ?? server.host)) return;
    this.#leave(`moving from this read-only server to ${formatServer(server)}, which has a quorum`, nowMs);
  }

  /** A voluntary move must not lose calls. */
  #leave(reason: string, nowMs: Millis): void {
    this.#leaving = { reason, untilMs: nowMs + leaveMsMax };
    this.#maybeLeave(nowMs);
  }

  #waitedToLeave({ reason, untilMs }: Leaving, nowMs: Millis): void {
    if (nowMs - untilMs <= lateMs) this.#cut(reason, nowMs);
    // As in `#keepAlive`: the answers may have arrived while the process was paused.
    else this.#leaving = { reason, untilMs: nowMs + graceMs };
  }

  #waitedToRestore(nowMs: Millis): void {
    if (nowMs - this.#restoreUntilMs <= lateMs)
      this.#cut(`restoring identities and watches timed out after ${this.#options.requestTimeoutMs} ms`, nowMs);
    else this.#restoreUntilMs = nowMs + graceMs;
  }

  #waitedToClose(nowMs: Millis): void {
    if (nowMs - this.#closeUntilMs <= lateMs) this.#cut(`closing the session timed out after ${this.#paceMs} ms without an answer`, nowMs);
    // As above.
    else this.#closeUntilMs = nowMs + graceMs;
  }

  #maybeLeave(nowMs: Millis): void {
    if (this.#leaving !== undefined && this.#outbox.underWay === 0) this.#cut(this.#leaving.reason, nowMs);
  }

  #keepAlive(nowMs: Millis): void {
    const readTimeout = readTimeoutMs(this.#paceMs);
    const pingAfter = pingAfterMs(this.#paceMs);
    const due = Math.min(this.#heardMs + readTimeout, this.#sentMs + pingAfter);
    if (nowMs - due > lateMs) {
      // Timers run before input: what the server has sent while the process was paused has not been
      // read yet.
      this.#heardMs = Math.max(this.#heardMs, nowMs - readTimeout + Math.min(graceMs, readTimeout / 2));
    }
    if (nowMs >= this.#heardMs + readTimeout) {
      this.#cut(`received nothing for ${readTimeout} ms`, nowMs);
    } else if (nowMs >= this.#sentMs + pingAfter) {
      this.#outbox.say(Xid.ping, OpCode.ping);
      this.#pingsUnanswered++;
      this.#lease.pinged(nowMs);
      this.flush(nowMs);
    }
  }

  // --- Connections

  get #canSend(): boolean {
    return this.#phase === 'handshaking' || this.#phase === 'authenticating' || this.isConnected;
  }

  /** Starts the next step of an attempt. */
  #take(step: Step, nowMs: Millis): void {
    this.#attemptMs = nowMs;
    this.#hasCnxn = true;
    switch (step.kind) {
      case 'resolveService':
        this.#phase = 'resolvingService';
        this.#out.resolveService(step.name);
        break;
      case 'resolve':
        this.#phase = 'resolving';
        this.#out.resolve(step.host);
        break;
      case 'dial':
        this.#phase = 'dialling';
        this.#cutter = new FrameCutter(this.#options.packetBytesMax + answerMarginBytes);
        this.#out.dial(step.address);
        break;
    }
  }

  /** Closes the connection. */
  #cut(reason: string, nowMs: Millis, cause?: unknown): void {
    this.#hangUp(false);
    this.#lose(reason, nowMs, { cause, isOwnDoing: true });
  }

  #hangUp(gently: boolean): void {
    if (!this.#hasCnxn) return;
    this.#hasCnxn = false;
    this.#cutter.close();
    this.#out.hangUp(gently);
  }

  /** The connection no longer exists. */
  #lose(
    what: string,
    nowMs: Millis,
    { cause, isOwnDoing = false }: { readonly cause?: unknown; readonly isOwnDoing?: boolean } = {},
  ): void {
    const { place } = this.#route;
    const reason = `${place}: ${what}`;
    const phase = this.#phase;
    const wasLeaving = this.#leaving !== undefined;
    // Requests for the next server followed unanswered ones, so they must not be applied without
    // them.
    const torn = wasLeaving && this.#outbox.underWay > 0;
    this.#forgetCnxn();
    if (phase === 'closing') {
      this.#failUnderWay(ErrorCode.ConnectionLoss, reason, cause);
      this.#end('closed', undefined);
      return;
    }
    const wasConnected = phase === 'connected';
    if (wasConnected && nowMs - this.#connectedMs >= steadyMs) this.#failures = this.#takenAway = 0;
    // This client has closed the connection itself, so no other client took the session.
    else if (wasConnected && isOwnDoing) this.#takenAway = 0;
    else if (wasConnected && !wasLeaving) this.#takenAway++;
    if (this.#options.yieldsSession && this.#takenAway >= takenAwayMax) {
      this.#failUnderWay(ErrorCode.ConnectionLoss, reason, cause);
      this.#end(
        'moved',
        `${reason}, for the ${takenAwayMax}th time in a row right after the connection was made: another client uses this session`,
      );
      return;
    }
    this.#phase = 'waiting';
    this.#planDial(phase === 'dialling', wasLeaving, nowMs);
    const isRoundOver = !wasConnected && this.#route.failed();
    this.#failUnderWay(ErrorCode.ConnectionLoss, reason, cause);
    if (torn || (isRoundOver && !this.#isPatient)) this.#failKept(new Refusal(ErrorCode.ConnectionLoss, 'notSent', reason, { cause }));
    this.#out.troubled(place, what);
    if (wasConnected) this.#out.state('Disconnected', reason);
  }

  /**
   * Schedules the next attempt. No pause is needed, as there is no herd of clients to spread,
   * before a server that was found by a probe, nor between an unreachable address and the next one
   * of the same name.
   */
  #planDial(nobodyReached: boolean, wasLeaving: boolean, nowMs: Millis): void {
    if (this.#route.hasShortcut || (nobodyReached && this.#route.hasAddressesLeft)) {
      this.#dialAtMs = nowMs;
      return;
    }
    this.#dialAtMs = nowMs + backoffMs(this.#random, this.#failures, this.#paceMs);
    if (!wasLeaving) this.#failures++;
  }

  #forgetCnxn(): void {
    this.#cutter.close();
    this.#outbox.clear();
    this.#pingsUnanswered = 0;
    this.#lease.disconnected();
    this.#setWatchesUnanswered = 0;
    this.#authRestoring = 0;
    this.#saslXid = 0;
    this.#probing = undefined;
    this.#leaving = undefined;
    // Callers that wait for an answer get it from the next server.
    this.#authUnanswered.clear();
  }

  #failUnderWay(errno: number, reason: string, cause?: unknown): void {
    for (const { request, outcome } of this.#outbox.dropUnderWay())
      this.#out.failed(request, new Refusal(errno, outcome, reason, { cause }));
  }

  #failKept(refusal: Refusal): void {
    for (const request of this.#outbox.dropKept()) this.#out.failed(request, refusal);
  }

  // --- Input from servers

  /** Processes one frame, which has arrived at `#heardMs`. Returns whether another may follow. */
  readonly #onFrame = (reader: Reader): boolean => {
    if (this.#phase === 'handshaking') this.#handshake(reader, this.#heardMs);
    else if (this.#phase === 'authenticating') this.#saslReply(reader, this.#heardMs);
    else if (this.isConnected) this.#reply(reader, this.#heardMs);
    return this.#canSend;
  };

  #handshake(reader: Reader, nowMs: Millis): void {
    if (reader.remaining === replyHeaderBytes) {
      // Not an answer to a handshake: a server without a quorum says so that it cannot open
      // sessions.
      const { err } = readReplyHeader(reader);
      const why = err === ErrorCode.NotReadOnly ? 'it is read-only, and ZooKeeper then requires localSessionsEnabled=true' : `error ${err}`;
      this.#cut(`the server did not open a session (${why})`, nowMs);
      return;
    }
    const { timeOut, sessionId, passwd, readOnly } = readConnectResponse(reader);
    const asked = this.#knownToQuorum ? this.#sessionId : 0n;
    if (timeOut <= 0) {
      // An answer about a session that the client did not send is invalid, and says nothing about a
      // session that it has.
      if (asked === 0n) this.#cut('the server refused to open a session', nowMs);
      else this.#expire(`${this.#route.place} no longer knows session ${formatSessionId(asked)}`);
      return;
    }
    if (sessionId === 0n) {
      this.#cut('the server opened a session without an id', nowMs);
      return;
    }
    if (asked !== 0n && sessionId !== asked) {
      // Servers other than ZooKeeper do this. The old session's ephemerals are no longer ours, and
      // only this tells the program.
      this.#expire(`${this.#route.place} opened session ${formatSessionId(sessionId)} instead of ${formatSessionId(asked)}`);
      return;
    }
    this.#sessionId = sessionId;
    this.#password = Buffer.from(passwd ?? noPassword);
    this.#timeoutMs = timeOut;
    this.#paceMs = paceMs(timeOut, this.#options.sessionTimeoutMs);
    this.#readOnlyServer = readOnly ?? false;
    if (!this.#readOnlyServer) {
      this.#knownToQuorum = true;
      this.#lease.opened(this.#sentMs);
    }
    if (!this.#options.sasl) {
      this.#enter(nowMs);
      return;
    }
    this.#phase = 'authenticating';
    this.#saslUntilMs = nowMs + this.#paceMs;
    this.#out.saslBegin(this.#route.server!);
  }

  #saslReply(reader: Reader, nowMs: Millis): void {
    const { xid, err } = readReplyHeader(reader);
    if (this.#saslXid === 0 || xid !== this.#saslXid) {
      this.#cut(`the server answered request ${xid}, which was not sent`, nowMs);
      return;
    }
    this.#saslXid = 0;
    if (err !== ErrorCode.Ok) {
      this.#refuseIdentity(`${this.#route.place} rejected the SASL identity (error ${err})`);
      return;
    }
    const { token } = operations.sasl.reply.read(reader);
    this.#out.saslChallenge(token === null ? null : Buffer.from(token));
  }

  /** The server is ready for the program's requests. */
  #enter(nowMs: Millis): void {
    this.#phase = 'connected';
    this.#isPatient = false;
    this.#connectedMs = nowMs;
    this.#probePauseMs = probePauseMsMin;
    this.#probeAtMs = nowMs + probePauseMsMin;
    this.#route.arrived();
    // Identities decide which events watches may receive, and both precede the program's requests.
    for (const call of this.#credentials) this.#writeAuth(call);
    this.#authRestoring = this.#credentials.length;
    this.#restoreUntilMs = nowMs + (this.#options.requestTimeoutMs ?? Infinity);
    this.#restoreWatches();
    this.#outbox.sendKept();
    this.#out.state(this.#readOnlyServer ? 'ConnectedReadOnly' : 'SyncConnected', undefined);
    this.flush(nowMs);
  }

  #reply(reader: Reader, nowMs: Millis): void {
    const { xid, zxid, err } = readReplyHeader(reader);
    if (zxid > Number.MAX_SAFE_INTEGER) {
      this.#cut(`the server sent a zxid above 0x${Number.MAX_SAFE_INTEGER.toString(16)}, which this client cannot represent`, nowMs);
      return;
    }
    switch (xid) {
      case Xid.notification:
        this.#out.event(readWatcherEvent(reader), zxid);
        return;
      case Xid.ping:
        if (this.#pingsUnanswered === 0) this.#cut('the server answered a ping that was not sent', nowMs);
        else this.#pong();
        return;
      case Xid.setWatches:
        if (this.#setWatchesUnanswered === 0) this.#cut('the server answered a setWatches that was not sent', nowMs);
        else if (err !== ErrorCode.Ok) this.#cut(`the server did not restore watches (error ${err})`, nowMs);
        else this.#setWatchesUnanswered--;
        return;
      case Xid.auth:
        this.#authReply(err, nowMs);
        return;
      default:
        this.#requestReply(xid, zxid, err, reader, nowMs);
    }
  }

  #pong(): void {
    this.#pingsUnanswered--;
    if (!this.#readOnlyServer) this.#lease.ponged();
  }

  #requestReply(xid: number, zxid: Zxid, err: number, reader: Reader, nowMs: Millis): void {
    const request = this.#outbox.next;
    if (request === undefined) {
      if (this.#phase === 'closing' && xid === this.#closeXid) {
        this.#end('closed', undefined);
      } else {
        this.#cut(`the server answered request ${xid}, which was not sent`, nowMs);
      }
      return;
    }
    if (request.xid !== xid) {
      this.#cut(`the server answered request ${xid}, expected an answer to ${request.xid}`, nowMs);
      return;
    }
    // Read the answer before removing the request: if it cannot be read, the request fails with the
    // others.
    if (!request.withdrawn) this.#out.answered(request, err, reader, zxid);
    this.#outbox.answered();
    if (this.#phase === 'closing') this.#closeUntilMs = nowMs + this.#paceMs;
    if (!this.#readOnlyServer) this.#lease.answered(request.order);
    // Only after a valid answer: with an invalid zxid, no correct server could serve this client
    // any more.
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  #authReply(err: number, nowMs: Millis): void {
    const call = this.#authUnanswered.shift();
    if (call === undefined) {
      this.#cut('the server answered credentials that were not sent', nowMs);
      return;
    }
    if (this.#authRestoring > 0) this.#authRestoring--;
    if (err === ErrorCode.Ok) {
      if (this.#authAwaiting.delete(call)) this.#out.authenticated(call);
      return;
    }
    // ZooKeeper's rule: a session with rejected credentials ends, whatever else they would have
    // allowed.
    const reason = `${this.#route.place} rejected the credentials for scheme ${call.credentials.scheme}`;
    this.#hangUp(false);
    this.#authAwaiting.delete(call);
    this.#out.authFailed(call, new Refusal(ErrorCode.AuthFailed, 'refused', reason));
    this.#failUnderWay(ErrorCode.AuthFailed, reason);
    this.#end('authFailed', reason);
  }

  /** The same for SASL: otherwise a session meant for an identity would continue without it. */
  #refuseIdentity(reason: string): void {
    this.#hangUp(false);
    this.#end('authFailed', reason);
  }

  // --- Writing

  #writeAuth(call: AuthCall): void {
    this.#outbox.say(Xid.auth, OpCode.auth, (writer) => writeAuthRequest(writer, { type: 0, ...call.credentials }));
    this.#authUnanswered.push(call);
  }

  #restoreWatches(): void {
    for (const piece of this.#out.restoreWatches(this.#lastZxid)) {
      this.#outbox.say(Xid.setWatches, piece.opCode, (writer) => piece.write(writer));
      this.#setWatchesUnanswered++;
    }
  }

  // --- The end

  #expire(reason: string): void {
    this.#failUnderWay(ErrorCode.SessionExpired, reason);
    this.#end('expired', reason);
  }

  #end(endReason: EndReason, reason: string | undefined, why?: Refusal): void {
    // Cancel an attempt in progress at once; after an answer there is nothing left to receive.
    this.#hangUp(this.isConnected || this.#phase === 'handshaking');
    this.#forgetCnxn();
    this.#phase = 'closed';
    this.#endReason = endReason;
    const refusal = why ?? this.#ended('notSent', reason);
    this.#failKept(refusal);
    for (const call of this.#authAwaiting) this.#out.authFailed(call, refusal);
    this.#authAwaiting.clear();
    this.#out.state(endReason === 'expired' ? 'Expired' : endReason === 'authFailed' ? 'AuthFailed' : 'Closed', reason);
  }

  #ended(outcome: 'notSent', reason?: string): Refusal {
    switch (this.#endReason) {
      case 'authFailed':
        return new Refusal(ErrorCode.AuthFailed, outcome, reason ?? 'the credentials of this client were rejected; connect again');
      case 'moved':
        return new Refusal(ErrorCode.SessionMoved, outcome, reason ?? 'another client uses the session of this client; connect again');
      case 'expired':
        return new Refusal(ErrorCode.SessionExpired, outcome, reason ?? 'the session of this client has expired; connect again');
      default:
        return new Refusal(
          ErrorCode.SessionExpired,
          outcome,
          reason ?? `this client was closed${this.#closedFor === undefined ? '' : `: ${this.#closedFor}`}`,
        );
    }
  }
}
