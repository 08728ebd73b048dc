/**
 * A session of a client: connects a session machine to the outside, and reports its beginning, its
 * states and its end. It makes no decisions.
 *
 *     program ──> Session, PendingCalls, PendingAuths ──┐
 *     network ──> ServerCnxn, IsroProbe ────────────────┼──> SessionMachine
 *     clock ────> MachineDriver ────────────────────────┘
 *
 *     SessionMachine ──> ServerCnxn, IsroProbe ──> network
 *               └──────> PendingCalls, PendingAuths, EventDelivery, Session ──> program
 */
import { ErrorCode, type Millis, type SessionId, type Zxid } from '@tskeeper/protocol';
import type { AuthCall, Credentials } from '../auth/credentials.ts';
import type { Clock, Random } from '../clock.ts';
import { formatServer } from '../connect-string.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { Tracer } from '../tracing.ts';
import type { ServerAddress } from '../transport.ts';
import type { KeeperState } from '../watched-event.ts';
import { setWatchesBatches } from '../watches/set-watches.ts';
import { WatchTable } from '../watches/watch-table.ts';
import { ConnectFailures, type ServerFailures } from './connect-failures.ts';
import { EventDelivery } from './event-delivery.ts';
import { HostProvider } from './host-provider.ts';
import { IsroProbe } from './isro-probe.ts';
import { MachineDriver } from './machine-driver.ts';
import { PendingAuths } from './pending-auths.ts';
import type { PendingCall } from './pending-call.ts';
import { PendingCalls } from './pending-calls.ts';
import { holdUntilSettled } from './process-hold.ts';
import { RequestTimeLimit } from './request-time-limit.ts';
import { ServerCnxn } from './server-cnxn.ts';
import type { EndReason } from './session-end.ts';
import type { SessionEnvironment } from './session-environment.ts';
import { type FeatureSession, ServerFeatures } from './server-features.ts';
import { SessionMachine } from './session-machine.ts';
import type { SessionOptions } from './session-options.ts';
import type { StateOutput } from './session-output.ts';
import { SessionTracer } from './session-tracer.ts';

export class Session implements FeatureSession {
  readonly watches = new WatchTable();
  readonly events: EventDelivery;
  readonly calls: PendingCalls;
  readonly identities: PendingAuths;
  readonly trace: SessionTracer;
  readonly features = new ServerFeatures(this);
  /** The longest packet that the client accepts, apart from a margin. */
  readonly packetBytesMax: number;
  readonly #environment: SessionEnvironment;
  readonly #driver: MachineDriver;
  readonly #machine: SessionMachine<PendingCall>;
  readonly #connectFailures = new ConnectFailures();
  /** Connected, as last reported to observers. */
  #isReportedConnected = false;
  #firstConnection: { resolve(): void; reject(reason: unknown): void } | undefined;
  #closeWaiters: (() => void)[] = [];
  readonly #endListeners = new Set<() => void>();

  /** Resolves when a server has opened the session and accepted the credentials. */
  readonly established: Promise<void>;

  /** `servers` is empty if `options.srvName` is set. */
  constructor(
    servers: readonly ServerAddress[],
    options: Omit<SessionOptions, 'auth' | 'resolvesNames' | 'sasl'>,
    auth: readonly Credentials[],
    environment: SessionEnvironment,
  ) {
    const { transport, random, tracer, sasl } = environment;
    const driver = new MachineDriver(environment);
    const timeLimit = new RequestTimeLimit(options.requestTimeoutMs, environment, driver);
    this.trace = new SessionTracer(tracer, driver);
    this.events = new EventDelivery(this.watches, this.trace);
    this.calls = new PendingCalls(environment, driver, this.watches, timeLimit, this.trace);
    this.identities = new PendingAuths(environment, driver, timeLimit);
    this.#environment = environment;
    this.packetBytesMax = options.packetBytesMax;
    this.#driver = driver;
    const first = new Promise<void>((resolve, reject) => {
      this.#firstConnection = { resolve, reject };
    });
    const calls: AuthCall[] = auth.map((credentials) => ({ credentials }));
    this.established = Promise.all([first, ...calls.map((call) => this.identities.resultOf(call))]).then(() => undefined);
    // The creator of the session awaits it, or has stopped waiting and must not get an unhandled
    // rejection.
    this.established.catch(() => undefined);
    this.#machine = new SessionMachine<PendingCall>(
      { ...options, auth: calls, resolvesNames: transport.resolve !== undefined, sasl: sasl !== undefined },
      new HostProvider(servers, random),
      random,
      {
        cnxn: new ServerCnxn(environment, driver),
        probes: new IsroProbe(environment, driver),
        calls: this.calls,
        identities: this.identities,
        watches: { restoreWatches: (lastZxid) => setWatchesBatches(this.watches, lastZxid, options.packetBytesMax) },
        events: this.events,
        states: this.#stateOutput,
      },
      driver.nowMs,
    );
    driver.drive(this.#machine);
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
    return this.#machine.remainingMs(this.#driver.nowMs);
  }

  get lastZxid(): Zxid {
    return this.#machine.lastZxid;
  }

  get isConnected(): boolean {
    return this.#machine.isConnected;
  }

  get cnxnNumber(): number {
    return this.#machine.cnxnNumber;
  }

  get sendsAtOnce(): boolean {
    return this.#machine.sendsAtOnce;
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

  /** The connected server. */
  get connectedServer(): string | undefined {
    return this.#machine.isConnected ? formatServer(this.#machine.server!) : undefined;
  }

  /** In the order in which they are tried. */
  get servers(): readonly ServerAddress[] {
    return this.#machine.servers;
  }

  /** The failed attempts to connect since the last connection. */
  get serverFailures(): readonly ServerFailures[] {
    return this.#connectFailures.byServer;
  }

  get clock(): Clock {
    return this.#environment.clock;
  }

  /** The clock for background work. */
  get backgroundClock(): Clock {
    return this.#environment.backgroundClock;
  }

  get random(): Random {
    return this.#environment.random;
  }

  get tracer(): Tracer {
    return this.#environment.tracer;
  }

  /** Replaces the list. Returns whether the client leaves the connected server. */
  updateServers(servers: readonly ServerAddress[]): boolean {
    const moves = this.#machine.updateServers(servers, this.#driver.nowMs);
    this.#driver.armTimer();
    return moves;
  }

  /** Keeps the process running until the promise settles. */
  holdProcess<Result>(promise: Promise<Result>): Promise<Result> {
    return holdUntilSettled(this.#environment.processHold, promise);
  }

  // --- The beginning, the states and the end

  readonly #stateOutput: StateOutput = {
    connectionFailed: (server, reason) => {
      // The state event reports the loss of a connection.
      if (!this.#isReportedConnected) this.events.connectFailed(this.#connectFailures.add(server, reason));
    },
    state: (state, reason) => {
      this.#isReportedConnected = state === 'SyncConnected' || state === 'ConnectedReadOnly';
      if (this.#isReportedConnected) this.#connectFailures.clear();
      this.events.state(state, reason);
      if (this.#isReportedConnected) this.#firstConnection?.resolve();
      else if (state !== 'Disconnected') this.#onEnded(state, reason);
    },
  };

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

  /** Calls back at the end of the session; returns a function that cancels this. */
  onEnd(callback: () => void): () => void {
    this.#endListeners.add(callback);
    return () => {
      this.#endListeners.delete(callback);
    };
  }

  /** Resolves when the session has ended, for whatever reason. */
  close(): Promise<void> {
    if (this.#machine.endReason !== undefined) return Promise.resolve();
    const closed = new Promise<void>((resolve) => {
      this.#closeWaiters.push(resolve);
    });
    this.#machine.close(this.#driver.nowMs);
    this.#driver.scheduleFlush();
    return this.holdProcess(closed);
  }

  /** Ends a session that could not be opened; waiting requests fail with the refusal. */
  abort(refusal: RequestFailure): void {
    this.#machine.abort(refusal, this.#driver.nowMs);
    this.#driver.scheduleFlush();
  }
}
