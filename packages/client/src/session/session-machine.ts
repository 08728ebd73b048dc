/**
 * A session's life: which server to try, when to ping, when to give a connection up, what an answer belongs to.
 *
 * The machine touches nothing. What happens comes in as method calls with the time; what is to be done goes out, in order, to a
 * `SessionOut`, which never calls back. `deadline()` says when to call `wake` if nothing else comes first. So a test can play any story,
 * and a simulator can run real clients.
 *
 *     waiting ──wake──> resolving ──resolved──> dialling ──opened──> handshaking ──answer──> connected ──close()──> closing ──> closed
 *        ^                  │                      │                     │                       │
 *        └──────────────────┴──────────────────────┴───── cut off ───────┴───────────────────────┘    refused, credentials refused ──> closed
 *
 * An attempt at a server is one at each address of its name, until one of them leads to a session. The servers themselves may have to be looked
 * up before that, by an SRV name: at first, and whenever all of them have been tried in vain.
 *
 * Where SASL is asked for, `authenticating` lies between handshaking and connected: tokens go to and fro, and everything else waits.
 *
 * A session outlives its connections. Requests do not: when a connection is cut, everything submitted before fails, since nobody can say
 * what became of it and since nothing may be carried out behind a request that was not. What is submitted afterwards waits for the next
 * connection, until every address of every server of the list has been tried in vain. Before the first connection they wait for as long as
 * the session is being opened: that has a time limit of its own (`giveUp`), and a server that starts late is no reason to fail them.
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

/** What an identity is proved with, under a scheme: `digest` and `user:password`. */
export interface Credentials {
  readonly scheme: string;
  readonly auth: Uint8Array;
}

/** Credentials whose giver waits for the first verdict. One object per call, so that it stands for the call. */
export interface AuthCall {
  readonly credentials: Credentials;
}

export interface SessionOptions extends RouteOptions {
  /** As asked for; a server grants it or the nearest it allows. */
  readonly sessionTimeoutMs: Millis;
  /** Whether a server without a quorum will do. */
  readonly readOnly: boolean;
  /** Longest frame sent to a server, and with a small margin taken from one: jute.maxbuffer. */
  readonly packetBytesMax: number;
  /** A session to take up; undefined for a new one. */
  readonly session: { readonly id: SessionId; readonly password: Uint8Array } | undefined;
  /** Shown to every server, in this order. */
  readonly auth: readonly AuthCall[];
  /** Give the session up after 4/3 of its time-out without a server, as ZooKeeper's client does since 3.9, rather than wait for the verdict. */
  readonly expireLocally: boolean;
  /** Leave the session to another client that uses it as well, rather than take it back for ever. */
  readonly yieldsSession: boolean;
  /**
   * Whether requests wait for the first connection for as long as the session is being opened, which its owner limits (`giveUp`). If not, they fail when all servers
   * have been tried in vain, as after the loss of a connection.
   */
  readonly waitsForFirst: boolean;
  /** Whether an identity is proved by SASL on each connection, before anything else is asked. */
  readonly sasl: boolean;
  /** How long a server may take for what the session itself asks on a new connection: identities, watches. undefined: for ever. */
  readonly requestTimeoutMs: Millis | undefined;
}

/** Where the machine says what is to be done, in order. Nothing here may call the machine back. */
export interface SessionOut<R extends Request> {
  /** Look up the addresses of a name; `resolved` or `disconnected` is told. */
  resolve(host: string): void;
  /** Look up the servers of an SRV name; `serviceResolved` or `disconnected` is told. */
  resolveService(name: string): void;
  dial(address: DialledAddress): void;
  /** Ask this server, apart from the connection, whether it is part of a quorum; `probed` is told. */
  probe(server: ServerAddress): void;
  /** Takes bytes for the connection; they are the receiver's. */
  send(bytes: Buffer): void;
  /** Begin to prove an identity by SASL, anew for this connection. `saslToken` or `saslFailed` is told, unless the connection ends first. */
  saslBegin(server: ServerAddress): void;
  /** The server's answer to the last token; null: yes, and no more than that. The bytes are the receiver's. `saslToken` or `saslFailed` is told. */
  saslChallenge(challenge: Buffer | null): void;
  /** The connection, the attempt or the look-up is over. `gently`: what was sent shall still leave. */
  hangUp(gently: boolean): void;
  /** The answer to a request. Throws a ProtocolError when it cannot be read. */
  answered(request: R, err: number, reader: Reader, zxid: Zxid): void;
  failed(request: R, refusal: Refusal): void;
  authenticated(call: AuthCall): void;
  authFailed(call: AuthCall, refusal: Refusal): void;
  event(event: WatcherEvent, zxid: Zxid): void;
  /** A connection to this place was lost, or could not be made. */
  troubled(place: string, what: string): void;
  state(state: KeeperState, reason: string | undefined): void;
  /** Pieces of the watches to set anew, for a server that has to compare with this zxid. */
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
 * Why a client is over.
 * - `closed`: `close` was called.
 * - `expired`: the ensemble does not know the session any more, and its ephemerals are gone.
 * - `authFailed`: an identity was refused.
 * - `moved`: the session was left to another client that uses it as well (`yieldsSession`); it lives on there.
 */
export type EndReason = 'closed' | 'expired' | 'authFailed' | 'moved';

/** What a server with the same limit took in a request it can give back: an answer adds a header and a Stat to the data. */
const answerMarginBytes = 1024;
/** A server that fails may cut two connections short, or three; so many are another client that takes the session each time. */
const takenAwayMax = 5;
/** Pauses between looks for a server with a quorum, doubling, as in ZooKeeper's client. */
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
  /** Why the session was closed, where the program did not ask for it. */
  #closedFor: string | undefined;
  /** Requests wait, however many attempts are in vain. */
  #isPatient: boolean;
  /** Connections in a row that were good and did not last. */
  #takenAway = 0;
  /** Off to another server, as soon as what was asked of this one is answered. */
  #leaving: Leaving | undefined;
  /** A connection, or an attempt at one, that has neither ended by itself nor been hung up. */
  #hasCnxn = false;
  #readOnlyServer = false;

  #sessionId: SessionId;
  #password: Uint8Array;
  /** As granted; before that, as asked for. */
  #timeoutMs: Millis;
  /** The time-out that the client's own limits follow from. */
  #paceMs: Millis;
  /** An id that a read-only server has given out is unknown to the others, so it is shown to them only after one of them has seen it. */
  #knownToQuorum: boolean;
  /** Highest zxid of an answer. A server that is behind it must not serve us. Events do not count: others of the same txn may follow. */
  #lastZxid: Zxid = 0;

  #cutter: FrameCutter;
  readonly #outbox: Outbox<R>;
  #pingsUnanswered = 0;
  #setWatchesUnanswered = 0;
  /** Of the identities that were proved anew when the connection was made. */
  #authRestoring = 0;
  /** When the server has to have answered those and the watches. */
  #restoreUntilMs: Millis = Infinity;
  #closeXid = 0;
  /** While closing: when an answer is due at the latest. */
  #closeUntilMs: Millis = 0;
  /** When the SASL exchange has to be done. */
  #saslUntilMs: Millis = 0;
  /** Of the SASL token that the server has not answered yet; 0 while one is being made. */
  #saslXid = 0;

  readonly #credentials: AuthCall[];
  /** Never judged yet: their givers wait. */
  readonly #authAwaiting: Set<AuthCall>;
  /** Sent on this connection and not answered. */
  readonly #authUnanswered = new Fifo<AuthCall>();

  #dialAtMs: Millis;
  #attemptMs: Millis = 0;
  #connectedMs: Millis = 0;
  #heardMs: Millis;
  #sentMs: Millis = 0;
  #failures = 0;

  /** When to look for a server with a quorum next, for as long as we are with one that has none. */
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

  // --- What others may know

  get sessionId(): SessionId {
    return this.#sessionId;
  }

  get password(): Uint8Array {
    return this.#password;
  }

  get timeoutMs(): Millis {
    return this.#timeoutMs;
  }

  /** How much of the time-out is left since a server with a quorum has heard of the session; 0 when there is no session. */
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

  /** Since when there is the connection that there is, or was last. */
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

  /** The server that is being talked to, or tried. */
  get server(): ServerAddress | undefined {
    return this.#route.server;
  }

  /** Requests whose answers are still to come, those that nobody waits for included. */
  get pendingCount(): number {
    return this.#outbox.underWay;
  }

  get waitingCount(): number {
    return this.#outbox.kept;
  }

  /** When to call `wake` if no other input comes first; undefined: never. */
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

  // --- Inputs: what the program wants

  /** Takes a request. Throws a Refusal when it cannot be taken; then it is as if it had never been made. */
  submit(request: R): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#ended('notSent');
    if (this.#phase === 'connected' && this.#leaving === undefined) this.#outbox.add(request);
    else this.#outbox.keep(request);
  }

  /** Nobody waits for this request any more. Returns whether it has certainly not left, and will not. */
  withdraw(request: R): boolean {
    request.withdrawn = true;
    return request.xid === 0;
  }

  /** Adds credentials, on this connection and on all that follow. */
  authenticate(call: AuthCall): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') throw this.#ended('notSent');
    this.#credentials.push(call);
    this.#authAwaiting.add(call);
    if (this.#phase === 'connected') this.#writeAuth(call);
  }

  /** Gives the connection up, if there is one, for a reason of the caller: a server that answers pings and nothing else shows no other sign that it does not serve. */
  leave(reason: string, nowMs: Millis): void {
    if (this.isConnected) this.#cut(reason, nowMs);
  }

  /**
   * Ends the session. Requests made before are answered first. A server that answers nothing for as long as the session's time-out is given up: the session then ends by itself, as
   * it is not pinged any more.
   */
  close(nowMs: Millis): void {
    if (this.#phase === 'closed' || this.#phase === 'closing') return;
    if (this.#phase !== 'connected') {
      // Without a connection the ensemble cannot be asked: it ends the session when its time-out has passed.
      this.#end('closed', undefined);
      return;
    }
    if (this.#leaving !== undefined) {
      // There is no going elsewhere any more, so what was kept for there is asked here.
      this.#leaving = undefined;
      this.#outbox.sendKept();
    }
    this.#phase = 'closing';
    this.#closeUntilMs = nowMs + this.#paceMs;
    this.#closeXid = this.#outbox.nextXid();
    this.#outbox.say(this.#closeXid, OpCode.closeSession);
  }

  /** Ends a session that could not be opened, and fails what waits for it with the refusal. */
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
   * Goes by another list of servers. Returns whether the client leaves the server it is connected to, as the chance that spreads clients has it
   * (`HostList.update`), or since that server is not in the list any more. What it was asked is answered first; what is asked from here on is
   * for the next server.
   */
  updateServers(servers: readonly ServerAddress[], nowMs: Millis): boolean {
    if (this.#phase === 'closed') return false;
    const looksUp = this.#phase === 'resolvingService';
    // One that is leaving counts as a client of the server that it would have gone to.
    const isLeaving = this.#leaving !== undefined;
    const isBetween = looksUp || isLeaving || (this.#phase === 'waiting' && !this.#route.hasAddressesLeft);
    const moves = this.#route.update(servers, isBetween);
    if (!moves && !looksUp) return isLeaving;
    this.#route.leaveServer();
    switch (this.#phase) {
      case 'connected':
        if (!isLeaving) this.#leave('leaving this server for another one of the new list', nowMs);
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

  /** In the order in which they are tried in turn. Empty while an SRV name has not been looked up. */
  get servers(): readonly ServerAddress[] {
    return this.#route.servers;
  }

  /** Hands over what the inputs of this turn have written. To be called behind each turn of inputs. */
  flush(nowMs: Millis): void {
    if (!this.#canSend) return;
    const bytes = this.#outbox.take();
    if (bytes === undefined) return;
    this.#lease.sent(this.#outbox.order, nowMs);
    this.#sentMs = nowMs;
    this.#out.send(bytes);
  }

  // --- Inputs: what the world does

  /** Where the server is that is to be dialled. */
  resolved(addresses: readonly string[], nowMs: Millis): void {
    if (this.#phase !== 'resolving') return;
    this.#hasCnxn = false;
    const step = this.#route.foundAddresses(addresses);
    if (step === undefined) this.#lose(`the name ${this.#route.server!.host} has no address`, nowMs);
    else this.#take(step, nowMs);
  }

  /** Which servers there are. */
  serviceResolved(records: readonly ServiceRecord[], nowMs: Millis): void {
    if (this.#phase !== 'resolvingService') return;
    this.#hasCnxn = false;
    const step = this.#route.foundServers(records);
    if (step === undefined) this.#serviceFailed('it has no servers', nowMs);
    else this.#take(step, nowMs);
  }

  #serviceFailed(reason: string, nowMs: Millis): void {
    const step = this.#route.foundNoServers();
    if (step === undefined) this.#lose(reason, nowMs);
    else this.#take(step, nowMs);
  }

  /** The server that was dialled has answered the call. */
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
      this.#cut(`the server sent what cannot be read: ${error.message}`, nowMs, error);
    }
    this.#maybeLeave(nowMs);
  }

  /** What to say to the server in the SASL exchange; undefined: nothing more, both sides have proved what they had to. */
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

  /** The SASL exchange cannot go on, for a reason on this side: the server is not to be believed, or there is nothing to show it. */
  saslFailed(reason: string): void {
    if (this.#phase !== 'authenticating') return;
    this.#refuseIdentity(`${this.#route.place}: ${reason}`);
  }

  /** The connection is gone, or could not be made. */
  disconnected(error: string | undefined, nowMs: Millis): void {
    if (this.#phase === 'waiting' || this.#phase === 'closed') return;
    this.#hasCnxn = false;
    const because = error === undefined ? '' : `: ${error}`;
    switch (this.#phase) {
      case 'resolvingService':
        this.#serviceFailed(`its servers could not be looked up${because}`, nowMs);
        break;
      case 'resolving':
        this.#lose(`its addresses could not be looked up${because}`, nowMs);
        break;
      case 'dialling':
        this.#lose(`it could not be connected to${because}`, nowMs);
        break;
      default:
        this.#lose(error === undefined ? 'the connection was closed by the server' : `the connection broke${because}`, nowMs);
    }
  }

  /** Time has passed. */
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
        const missing = this.#saslXid === 0 ? 'no token was made' : 'the server did not answer';
        if (nowMs >= this.#heardMs + limit) this.#cut(`the SASL exchange stands still: ${missing} for ${limit} ms`, nowMs);
        else if (nowMs >= this.#saslUntilMs) this.#cut(`the SASL exchange was not done within ${this.#paceMs} ms`, nowMs);
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
    const limit = `within ${this.#attemptMsMax} ms`;
    if (this.#phase === 'resolvingService') {
      this.#hangUp(false);
      this.#serviceFailed(`its servers were not looked up ${limit}`, nowMs);
      return;
    }
    this.#cut(this.#phase === 'resolving' ? `its addresses were not looked up ${limit}` : `no session was agreed upon ${limit}`, nowMs);
  }

  #probe(nowMs: Millis): void {
    this.#probing = this.#route.another();
    this.#probeAtMs = nowMs + this.#probePauseMs;
    this.#probePauseMs = Math.min(this.#probePauseMs * 2, probePauseMsMax);
    this.#out.probe(this.#probing);
  }

  /** A server that was probed, at this address, has answered, or has not. */
  probed(hasQuorum: boolean, address: string | undefined, nowMs: Millis): void {
    const server = this.#probing;
    this.#probing = undefined;
    if (server === undefined || !hasQuorum || this.#phase !== 'connected') return;
    // The list may have been changed meanwhile.
    if (this.#leaving !== undefined || !this.#route.turnTo(server, address ?? server.host)) return;
    this.#leave(`leaving this read-only server for ${formatServer(server)}, which has a quorum`, nowMs);
  }

  /** No call is lost by a move that nobody is in a hurry for. */
  #leave(reason: string, nowMs: Millis): void {
    this.#leaving = { reason, untilMs: nowMs + leaveMsMax };
    this.#maybeLeave(nowMs);
  }

  #waitedToLeave({ reason, untilMs }: Leaving, nowMs: Millis): void {
    if (nowMs - untilMs <= lateMs) this.#cut(reason, nowMs);
    // As in `#keepAlive`: while the process stood still the answers may have come.
    else this.#leaving = { reason, untilMs: nowMs + graceMs };
  }

  #waitedToRestore(nowMs: Millis): void {
    if (nowMs - this.#restoreUntilMs <= lateMs)
      this.#cut(`identities and watches were not restored within ${this.#options.requestTimeoutMs} ms`, nowMs);
    else this.#restoreUntilMs = nowMs + graceMs;
  }

  #waitedToClose(nowMs: Millis): void {
    if (nowMs - this.#closeUntilMs <= lateMs)
      this.#cut(`nothing was answered for ${this.#paceMs} ms while the session was to be closed`, nowMs);
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
      // Timers run ahead of input: what the server has sent while the process stood still has not been looked at yet.
      this.#heardMs = Math.max(this.#heardMs, nowMs - readTimeout + Math.min(graceMs, readTimeout / 2));
    }
    if (nowMs >= this.#heardMs + readTimeout) {
      this.#cut(`nothing was heard for ${readTimeout} ms`, nowMs);
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

  /** Begins the next part of an attempt. */
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

  /** Gives the connection up. */
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

  /** The connection is no more. */
  #lose(
    what: string,
    nowMs: Millis,
    { cause, isOwnDoing = false }: { readonly cause?: unknown; readonly isOwnDoing?: boolean } = {},
  ): void {
    const { place } = this.#route;
    const reason = `${place}: ${what}`;
    const phase = this.#phase;
    const wasLeaving = this.#leaving !== undefined;
    // What waits for the next server was asked behind what this one has not answered, and is not carried out ahead of it.
    const torn = wasLeaving && this.#outbox.underWay > 0;
    this.#forgetCnxn();
    if (phase === 'closing') {
      this.#failUnderWay(ErrorCode.ConnectionLoss, reason, cause);
      this.#end('closed', undefined);
      return;
    }
    const wasConnected = phase === 'connected';
    if (wasConnected && nowMs - this.#connectedMs >= steadyMs) this.#failures = this.#takenAway = 0;
    // What this client has given up, nobody has taken from it.
    else if (wasConnected && isOwnDoing) this.#takenAway = 0;
    else if (wasConnected && !wasLeaving) this.#takenAway++;
    if (this.#options.yieldsSession && this.#takenAway >= takenAwayMax) {
      this.#failUnderWay(ErrorCode.ConnectionLoss, reason, cause);
      this.#end('moved', `${reason}, the ${takenAwayMax}th time in a row as soon as it was made: another client goes on with this session`);
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
   * When to try again. There is no herd to spread, and so no pause, in front of a server that was found by looking rather than by losing one, nor
   * between an address where nobody was reached and the next one of the same name.
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
    // Those who wait for a verdict get it from the next server.
    this.#authUnanswered.clear();
  }

  #failUnderWay(errno: number, reason: string, cause?: unknown): void {
    for (const { request, outcome } of this.#outbox.dropUnderWay())
      this.#out.failed(request, new Refusal(errno, outcome, reason, { cause }));
  }

  #failKept(refusal: Refusal): void {
    for (const request of this.#outbox.dropKept()) this.#out.failed(request, refusal);
  }

  // --- What servers say

  /** Takes one frame, which has arrived at `#heardMs`. Returns whether another may follow. */
  readonly #onFrame = (reader: Reader): boolean => {
    if (this.#phase === 'handshaking') this.#handshake(reader, this.#heardMs);
    else if (this.#phase === 'authenticating') this.#saslReply(reader, this.#heardMs);
    else if (this.isConnected) this.#reply(reader, this.#heardMs);
    return this.#canSend;
  };

  #handshake(reader: Reader, nowMs: Millis): void {
    if (reader.remaining === replyHeaderBytes) {
      // Not an answer to a handshake, but how a server without a quorum says that it cannot open sessions.
      const { err } = readReplyHeader(reader);
      const why = err === ErrorCode.NotReadOnly ? 'it is read-only, and ZooKeeper then needs localSessionsEnabled=true' : `error ${err}`;
      this.#cut(`the server opens no session (${why})`, nowMs);
      return;
    }
    const { timeOut, sessionId, passwd, readOnly } = readConnectResponse(reader);
    const asked = this.#knownToQuorum ? this.#sessionId : 0n;
    if (timeOut <= 0) {
      // An answer about a session we never named makes no sense, and says nothing of a session we have.
      if (asked === 0n) this.#cut('the server refused to open a session', nowMs);
      else this.#expire(`${this.#route.place} does not know session ${formatSessionId(asked)} any more`);
      return;
    }
    if (sessionId === 0n) {
      this.#cut('the server opened a session without an id', nowMs);
      return;
    }
    if (asked !== 0n && sessionId !== asked) {
      // Servers that are not ZooKeeper do so: the old session's ephemerals are not ours any more, and only this tells the program.
      this.#expire(`${this.#route.place} opened session ${formatSessionId(sessionId)} in place of ${formatSessionId(asked)}`);
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
      this.#refuseIdentity(`${this.#route.place} refused the SASL identity (error ${err})`);
      return;
    }
    const { token } = operations.sasl.reply.read(reader);
    this.#out.saslChallenge(token === null ? null : Buffer.from(token));
  }

  /** The server is ready for what the program wants. */
  #enter(nowMs: Millis): void {
    this.#phase = 'connected';
    this.#isPatient = false;
    this.#connectedMs = nowMs;
    this.#probePauseMs = probePauseMsMin;
    this.#probeAtMs = nowMs + probePauseMsMin;
    this.#route.arrived();
    // Who we are decides what watches may tell us, and both come before anything the program asks.
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
      this.#cut(
        `the server speaks of a zxid beyond 0x${Number.MAX_SAFE_INTEGER.toString(16)}, more than this client can tell apart`,
        nowMs,
      );
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
      this.#cut(`the server answered request ${xid} where the answer to ${request.xid} was due`, nowMs);
      return;
    }
    // Read before it leaves the line: if it cannot be read, it fails with the others.
    if (!request.withdrawn) this.#out.answered(request, err, reader, zxid);
    this.#outbox.answered();
    if (this.#phase === 'closing') this.#closeUntilMs = nowMs + this.#paceMs;
    if (!this.#readOnlyServer) this.#lease.answered(request.order);
    // Not before all of it made sense: a zxid that is none would keep every honest server from serving us.
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
    // ZooKeeper's rule: a session whose credentials are refused is of no use, whatever else they would have allowed.
    const reason = `${this.#route.place} refused the credentials for scheme ${call.credentials.scheme}`;
    this.#hangUp(false);
    this.#authAwaiting.delete(call);
    this.#out.authFailed(call, new Refusal(ErrorCode.AuthFailed, 'refused', reason));
    this.#failUnderWay(ErrorCode.AuthFailed, reason);
    this.#end('authFailed', reason);
  }

  /** Of no use either: a session that was to be opened as somebody goes on as nobody. */
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
    // A call that is still being made is not worth completing; an answer that was read asks for nothing more.
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
        return new Refusal(ErrorCode.AuthFailed, outcome, reason ?? 'the credentials of this client were refused; connect anew');
      case 'moved':
        return new Refusal(ErrorCode.SessionMoved, outcome, reason ?? 'another client goes on with the session of this one; connect anew');
      case 'expired':
        return new Refusal(ErrorCode.SessionExpired, outcome, reason ?? 'the session of this client has expired; connect anew');
      default:
        return new Refusal(
          ErrorCode.SessionExpired,
          outcome,
          reason ?? `this client was closed${this.#closedFor === undefined ? '' : `: ${this.#closedFor}`}`,
        );
    }
  }
}
