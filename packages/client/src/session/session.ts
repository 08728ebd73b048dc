/**
 * Connects a session machine to the outside: to a transport, a clock, promises and listeners. It
 * makes no decisions.
 *
 * Order: answers settle promises and events call listeners, both in the order in which the server
 * sent them. An answer reaches the code after `await` two microtasks after it was read (one for the
 * client's method, one for the caller's), so events are delayed by as many.
 */
import {
  ErrorCode,
  EventType,
  type Millis,
  operationOf,
  ProtocolError,
  type Reader,
  type SessionId,
  type WatcherEvent,
  type Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { SaslExchange, SaslMechanism } from '../auth/sasl.ts';
import type { RequestLimits } from '../calls/call-deadline.ts';
import { type Clock, type Random, type TimerHandle, timerMsMax, uniform } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import { type Outcome, RequestFailure } from '../keeper-error.ts';
import type { SessionTraceDetail, TracedCall, Tracer } from '../tracing.ts';
import type { ResolvedAddress, ServerAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import type { ConnectFailure, KeeperState, NodeEventType, SessionEvent } from '../watched-event.ts';
import { setWatchesBatches } from '../watches/set-watches.ts';
import { type Watcher, WatchTable } from '../watches/watch-table.ts';
import { HostProvider } from './host-provider.ts';
import type { CallOptions, Operation } from './operation.ts';
import { Request } from './request.ts';
import { RequestTimer } from './request-timer.ts';
import type { AuthCall, Credentials } from './session-auth.ts';
import type { EndReason } from './session-end.ts';
import { SessionMachine } from './session-machine.ts';
import type { SessionOptions } from './session-options.ts';
import type { SessionOutput } from './session-output.ts';

export interface SessionEnvironment {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly tracer: Tracer;
  /** Proves an identity by SASL on each connection; undefined: none. */
  readonly sasl?: SaslMechanism | undefined;
  /** The clock for background work: pings, attempts to connect. undefined: `clock`. */
  readonly backgroundClock?: Clock | undefined;
  /**
   * Keeps the process running while the program waits for something; undefined: connections and
   * timers do so by themselves.
   */
  readonly processHold?: ProcessHold | undefined;
}

/** Keeps the process running while there were more calls of `hold` than of `release`. */
export interface ProcessHold {
  hold(): void;
  release(): void;
}

/** A place where attempts to connect failed, the last reason, and their number. */
export interface ServerFailures {
  readonly server: string;
  readonly reason: string;
  readonly attempts: number;
}

/**
 * Maximum number of places that are remembered for the error of a session that could not be opened.
 */
const serverFailuresMax = 16;

/** Receives everything, with the paths of the server. */
export interface SessionObserver {
  state(event: SessionEvent): void;
  connectFailed(failure: ConnectFailure): void;
  event(type: NodeEventType, path: string, zxid: bigint | undefined): void;
}

/** A request with its promise. */
class PendingCall extends Request {
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly traced: TracedCall | undefined;
  /** The timer of the call's own time-out. */
  timeoutTimer: TimerHandle | undefined;
  /** The client's limit, if the call has no time-out of its own. */
  requestTimer: RequestTimer | undefined;
  signal: AbortSignal | undefined;

  constructor(
    operation: Operation<unknown>,
    traced: TracedCall | undefined,
    resolve: (result: unknown) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.operation = operation;
    this.traced = traced;
    this.resolve = resolve;
    this.reject = reject;
  }

  get opCode(): Operation<unknown>['opCode'] {
    return this.operation.opCode;
  }

  write(writer: Writer): void {
    this.operation.write(writer);
  }
}

/** One attempt to connect, including its look-up. */
class CnxnAttempt implements TransportSink {
  readonly #session: CnxnAttemptSink;
  cnxn: TransportCnxn | undefined;
  /** The session ignores all further input of this link. */
  isDropped = false;

  constructor(session: CnxnAttemptSink) {
    this.#session = session;
  }

  connected(): void {
    if (!this.isDropped) this.#session.cnxnOpened();
  }

  received(bytes: Buffer): void {
    if (!this.isDropped) this.#session.received(bytes);
  }

  closed(error: string | undefined): void {
    if (this.isDropped) return;
    this.isDropped = true;
    this.#session.cnxnClosed(error);
  }
}

/** Maximum length of an invalid path in an error. */
const pathShownMax = 40;
/** As in ZooKeeper's client. */
const probeTimeoutMs = 1000;
/** `rw` or `ro`, and a newline. */
const probeAnswerBytes = 3;

interface CnxnAttemptSink {
  cnxnOpened(): void;
  received(bytes: Buffer): void;
  cnxnClosed(error: string | undefined): void;
}

const nodeEventTypes: ReadonlyMap<number, NodeEventType> = new Map<number, NodeEventType>([
  [EventType.nodeCreated, 'NodeCreated'],
  [EventType.nodeDeleted, 'NodeDeleted'],
  [EventType.nodeDataChanged, 'NodeDataChanged'],
  [EventType.nodeChildrenChanged, 'NodeChildrenChanged'],
]);

export class Session {
  readonly watches = new WatchTable();
  readonly #environment: SessionEnvironment;
  readonly #machine: SessionMachine<PendingCall>;
  readonly #packetBytesMax: number;
  /**
   * How long a server may take for a request without a time-out of its own; undefined: no limit.
   */
  readonly #requestTimeoutMs: Millis | undefined;
  readonly #observers = new Set<SessionObserver>();
  readonly #callsBySignal = new Map<AbortSignal, { readonly calls: Set<PendingCall>; readonly onAbort: () => void }>();
  #attempt: CnxnAttempt | undefined;
  /** The SASL exchange of the current connection. */
  #saslExchange: SaslExchange | undefined;
  #timer: TimerHandle | undefined;
  #timerAtMs: Millis = 0;
  #isFlushScheduled = false;
  /** Failed attempts at each place, since the session was created or last connected. */
  readonly #serverFailures = new Map<string, ServerFailures>();
  #failedAttempts = 0;
  /** Connected, as last reported to observers. */
  #isReportedConnected = false;
  readonly #waitingAuths = new Map<AuthCall, { resolve(): void; reject(reason: unknown): void }>();
  #firstConnection: { resolve(): void; reject(reason: unknown): void } | undefined;
  #closeWaiters: (() => void)[] = [];
  readonly #endListeners = new Set<() => void>();

  /** Resolves when a server has opened the session and accepted the credentials. */
  readonly established: Promise<void>;

  /** `servers` is empty if `options.service` is set. */
  constructor(
    servers: readonly ServerAddress[],
    options: Omit<SessionOptions, 'auth' | 'resolvesNames' | 'sasl'>,
    auth: readonly Credentials[],
    environment: SessionEnvironment,
  ) {
    this.#environment = environment;
    this.#packetBytesMax = options.packetBytesMax;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    const first = new Promise<void>((resolve, reject) => {
      this.#firstConnection = { resolve, reject };
    });
    const calls: AuthCall[] = auth.map((credentials) => ({ credentials }));
    this.established = Promise.all([first, ...calls.map((call) => this.#authResult(call))]).then(() => undefined);
    // The creator of the session awaits it, or has stopped waiting and must not get an unhandled
    // rejection.
    this.established.catch(() => undefined);
    this.#machine = new SessionMachine(
      { ...options, auth: calls, resolvesNames: environment.transport.resolve !== undefined, sasl: environment.sasl !== undefined },
      new HostProvider(servers, environment.random),
      environment.random,
      this.#output,
      this.#nowMs,
    );
    this.#armTimer();
  }

  get id(): SessionId {
    return this.#machine.sessionId;
  }

  get password(): Uint8Array {
    return this.#machine.password;
  }

  get timeoutMs(): Millis {
    return this.#machine.timeoutMs;
  }

  get remainingMs(): Millis {
    return this.#machine.remainingMs(this.#nowMs);
  }

  get lastZxid(): Zxid {
    return this.#machine.lastZxid;
  }

  get isConnected(): boolean {
    return this.#machine.isConnected;
  }

  get isReadOnly(): boolean {
    return this.#machine.isReadOnly;
  }

  /** No connection, but the ensemble may still know the session. */
  get isSuspended(): boolean {
    return this.#machine.isSuspended;
  }

  get endReason(): EndReason | undefined {
    return this.#machine.endReason;
  }

  get hasEnded(): boolean {
    return this.#machine.endReason !== undefined;
  }

  get clock(): Clock {
    return this.#environment.clock;
  }

  /** The clock for background work. */
  get backgroundClock(): Clock {
    return this.#environment.backgroundClock ?? this.#environment.clock;
  }

  get random(): Random {
    return this.#environment.random;
  }

  /** Calls back at the end of the session; returns a function that cancels this. */
  onEnd(callback: () => void): () => void {
    this.#endListeners.add(callback);
    return () => {
      this.#endListeners.delete(callback);
    };
  }

  /** The connected server. */
  get connectedServer(): string | undefined {
    return this.#machine.isConnected ? formatServer(this.#machine.server!) : undefined;
  }

  /** The server that is connected, tried, or was last. */
  get #serverText(): string | undefined {
    return this.#machine.server === undefined ? undefined : formatServer(this.#machine.server);
  }

  get tracer(): Tracer {
    return this.#environment.tracer;
  }

  /** Check `tracer.tracesSession` first. */
  trace(detail: SessionTraceDetail): void {
    this.tracer.sessionEvent({ ...detail, sessionId: this.id, server: this.#serverText });
  }

  /** The failed attempts to connect since the last connection. */
  get serverFailures(): readonly ServerFailures[] {
    return [...this.#serverFailures.values()];
  }

  observe(observer: SessionObserver): () => void {
    this.#observers.add(observer);
    return () => {
      this.#observers.delete(observer);
    };
  }

  /**
   * Makes a request. Rejects with a Refusal, with the signal's reason, or with what the operation
   * throws while it writes.
   */
  perform<Result>(operation: Operation<Result>, { signal, timeoutMs, traced }: RequestLimits): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const call = new PendingCall(operation, traced, resolve as (result: unknown) => void, reject);
      this.#machine.submit(call);
      this.#environment.processHold?.hold();
      if (operation.watches !== undefined) this.watches.addPending(operation.watches);
      if (signal !== undefined) this.#listenToSignal(call, signal);
      this.#startTimers(call, timeoutMs);
      this.#scheduleFlush();
    });
  }

  /** Rejects like `perform`. The session keeps the identity even if the caller no longer waits. */
  authenticate(credentials: Credentials, { signal, timeoutMs }: CallOptions): Promise<void> {
    const call: AuthCall = { credentials };
    const { clock } = this.#environment;
    const requestTimeoutMs = this.#requestTimeoutMs;
    let timer: TimerHandle | undefined;
    let requestTimer: RequestTimer | undefined;
    let onAbort: (() => void) | undefined;
    const result = new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      this.#machine.authenticate(call);
      this.#waitingAuths.set(call, { resolve, reject });
      this.#scheduleFlush();
      const rejectAsTimedOut = (limitMs: Millis) =>
        reject(new RequestFailure(ErrorCode.RequestTimeout, 'unknown', `no answer within ${limitMs} ms`));
      if (timeoutMs !== undefined) {
        if (timeoutMs <= timerMsMax) timer = clock.after(timeoutMs, () => rejectAsTimedOut(timeoutMs));
      } else if (requestTimeoutMs !== undefined && requestTimeoutMs <= timerMsMax) {
        const madeMs = this.#nowMs;
        requestTimer = new RequestTimer(
          clock,
          requestTimeoutMs,
          (nowMs) => (this.isConnected ? this.#serverRemainingMs(madeMs, requestTimeoutMs, nowMs) : 0),
          () => {
            rejectAsTimedOut(requestTimeoutMs);
            this.#abandonServer('auth', requestTimeoutMs);
          },
        );
      }
      onAbort = () => reject(signal!.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
    return this.holdProcess(result).finally(() => {
      if (timer !== undefined) clock.cancel(timer);
      requestTimer?.cancel();
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
    });
  }

  /** In the order in which they are tried. */
  get servers(): readonly ServerAddress[] {
    return this.#machine.servers;
  }

  /** Replaces the list. Returns whether the client leaves the connected server. */
  updateServers(servers: readonly ServerAddress[]): boolean {
    const moves = this.#machine.updateServers(servers, this.#nowMs);
    this.#armTimer();
    return moves;
  }

  /** Resolves when the session has ended, for whatever reason. */
  close(): Promise<void> {
    if (this.#machine.endReason !== undefined) return Promise.resolve();
    const closed = new Promise<void>((resolve) => {
      this.#closeWaiters.push(resolve);
    });
    this.#machine.close(this.#nowMs);
    this.#scheduleFlush();
    return this.holdProcess(closed);
  }

  /** Ends a session that could not be opened; waiting requests fail with the refusal. */
  abort(refusal: RequestFailure): void {
    this.#machine.abort(refusal, this.#nowMs);
    this.#scheduleFlush();
  }

  /** Keeps the process running until the promise settles. */
  holdProcess<Result>(promise: Promise<Result>): Promise<Result> {
    const { processHold } = this.#environment;
    if (processHold === undefined) return promise;
    processHold.hold();
    return promise.finally(() => processHold.release());
  }

  #authResult(call: AuthCall): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waitingAuths.set(call, { resolve, reject });
    });
  }

  // --- Calls

  /**
   * Adds one listener per signal, however many calls share it: Node warns of a leak if a signal has
   * many listeners.
   */
  #listenToSignal(call: PendingCall, signal: AbortSignal): void {
    call.signal = signal;
    const known = this.#callsBySignal.get(signal);
    if (known !== undefined) {
      known.calls.add(call);
      return;
    }
    const calls = new Set([call]);
    const onAbort = () => {
      this.#callsBySignal.delete(signal);
      for (const each of calls) {
        this.#machine.cancel(each);
        each.signal = undefined;
        this.#finish(each);
        each.reject(signal.reason);
      }
    };
    this.#callsBySignal.set(signal, { calls, onAbort });
    signal.addEventListener('abort', onAbort, { once: true });
  }

  #unlistenToSignal(call: PendingCall, signal: AbortSignal): void {
    call.signal = undefined;
    const known = this.#callsBySignal.get(signal);
    if (known === undefined || !known.calls.delete(call) || known.calls.size > 0) return;
    this.#callsBySignal.delete(signal);
    signal.removeEventListener('abort', known.onAbort);
  }

  /** Limits the call by its own time-out, or else by the client's. */
  #startTimers(call: PendingCall, timeoutMs: Millis | undefined): void {
    const { clock } = this.#environment;
    const requestTimeoutMs = this.#requestTimeoutMs;
    if (timeoutMs !== undefined) {
      if (timeoutMs <= timerMsMax) call.timeoutTimer = clock.after(timeoutMs, () => void this.#onTimeout(call, timeoutMs));
    } else if (requestTimeoutMs !== undefined && requestTimeoutMs <= timerMsMax) {
      const madeMs = this.#nowMs;
      call.requestTimer = new RequestTimer(
        clock,
        requestTimeoutMs,
        (nowMs) => (call.xid === 0 ? 0 : this.#serverRemainingMs(madeMs, requestTimeoutMs, nowMs)),
        () => {
          const what = operationOf(call.opCode)?.name ?? 'a request';
          if (this.#onTimeout(call, requestTimeoutMs) === 'unknown') this.#abandonServer(what, requestTimeoutMs);
        },
      );
    }
  }

  /** For a request made at `madeMs`, and sent then or as soon as there was a connection. */
  #serverRemainingMs(madeMs: Millis, limitMs: Millis, nowMs: Millis): Millis {
    return Math.max(madeMs, this.#machine.connectedAtMs) + limitMs - nowMs;
  }

  /** As ZooKeeper's Java client does after a request has timed out: another server may work. */
  #abandonServer(what: string, limitMs: Millis): void {
    this.#machine.abandonCnxn(`${what} was not answered within ${limitMs} ms`, this.#nowMs);
    this.#armTimer();
  }

  /** The caller no longer waits. Returns what is known of the request. */
  #onTimeout(call: PendingCall, limitMs: Millis): Outcome {
    call.timeoutTimer = call.requestTimer = undefined;
    const outcome = this.#machine.cancel(call) ? 'notSent' : 'unknown';
    this.#finish(call);
    call.reject(new RequestFailure(ErrorCode.RequestTimeout, outcome, `no answer within ${limitMs} ms`));
    return outcome;
  }

  /** Called once for each call, whether it is answered, failed or cancelled. */
  #finish(call: PendingCall): void {
    if (call.operation.watches !== undefined) this.watches.removePending(call.operation.watches);
    if (call.timeoutTimer !== undefined) this.#environment.clock.cancel(call.timeoutTimer);
    call.timeoutTimer = undefined;
    call.requestTimer?.cancel();
    call.requestTimer = undefined;
    this.#environment.processHold?.release();
    if (call.signal !== undefined) this.#unlistenToSignal(call, call.signal);
    if (call.traced !== undefined) this.#recordTrace(call, call.traced);
  }

  /** Records what is known of the request of a traced call. */
  #recordTrace({ xid }: PendingCall, traced: TracedCall): void {
    traced.xid = xid === 0 ? undefined : xid;
    traced.server = xid === 0 ? undefined : this.#serverText;
  }

  // --- Transport and clock

  get #nowMs(): Millis {
    return this.#environment.clock.now().elapsedMs;
  }

  /**
   * Something was written, or a deadline has changed. All writes of one turn of the program are
   * sent together.
   */
  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    void Promise.resolve().then(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isFlushScheduled = false;
    this.#machine.flush(this.#nowMs);
    this.#armTimer();
  };

  /**
   * A timer that is early costs one needless wake; setting it again for each request would cost
   * more.
   */
  #armTimer(): void {
    const deadline = this.#machine.deadline();
    if (this.#timer !== undefined) {
      if (deadline !== undefined && this.#timerAtMs <= deadline) return;
      this.backgroundClock.cancel(this.#timer);
      this.#timer = undefined;
    }
    if (deadline === undefined) return;
    this.#timerAtMs = deadline;
    this.#timer = this.backgroundClock.after(Math.max(0, deadline - this.#nowMs), this.#wake);
  }

  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#machine.wake(this.#nowMs);
    this.#armTimer();
  };

  readonly #attemptSink: CnxnAttemptSink = {
    cnxnOpened: () => {
      this.#machine.cnxnOpened(this.#nowMs);
      this.#armTimer();
    },
    received: (bytes) => {
      this.#machine.received(bytes, this.#nowMs);
      this.#armTimer();
    },
    cnxnClosed: (error) => {
      this.#attempt = undefined;
      this.#machine.cnxnClosed(error, this.#nowMs);
      this.#armTimer();
    },
  };

  #dial(address: ResolvedAddress): void {
    this.#attempt = new CnxnAttempt(this.#attemptSink);
    this.#connect(this.#attempt, address);
  }

  /** A look-up takes the place of its connection, and is dropped like one. */
  async #lookUp<Found>(find: () => Promise<Found>, found: (what: Found, nowMs: Millis) => void): Promise<void> {
    const attempt = new CnxnAttempt(this.#attemptSink);
    this.#attempt = attempt;
    let what: Found;
    try {
      // Wait a turn, as the machine must not be called back during one of its own calls, and a
      // transport may throw.
      what = await Promise.resolve().then(find);
    } catch (error) {
      attempt.closed(systemErrorTextOf(error));
      return;
    }
    if (attempt.isDropped) return;
    this.#attempt = undefined;
    found(what, this.#nowMs);
    this.#armTimer();
  }

  #connect(attempt: CnxnAttempt, address: ResolvedAddress): void {
    try {
      attempt.cnxn = this.#environment.transport.connect(address, attempt);
    } catch (error) {
      // The machine must not be called back during one of its own calls.
      void Promise.resolve().then(() => attempt.closed(systemErrorTextOf(error)));
    }
  }

  /**
   * Creates the next token of the SASL exchange. The machine gets it from the event loop, and only
   * while its connection lasts.
   */
  async #saslStep(step: (exchange: SaslExchange) => ReturnType<SaslExchange['nextToken']>): Promise<void> {
    const attempt = this.#attempt;
    const exchange = this.#saslExchange!;
    try {
      await Promise.resolve();
      const token = await step(exchange);
      if (this.#attempt === attempt) this.#machine.saslToken(token, this.#nowMs);
    } catch (error) {
      if (this.#attempt === attempt)
        this.#machine.saslFailed(`SASL ${this.#environment.sasl!.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#armTimer();
  }

  /** Asks with a four letter word, on a separate connection. */
  #probe(server: ServerAddress): void {
    const { backgroundClock: clock } = this;
    let text = '';
    let address: string | undefined;
    const finish = (hasQuorum: boolean) => {
      clock.cancel(timer);
      probe.isDropped = true;
      probe.cnxn?.destroy();
      this.#machine.probed(hasQuorum, address, this.#nowMs);
      this.#armTimer();
    };
    const probe: CnxnAttempt = new CnxnAttempt({
      cnxnOpened: () => probe.cnxn?.send(Buffer.from('isro')),
      received: (bytes) => {
        text += bytes.toString('latin1', 0, Math.min(bytes.length, probeAnswerBytes));
        if (text.length >= probeAnswerBytes) finish(text.startsWith('rw'));
      },
      cnxnClosed: () => finish(text.startsWith('rw')),
    });
    const timer = clock.after(probeTimeoutMs, () => finish(false));
    const connectToOneOf = (addresses: readonly string[]) => {
      address = addresses[Math.floor(uniform(this.#environment.random, addresses.length))];
      if (address === undefined) probe.closed(undefined);
      else if (!probe.isDropped) this.#connect(probe, { host: address, port: server.port, name: server.host });
    };
    const { transport } = this.#environment;
    if (transport.resolve === undefined) connectToOneOf([server.host]);
    else transport.resolve(server.host).then(connectToOneOf, () => probe.closed(undefined));
  }

  /** Runs the listener after all earlier answers; see the head of this file. */
  #deliverInOrder(listener: () => void): void {
    void Promise.resolve().then(noop).then(listener);
  }

  #deliverState(state: KeeperState, reason: string | undefined): void {
    if (this.tracer.tracesSession) this.trace({ kind: 'state', state, reason });
    const event: SessionEvent = { type: 'None', state, path: null, zxid: undefined, reason };
    for (const observer of this.#observers) observer.state(event);
    for (const { listener } of this.watches.all()) this.#deliverInOrder(() => listener(event));
  }

  deliverToWatcher(watcher: Watcher, type: NodeEventType, path: string, zxid: bigint | undefined): void {
    const { listener, chroot } = watcher;
    this.#deliverInOrder(() => listener({ type, state: 'SyncConnected', path: chroot.strip(path), zxid }));
  }

  /** For observers, to keep the same order. */
  deliver(listener: () => void): void {
    this.#deliverInOrder(listener);
  }

  readonly #output: SessionOutput<PendingCall> = {
    resolve: (host) => {
      void this.#lookUp(
        () => this.#environment.transport.resolve!(host),
        (addresses, nowMs) => this.#machine.addressesResolved(addresses, nowMs),
      );
    },
    resolveSrv: (name) => {
      void this.#lookUp(
        () => this.#environment.transport.resolveSrv!(name),
        (records, nowMs) => this.#machine.srvResolved(records, nowMs),
      );
    },
    dial: (address) => this.#dial(address),
    probe: (server) => this.#probe(server),
    send: (bytes) => this.#attempt?.cnxn?.send(bytes),
    startSasl: (server) => {
      this.#saslExchange = this.#environment.sasl!.startExchange(server);
      void this.#saslStep((exchange) => exchange.firstToken());
    },
    continueSasl: (challenge) => void this.#saslStep((exchange) => exchange.nextToken(challenge)),
    closeCnxn: (gently) => {
      const attempt = this.#attempt;
      if (attempt === undefined) return;
      this.#attempt = undefined;
      attempt.isDropped = true;
      if (gently) attempt.cnxn?.end();
      else attempt.cnxn?.destroy();
    },
    answered: (call, err, reader, zxid) => this.#onReply(call, err, reader, zxid),
    failed: (call, refusal) => {
      if (call.isCancelled) return;
      this.#finish(call);
      call.reject(refusal);
    },
    authenticated: (call) => {
      this.#waitingAuths.get(call)?.resolve();
      this.#waitingAuths.delete(call);
    },
    authFailed: (call, refusal) => {
      this.#waitingAuths.get(call)?.reject(refusal);
      this.#waitingAuths.delete(call);
    },
    event: (event, zxid) => this.#onEvent(event, zxid),
    connectionFailed: (place, reason) => {
      // The state event reports the loss of a connection.
      if (!this.#isReportedConnected) this.#attemptFailed(place, reason);
    },
    state: (state, reason) => {
      this.#isReportedConnected = state === 'SyncConnected' || state === 'ConnectedReadOnly';
      if (this.#isReportedConnected) {
        this.#serverFailures.clear();
        this.#failedAttempts = 0;
      }
      this.#deliverState(state, reason);
      if (this.#isReportedConnected) this.#firstConnection?.resolve();
      else if (state !== 'Disconnected') this.#onEnded(state, reason);
    },
    restoreWatches: (lastZxid) => setWatchesBatches(this.watches, lastZxid, this.#packetBytesMax),
  };

  #attemptFailed(server: string, reason: string): void {
    this.#failedAttempts++;
    if (this.#serverFailures.size < serverFailuresMax || this.#serverFailures.has(server))
      this.#serverFailures.set(server, { server, reason, attempts: (this.#serverFailures.get(server)?.attempts ?? 0) + 1 });
    if (this.tracer.tracesSession) this.trace({ kind: 'attemptFailed', reason: `${server}: ${reason}` });
    for (const observer of this.#observers) observer.connectFailed({ server: server, reason, attempt: this.#failedAttempts });
  }

  #onReply(call: PendingCall, err: number, reader: Reader, zxid: Zxid): void {
    if (call.traced !== undefined) call.traced.zxid = BigInt(zxid);
    let result: unknown;
    try {
      if (err === ErrorCode.Ok) {
        result = call.operation.read(reader);
      } else {
        const answer = call.operation.readError?.(err);
        if (answer === undefined) throw new RequestFailure(err, 'refused');
        ({ result } = answer);
      }
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error;
      this.#finish(call);
      call.reject(error);
      return;
    }
    this.#finish(call);
    call.resolve(result);
  }

  #onEvent({ type, path }: WatcherEvent, zxid: Zxid): void {
    const name = nodeEventTypes.get(type);
    // A later release may have unknown event types; the client does not watch what they are about.
    if (name === undefined) return;
    if (!path.startsWith('/')) throw new ProtocolError(`the path of an event, not ${JSON.stringify(path.slice(0, pathShownMax))}`, 0);
    const when = zxid > 0 ? BigInt(zxid) : undefined;
    if (this.tracer.tracesSession) this.trace({ kind: 'watch', type: name, path, zxid: when });
    for (const observer of this.#observers) observer.event(name, path, when);
    for (const watcher of this.watches.take(type, path)) this.deliverToWatcher(watcher, name, path, when);
  }

  #onEnded(state: KeeperState, reason: string | undefined): void {
    const code = state === 'AuthFailed' ? ErrorCode.AuthFailed : ErrorCode.SessionExpired;
    // Only a server rejects an identity, but the client itself may end a session (`expireLocally`).
    this.#firstConnection?.reject(new RequestFailure(code, state === 'AuthFailed' ? 'refused' : 'notSent', reason));
    this.watches.clear();
    for (const resolve of this.#closeWaiters) resolve();
    this.#closeWaiters = [];
    for (const listener of this.#endListeners) listener();
    this.#endListeners.clear();
  }
}

function noop(): void {}

/** The system's error code, if there is one. */
function systemErrorTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
