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
import type { Limits } from '../calls/bounds.ts';
import { type Clock, type Random, type TimerHandle, timerMsMax, uniform } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import { type Outcome, Refusal } from '../keeper-error.ts';
import type { SessionNews, TracedCall, Tracer } from '../tracing.ts';
import type { DialledAddress, ServerAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';
import type { ConnectFailure, KeeperState, NodeEventType, SessionEvent } from '../watched-event.ts';
import { setWatchesPieces } from '../watches/set-watches.ts';
import { type Watcher, WatchTable } from '../watches/watch-table.ts';
import { HostList } from './host-list.ts';
import type { CallOptions, Operation } from './operation.ts';
import { Request } from './request.ts';
import { ServerLimit } from './server-limit.ts';
import {
  type AuthCall,
  type Credentials,
  type EndReason,
  SessionMachine,
  type SessionOptions,
  type SessionOut,
} from './session-machine.ts';

export interface SessionWorld {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly tracer: Tracer;
  /** Proves an identity by SASL on each connection; undefined: none. */
  readonly sasl?: SaslMechanism | undefined;
  /** The clock for background work: pings, attempts to connect. undefined: `clock`. */
  readonly background?: Clock | undefined;
  /**
   * Keeps the process running while the program waits for something; undefined: connections and
   * timers do so by themselves.
   */
  readonly hold?: ProcessHold | undefined;
}

/** Keeps the process running while there were more calls of `hold` than of `release`. */
export interface ProcessHold {
  hold(): void;
  release(): void;
}

/** A place where attempts to connect failed, the last reason, and their number. */
export interface Trouble {
  readonly place: string;
  readonly reason: string;
  readonly attempts: number;
}

/**
 * Maximum number of places that are remembered for the error of a session that could not be opened.
 */
const troublesMax = 16;

/** Receives everything, with the paths of the server. */
export interface SessionObserver {
  state(event: SessionEvent): void;
  connectFailed(failure: ConnectFailure): void;
  event(type: NodeEventType, path: string, zxid: bigint | undefined): void;
}

/** A request with its promise. */
class Call extends Request {
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly traced: TracedCall | undefined;
  /** The timer of the call's own time-out. */
  timer: TimerHandle | undefined;
  /** The client's limit, if the call has no time-out of its own. */
  limit: ServerLimit | undefined;
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
class Link implements TransportSink {
  readonly #session: LinkSink;
  cnxn: TransportCnxn | undefined;
  /** The session ignores all further input of this link. */
  dropped = false;

  constructor(session: LinkSink) {
    this.#session = session;
  }

  connected(): void {
    if (!this.dropped) this.#session.opened();
  }

  received(bytes: Buffer): void {
    if (!this.dropped) this.#session.received(bytes);
  }

  closed(error: string | undefined): void {
    if (this.dropped) return;
    this.dropped = true;
    this.#session.disconnected(error);
  }
}

/** Maximum length of an invalid path in an error. */
const pathShownMax = 40;
/** As in ZooKeeper's client. */
const probeTimeoutMs = 1000;
/** `rw` or `ro`, and a newline. */
const probeAnswerBytes = 3;

interface LinkSink {
  opened(): void;
  received(bytes: Buffer): void;
  disconnected(error: string | undefined): void;
}

const nodeEventTypes: ReadonlyMap<number, NodeEventType> = new Map<number, NodeEventType>([
  [EventType.nodeCreated, 'NodeCreated'],
  [EventType.nodeDeleted, 'NodeDeleted'],
  [EventType.nodeDataChanged, 'NodeDataChanged'],
  [EventType.nodeChildrenChanged, 'NodeChildrenChanged'],
]);

export class Session {
  readonly watches = new WatchTable();
  readonly #world: SessionWorld;
  readonly #machine: SessionMachine<Call>;
  readonly #packetBytesMax: number;
  /**
   * How long a server may take for a request without a time-out of its own; undefined: no limit.
   */
  readonly #requestTimeoutMs: Millis | undefined;
  readonly #observers = new Set<SessionObserver>();
  readonly #signals = new Map<AbortSignal, { readonly calls: Set<Call>; readonly onAbort: () => void }>();
  #link: Link | undefined;
  /** The SASL exchange of the current connection. */
  #exchange: SaslExchange | undefined;
  #timer: TimerHandle | undefined;
  #timerAtMs: Millis = 0;
  #flushPlanned = false;
  /** Failed attempts at each place, since the session was created or last connected. */
  readonly #troubles = new Map<string, Trouble>();
  #attemptsFailed = 0;
  /** Connected, as last reported to observers. */
  #isUp = false;
  readonly #authWaiters = new Map<AuthCall, { resolve(): void; reject(reason: unknown): void }>();
  #begun: { resolve(): void; reject(reason: unknown): void } | undefined;
  #whenClosed: (() => void)[] = [];
  readonly #overListeners = new Set<() => void>();

  /** Resolves when a server has opened the session and accepted the credentials. */
  readonly established: Promise<void>;

  /** `servers` is empty if `options.service` is set. */
  constructor(
    servers: readonly ServerAddress[],
    options: Omit<SessionOptions, 'auth' | 'resolves' | 'sasl'>,
    auth: readonly Credentials[],
    world: SessionWorld,
  ) {
    this.#world = world;
    this.#packetBytesMax = options.packetBytesMax;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    const first = new Promise<void>((resolve, reject) => {
      this.#begun = { resolve, reject };
    });
    const calls: AuthCall[] = auth.map((credentials) => ({ credentials }));
    this.established = Promise.all([first, ...calls.map((call) => this.#verdict(call))]).then(() => undefined);
    // The creator of the session awaits it, or has stopped waiting and must not get an unhandled
    // rejection.
    this.established.catch(() => undefined);
    this.#machine = new SessionMachine(
      { ...options, auth: calls, resolves: world.transport.resolve !== undefined, sasl: world.sasl !== undefined },
      new HostList(servers, world.random),
      world.random,
      this.#out,
      this.#nowMs,
    );
    this.#arm();
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

  get leftMs(): Millis {
    return this.#machine.leftMs(this.#nowMs);
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

  get isOver(): boolean {
    return this.#machine.endReason !== undefined;
  }

  get clock(): Clock {
    return this.#world.clock;
  }

  /** The clock for background work. */
  get background(): Clock {
    return this.#world.background ?? this.#world.clock;
  }

  get random(): Random {
    return this.#world.random;
  }

  /** Calls back at the end of the session; returns a function that cancels this. */
  onceOver(callback: () => void): () => void {
    this.#overListeners.add(callback);
    return () => {
      this.#overListeners.delete(callback);
    };
  }

  /** The connected server. */
  get connectedTo(): string | undefined {
    return this.#machine.isConnected ? formatServer(this.#machine.server!) : undefined;
  }

  /** The server that is connected, tried, or was last. */
  get #server(): string | undefined {
    return this.#machine.server === undefined ? undefined : formatServer(this.#machine.server);
  }

  get tracer(): Tracer {
    return this.#world.tracer;
  }

  /** Check `tracer.hearsSession` first. */
  trace(news: SessionNews): void {
    this.tracer.session({ ...news, sessionId: this.id, server: this.#server });
  }

  /** The failed attempts to connect since the last connection. */
  get troubles(): readonly Trouble[] {
    return [...this.#troubles.values()];
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
  perform<Result>(operation: Operation<Result>, { signal, timeoutMs, traced }: Limits): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const call = new Call(operation, traced, resolve as (result: unknown) => void, reject);
      this.#machine.submit(call);
      this.#world.hold?.hold();
      if (operation.watches !== undefined) this.watches.expect(operation.watches);
      if (signal !== undefined) this.#heed(call, signal);
      this.#bound(call, timeoutMs);
      this.#touched();
    });
  }

  /** Rejects like `perform`. The session keeps the identity even if the caller no longer waits. */
  authenticate(credentials: Credentials, { signal, timeoutMs }: CallOptions): Promise<void> {
    const call: AuthCall = { credentials };
    const { clock } = this.#world;
    const requestTimeoutMs = this.#requestTimeoutMs;
    let timer: TimerHandle | undefined;
    let limit: ServerLimit | undefined;
    let onAbort: (() => void) | undefined;
    const verdict = new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      this.#machine.authenticate(call);
      this.#authWaiters.set(call, { resolve, reject });
      this.#touched();
      const overdue = (limitMs: Millis) => reject(new Refusal(ErrorCode.RequestTimeout, 'unknown', `no answer within ${limitMs} ms`));
      if (timeoutMs !== undefined) {
        if (timeoutMs <= timerMsMax) timer = clock.after(timeoutMs, () => overdue(timeoutMs));
      } else if (requestTimeoutMs !== undefined && requestTimeoutMs <= timerMsMax) {
        const madeMs = this.#nowMs;
        limit = new ServerLimit(
          clock,
          requestTimeoutMs,
          (nowMs) => (this.isConnected ? this.#leftForServer(madeMs, requestTimeoutMs, nowMs) : 0),
          () => {
            overdue(requestTimeoutMs);
            this.#leaveServer('auth', requestTimeoutMs);
          },
        );
      }
      onAbort = () => reject(signal!.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
    return this.held(verdict).finally(() => {
      if (timer !== undefined) clock.cancel(timer);
      limit?.cancel();
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
    this.#arm();
    return moves;
  }

  /** Resolves when the session has ended, for whatever reason. */
  close(): Promise<void> {
    if (this.#machine.endReason !== undefined) return Promise.resolve();
    const closed = new Promise<void>((resolve) => {
      this.#whenClosed.push(resolve);
    });
    this.#machine.close(this.#nowMs);
    this.#touched();
    return this.held(closed);
  }

  /** Ends a session that could not be opened; waiting requests fail with the refusal. */
  giveUp(refusal: Refusal): void {
    this.#machine.giveUp(refusal, this.#nowMs);
    this.#touched();
  }

  /** Keeps the process running until the promise settles. */
  held<Result>(promise: Promise<Result>): Promise<Result> {
    const { hold } = this.#world;
    if (hold === undefined) return promise;
    hold.hold();
    return promise.finally(() => hold.release());
  }

  #verdict(call: AuthCall): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#authWaiters.set(call, { resolve, reject });
    });
  }

  // --- Calls

  /**
   * Adds one listener per signal, however many calls share it: Node warns of a leak if a signal has
   * many listeners.
   */
  #heed(call: Call, signal: AbortSignal): void {
    call.signal = signal;
    const known = this.#signals.get(signal);
    if (known !== undefined) {
      known.calls.add(call);
      return;
    }
    const calls = new Set([call]);
    const onAbort = () => {
      this.#signals.delete(signal);
      for (const each of calls) {
        this.#machine.withdraw(each);
        each.signal = undefined;
        this.#settled(each);
        each.reject(signal.reason);
      }
    };
    this.#signals.set(signal, { calls, onAbort });
    signal.addEventListener('abort', onAbort, { once: true });
  }

  #unheed(call: Call, signal: AbortSignal): void {
    call.signal = undefined;
    const known = this.#signals.get(signal);
    if (known === undefined || !known.calls.delete(call) || known.calls.size > 0) return;
    this.#signals.delete(signal);
    signal.removeEventListener('abort', known.onAbort);
  }

  /** Limits the call by its own time-out, or else by the client's. */
  #bound(call: Call, timeoutMs: Millis | undefined): void {
    const { clock } = this.#world;
    const requestTimeoutMs = this.#requestTimeoutMs;
    if (timeoutMs !== undefined) {
      if (timeoutMs <= timerMsMax) call.timer = clock.after(timeoutMs, () => void this.#overdue(call, timeoutMs));
    } else if (requestTimeoutMs !== undefined && requestTimeoutMs <= timerMsMax) {
      const madeMs = this.#nowMs;
      call.limit = new ServerLimit(
        clock,
        requestTimeoutMs,
        (nowMs) => (call.xid === 0 ? 0 : this.#leftForServer(madeMs, requestTimeoutMs, nowMs)),
        () => {
          const what = operationOf(call.opCode)?.name ?? 'a request';
          if (this.#overdue(call, requestTimeoutMs) === 'unknown') this.#leaveServer(what, requestTimeoutMs);
        },
      );
    }
  }

  /** For a request made at `madeMs`, and sent then or as soon as there was a connection. */
  #leftForServer(madeMs: Millis, limitMs: Millis, nowMs: Millis): Millis {
    return Math.max(madeMs, this.#machine.connectedMs) + limitMs - nowMs;
  }

  /** As ZooKeeper's Java client does after a request has timed out: another server may work. */
  #leaveServer(what: string, limitMs: Millis): void {
    this.#machine.leave(`${what} was not answered within ${limitMs} ms`, this.#nowMs);
    this.#arm();
  }

  /** The caller no longer waits. Returns what is known of the request. */
  #overdue(call: Call, limitMs: Millis): Outcome {
    call.timer = call.limit = undefined;
    const outcome = this.#machine.withdraw(call) ? 'notSent' : 'unknown';
    this.#settled(call);
    call.reject(new Refusal(ErrorCode.RequestTimeout, outcome, `no answer within ${limitMs} ms`));
    return outcome;
  }

  /** Called once for each call, whether it is answered, failed or cancelled. */
  #settled(call: Call): void {
    if (call.operation.watches !== undefined) this.watches.settle(call.operation.watches);
    if (call.timer !== undefined) this.#world.clock.cancel(call.timer);
    call.timer = undefined;
    call.limit?.cancel();
    call.limit = undefined;
    this.#world.hold?.release();
    if (call.signal !== undefined) this.#unheed(call, call.signal);
    if (call.traced !== undefined) this.#note(call, call.traced);
  }

  /** Records what is known of the request of a traced call. */
  #note({ xid }: Call, traced: TracedCall): void {
    traced.xid = xid === 0 ? undefined : xid;
    traced.server = xid === 0 ? undefined : this.#server;
  }

  // --- Transport and clock

  get #nowMs(): Millis {
    return this.#world.clock.now().elapsedMs;
  }

  /**
   * Something was written, or a deadline has changed. All writes of one turn of the program are
   * sent together.
   */
  #touched(): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    void Promise.resolve().then(this.#flush);
  }

  readonly #flush = (): void => {
    this.#flushPlanned = false;
    this.#machine.flush(this.#nowMs);
    this.#arm();
  };

  /**
   * A timer that is early costs one needless wake; setting it again for each request would cost
   * more.
   */
  #arm(): void {
    const deadline = this.#machine.deadline();
    if (this.#timer !== undefined) {
      if (deadline !== undefined && this.#timerAtMs <= deadline) return;
      this.background.cancel(this.#timer);
      this.#timer = undefined;
    }
    if (deadline === undefined) return;
    this.#timerAtMs = deadline;
    this.#timer = this.background.after(Math.max(0, deadline - this.#nowMs), this.#wake);
  }

  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#machine.wake(this.#nowMs);
    this.#arm();
  };

  readonly #linkSink: LinkSink = {
    opened: () => {
      this.#machine.opened(this.#nowMs);
      this.#arm();
    },
    received: (bytes) => {
      this.#machine.received(bytes, this.#nowMs);
      this.#arm();
    },
    disconnected: (error) => {
      this.#link = undefined;
      this.#machine.disconnected(error, this.#nowMs);
      this.#arm();
    },
  };

  #dial(address: DialledAddress): void {
    this.#link = new Link(this.#linkSink);
    this.#connect(this.#link, address);
  }

  /** A look-up takes the place of its connection, and is dropped like one. */
  async #lookUp<Found>(find: () => Promise<Found>, found: (what: Found, nowMs: Millis) => void): Promise<void> {
    const link = new Link(this.#linkSink);
    this.#link = link;
    let what: Found;
    try {
      // Wait a turn, as the machine must not be called back during one of its own calls, and a
      // transport may throw.
      what = await Promise.resolve().then(find);
    } catch (error) {
      link.closed(wordsOf(error));
      return;
    }
    if (link.dropped) return;
    this.#link = undefined;
    found(what, this.#nowMs);
    this.#arm();
  }

  #connect(link: Link, address: DialledAddress): void {
    try {
      link.cnxn = this.#world.transport.connect(address, link);
    } catch (error) {
      // The machine must not be called back during one of its own calls.
      void Promise.resolve().then(() => link.closed(wordsOf(error)));
    }
  }

  /**
   * Creates the next token of the SASL exchange. The machine gets it from the event loop, and only
   * while its connection lasts.
   */
  async #saslStep(step: (exchange: SaslExchange) => ReturnType<SaslExchange['respond']>): Promise<void> {
    const link = this.#link;
    const exchange = this.#exchange!;
    try {
      await Promise.resolve();
      const token = await step(exchange);
      if (this.#link === link) this.#machine.saslToken(token, this.#nowMs);
    } catch (error) {
      if (this.#link === link)
        this.#machine.saslFailed(`SASL ${this.#world.sasl!.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#arm();
  }

  /** Asks with a four letter word, on a separate connection. */
  #probe(server: ServerAddress): void {
    const { background: clock } = this;
    let text = '';
    let address: string | undefined;
    const over = (hasQuorum: boolean) => {
      clock.cancel(timer);
      probe.dropped = true;
      probe.cnxn?.destroy();
      this.#machine.probed(hasQuorum, address, this.#nowMs);
      this.#arm();
    };
    const probe: Link = new Link({
      opened: () => probe.cnxn?.send(Buffer.from('isro')),
      received: (bytes) => {
        text += bytes.toString('latin1', 0, Math.min(bytes.length, probeAnswerBytes));
        if (text.length >= probeAnswerBytes) over(text.startsWith('rw'));
      },
      disconnected: () => over(text.startsWith('rw')),
    });
    const timer = clock.after(probeTimeoutMs, () => over(false));
    const reach = (addresses: readonly string[]) => {
      address = addresses[Math.floor(uniform(this.#world.random, addresses.length))];
      if (address === undefined) probe.closed(undefined);
      else if (!probe.dropped) this.#connect(probe, { host: address, port: server.port, name: server.host });
    };
    const { transport } = this.#world;
    if (transport.resolve === undefined) reach([server.host]);
    else transport.resolve(server.host).then(reach, () => probe.closed(undefined));
  }

  /** Runs the listener after all earlier answers; see the head of this file. */
  #tell(listener: () => void): void {
    void Promise.resolve().then(nothing).then(listener);
  }

  #tellOfState(state: KeeperState, reason: string | undefined): void {
    if (this.tracer.hearsSession) this.trace({ kind: 'state', state, reason });
    const event: SessionEvent = { type: 'None', state, path: null, zxid: undefined, reason };
    for (const observer of this.#observers) observer.state(event);
    for (const { listener } of this.watches.all()) this.#tell(() => listener(event));
  }

  tellWatcher(watcher: Watcher, type: NodeEventType, path: string, zxid: bigint | undefined): void {
    const { listener, chroot } = watcher;
    this.#tell(() => listener({ type, state: 'SyncConnected', path: chroot.inner(path), zxid }));
  }

  /** For observers, to keep the same order. */
  tell(listener: () => void): void {
    this.#tell(listener);
  }

  readonly #out: SessionOut<Call> = {
    resolve: (host) => {
      void this.#lookUp(
        () => this.#world.transport.resolve!(host),
        (addresses, nowMs) => this.#machine.resolved(addresses, nowMs),
      );
    },
    resolveService: (name) => {
      void this.#lookUp(
        () => this.#world.transport.resolveService!(name),
        (records, nowMs) => this.#machine.serviceResolved(records, nowMs),
      );
    },
    dial: (address) => this.#dial(address),
    probe: (server) => this.#probe(server),
    send: (bytes) => this.#link?.cnxn?.send(bytes),
    saslBegin: (server) => {
      this.#exchange = this.#world.sasl!.exchange(server);
      void this.#saslStep((exchange) => exchange.begin());
    },
    saslChallenge: (challenge) => void this.#saslStep((exchange) => exchange.respond(challenge)),
    hangUp: (gently) => {
      const link = this.#link;
      if (link === undefined) return;
      this.#link = undefined;
      link.dropped = true;
      if (gently) link.cnxn?.end();
      else link.cnxn?.destroy();
    },
    answered: (call, err, reader, zxid) => this.#answered(call, err, reader, zxid),
    failed: (call, refusal) => {
      if (call.withdrawn) return;
      this.#settled(call);
      call.reject(refusal);
    },
    authenticated: (call) => {
      this.#authWaiters.get(call)?.resolve();
      this.#authWaiters.delete(call);
    },
    authFailed: (call, refusal) => {
      this.#authWaiters.get(call)?.reject(refusal);
      this.#authWaiters.delete(call);
    },
    event: (event, zxid) => this.#event(event, zxid),
    troubled: (place, reason) => {
      // The state event reports the loss of a connection.
      if (!this.#isUp) this.#attemptFailed(place, reason);
    },
    state: (state, reason) => {
      this.#isUp = state === 'SyncConnected' || state === 'ConnectedReadOnly';
      if (this.#isUp) {
        this.#troubles.clear();
        this.#attemptsFailed = 0;
      }
      this.#tellOfState(state, reason);
      if (this.#isUp) this.#begun?.resolve();
      else if (state !== 'Disconnected') this.#ended(state, reason);
    },
    restoreWatches: (lastZxid) => setWatchesPieces(this.watches, lastZxid, this.#packetBytesMax),
  };

  #attemptFailed(place: string, reason: string): void {
    this.#attemptsFailed++;
    if (this.#troubles.size < troublesMax || this.#troubles.has(place))
      this.#troubles.set(place, { place, reason, attempts: (this.#troubles.get(place)?.attempts ?? 0) + 1 });
    if (this.tracer.hearsSession) this.trace({ kind: 'attemptFailed', reason: `${place}: ${reason}` });
    for (const observer of this.#observers) observer.connectFailed({ server: place, reason, attempt: this.#attemptsFailed });
  }

  #answered(call: Call, err: number, reader: Reader, zxid: Zxid): void {
    if (call.traced !== undefined) call.traced.zxid = BigInt(zxid);
    let result: unknown;
    try {
      if (err === ErrorCode.Ok) {
        result = call.operation.read(reader);
      } else {
        const answer = call.operation.readError?.(err);
        if (answer === undefined) throw new Refusal(err, 'refused');
        ({ result } = answer);
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#settled(call);
      call.reject(error);
      return;
    }
    this.#settled(call);
    call.resolve(result);
  }

  #event({ type, path }: WatcherEvent, zxid: Zxid): void {
    const name = nodeEventTypes.get(type);
    // A later release may have unknown event types; the client does not watch what they are about.
    if (name === undefined) return;
    if (!path.startsWith('/')) throw new ProtocolError(`the path of an event, not ${JSON.stringify(path.slice(0, pathShownMax))}`, 0);
    const when = zxid > 0 ? BigInt(zxid) : undefined;
    if (this.tracer.hearsSession) this.trace({ kind: 'watch', type: name, path, zxid: when });
    for (const observer of this.#observers) observer.event(name, path, when);
    for (const watcher of this.watches.take(type, path)) this.tellWatcher(watcher, name, path, when);
  }

  #ended(state: KeeperState, reason: string | undefined): void {
    const code = state === 'AuthFailed' ? ErrorCode.AuthFailed : ErrorCode.SessionExpired;
    // Only a server rejects an identity, but the client itself may end a session (`expireLocally`).
    this.#begun?.reject(new Refusal(code, state === 'AuthFailed' ? 'refused' : 'notSent', reason));
    this.watches.clear();
    for (const resolve of this.#whenClosed) resolve();
    this.#whenClosed = [];
    for (const listener of this.#overListeners) listener();
    this.#overListeners.clear();
  }
}

function nothing(): void {}

/** The system's error code, if there is one. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
