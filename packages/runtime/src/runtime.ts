/**
 * Runs a core in a world: recovers its state, listens for clients, and drives it in turns.
 *
 * A turn is one input from the world (a batch from the network, a completed sync, a timer), all
 * work of the core for it, and then one flush: first the log, so that the disk works while output
 * is sent, then all output. Time is read once per turn.
 */
import { type CoreOptions, type Inspector, type Now, type Observer, type Peer, Server, standaloneOrder } from '@tskeeper/core';
import { ConnectionThrottle, StepBudget } from '@tskeeper/core/internal';
import { formatHostPort, formatZxid, isParticipant, type Millis, type SessionId, type Writer, type Zxid } from '@tskeeper/protocol';
import type { TimerHandle } from './clock.ts';
import { DiskError } from './disk.ts';
import { MemoryGuard } from './memory-guard.ts';
import { earliestDeadline, EnsembleRuntime, type PeerPort } from './ensemble-runtime.ts';
import type { EnsembleOptions } from './ensemble-options.ts';
import type { MemoryUse } from './memory-use.ts';
import { OperatorLog } from './metrics/operator-log.ts';
import type { Endpoint, Listener, NetworkSink, ReceivedBatch, StreamId } from './network.ts';
import type { RuntimeOptions } from './options.ts';
import { ClientPort } from './ports/client/client-port.ts';
import { clientPortDefaults } from './ports/client/client-port-options.ts';
import { type DescriptorPlan, planDescriptors, descriptorRemedy, warnOfShortage } from './ports/descriptor-plan.ts';
import { FourLetterWords, parseWhitelist } from './ports/four-letter-words.ts';
import type { EnsembleConf, ServerConf, ServerFacts } from './ports/server-facts.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import type { RecoveryResult } from './storage/recovery.ts';
import { Storage, type StorageSink, type StorageSizes } from './storage/storage.ts';
import { combineObservers } from './metrics/combined-observer.ts';
import type { FlushedBatch } from './storage/txn-log.ts';
import type { Runtime, RuntimeHooks, World } from './world.ts';

/**
 * Starts a server, standalone or, with `member`, as part of an ensemble. Resolves when clients can
 * connect, although a server of an ensemble refuses them until it leads or follows. Rejects with a
 * sentence for the operator (`FolderInUse`, `StorageRefused`, `DiskError`, a port in use) when it
 * cannot serve; then everything is closed.
 */
export async function startRuntime(
  world: World,
  core: CoreOptions,
  options: RuntimeOptions,
  hooks: RuntimeHooks,
  ensembleOptions?: EnsembleOptions,
): Promise<Runtime> {
  const server = new ServerRuntime(world, core, options, hooks, ensembleOptions);
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/**
 * Interval between two measurements of the folders' sizes. They need not be exact to the second,
 * and each measurement looks at every file.
 */
const sizesIntervalMs = 10_000;

/** How long a closing server waits for its clients to read their last replies. */
const closeGraceMs = 1000;
const pollMs = 10;

/** How often a server checks its memory and its disk. */
const watchdogIntervalMs = 100;
/** Minimum time limit of the disk for one batch of the log, and for closing. */
const diskTimeoutMsMin = 10_000;

class ServerRuntime implements Runtime, NetworkSink, StorageSink {
  readonly #world: World;
  readonly #coreOptions: CoreOptions;
  readonly #options: RuntimeOptions;
  readonly #hooks: RuntimeHooks;
  readonly #storage: Storage;
  readonly #metrics: OperatorLog;
  /** The bookkeeping and the observer of the hooks, if there is one. */
  readonly #observer: Observer;
  readonly #ensembleOptions: EnsembleOptions | undefined;
  #core!: Server | Peer;
  /** The parts that only an ensemble needs. */
  #ensemble: EnsembleRuntime | undefined;
  #clientPort!: ClientPort;
  readonly #budgets: { readonly core: number; readonly port: number };
  #throttle: ConnectionThrottle | undefined;
  #listener: Listener | undefined;
  #startedMs: Millis = 0;
  #sizes: StorageSizes = { dataDirBytes: 0, logDirBytes: 0 };
  #sizesTimer: TimerHandle | undefined;
  #watchdogTimer: TimerHandle | undefined;
  #guard: MemoryGuard | undefined;
  #descriptorPlan: DescriptorPlan | undefined;
  /** How long the server has been closing, without time in which the process was suspended. */
  #closingMs: Millis = 0;
  #timer: TimerHandle | undefined;
  /** Start of the last turn. */
  #lastTurnMs: Millis = Infinity;
  /** When the timer is due; Infinity without one. */
  #timerDueMs: Millis = Infinity;
  #isWakeScheduled = false;
  /** Everything that had arrived by this time has been delivered. */
  #inputWatermarkMs: Millis = -Infinity;
  /** Start of the round in progress; when it ends, `#heardMs` becomes this. */
  #inputRoundStartMs: Millis | undefined;
  #wakeAfterInputRound = false;
  #isSnapshotDue = false;
  #snapshotUnderWay: Promise<void> | undefined;
  /**
   * `closing`: no more input is accepted, and accepted input is completed. `ended`: nothing happens
   * any more.
   */
  #state: 'starting' | 'serving' | 'closing' | 'ended' = 'starting';
  #closed: Promise<void> | undefined;
  /** Callers that wait for the end of a session. */
  #pendingExpirations: PendingExpiration[] = [];

  constructor(world: World, core: CoreOptions, options: RuntimeOptions, hooks: RuntimeHooks, member: EnsembleOptions | undefined) {
    this.#ensembleOptions = member;
    this.#world = world;
    this.#coreOptions = core;
    this.#options = options;
    this.#hooks = hooks;
    this.#metrics = new OperatorLog(hooks.logger, world.clock, member?.zab.sid);
    this.#observer = hooks.observer === undefined ? this.#metrics : combineObservers(this.#metrics, hooks.observer);
    const limits = {
      txnBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
      snapshotSliceBytes: new StepBudget(core.stepUnits).snapshotBytes,
    };
    this.#storage = new Storage(world, { ...options, ...limits }, hooks, this);
    this.#budgets = inFlightBudgets(this.#memoryAtStart());
  }

  get inspect(): Inspector {
    return this.#core.inspect;
  }

  get clientEndpoint(): Endpoint {
    return this.#listener!.endpoint;
  }

  // --- Beginning and end

  async start(): Promise<void> {
    const { clock, network, random } = this.#world;
    const { logger } = this.#hooks;
    const coreOptions = { ...this.#coreOptions, inFlightBytesMax: Math.min(this.#coreOptions.inFlightBytesMax, this.#budgets.core) };
    const recovery = new ReplicaRecovery(coreOptions, random, logger);
    const recovered =
      this.#ensembleOptions === undefined
        ? await this.#startStandalone(recovery, coreOptions)
        : await this.#startInEnsemble(this.#ensembleOptions, recovery, coreOptions);
    this.#metrics.loaded({
      totalMs: recovered.loadSnapshotMs + recovered.replayMs,
      snapshotMs: recovered.loadSnapshotMs,
      logMs: recovered.replayMs,
      txns: recovered.txnCount,
    });
    const words = new FourLetterWords({
      whitelist: parseWhitelist(this.#options.fourLetterWords.join(','), false),
      inspect: this.#core.inspect,
      metrics: this.#metrics,
      facts: this.#facts(),
    });
    this.#clientPort.words = words;
    if (this.#ensemble === undefined) await this.#takeFirstSnapshot(recovered);
    network.start(this);
    if (this.#ensemble !== undefined) this.#state = 'serving';
    this.#listener = await this.#clientPort.listen({
      address: this.#options.clientPortAddress,
      port: this.#options.clientPort,
      backlog: this.#options.clientPortListenBacklog,
    });
    this.#startedMs = clock.now().elapsedMs;
    this.#state = 'serving';
    void this.#measureSizes();
    this.#startWatchdog();
    // After the client port: while this server waits for its own name to resolve, four letter words
    // show its state.
    await this.#ensemble?.listen();
    this.#runTurn(noop);
    const { address: host, port } = this.#listener.endpoint;
    const what = this.#ensembleOptions === undefined ? 'serving' : `${nameOf(this.#ensembleOptions)}, listening for`;
    const votes =
      this.#ensembleOptions === undefined
        ? ''
        : ` and for votes on ${this.#ensembleOptions.electionAddresses.map(formatHostPort).join(', ')}`;
    const zxid = formatZxid(this.#core.inspect.lastZxid());
    const durationMs = Math.round(recovered.loadSnapshotMs + recovered.replayMs);
    logger.info(
      `${what} clients on ${formatHostPort({ host, port })}${votes}, from zxid ${zxid} ` +
        `(${recovered.txnCount} txns replayed, loaded in ${durationMs} ms)`,
      {
        event: 'server.serving',
        address: formatHostPort({ host, port }),
        ...(this.#ensembleOptions === undefined ? {} : ensembleFields(this.#ensembleOptions)),
        zxid,
        count: recovered.txnCount,
        durationMs,
      },
    );
    const { unsafe } = this.#options;
    if (unsafe.length > 0) {
      logger.warn(`serving UNSAFELY, with ${unsafe.join(', ')}; srvr and mntr show it for as long as this server runs`, {
        event: 'server.unsafe',
        reason: unsafe.join(', '),
      });
    }
  }

  async #startStandalone(recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<RecoveryResult> {
    const recovered = await this.#storage.open(recovery);
    if (recovered.lastZxid < 0) {
      throw new Error(
        `${this.#options.dataDir} is empty and db.autocreate is false; restore the data, or create a file named initialize there to start a new database`,
      );
    }
    this.#clientPort = this.#newClientPort();
    const { clock, random } = this.#world;
    const order = standaloneOrder(this.#storage);
    const server = new Server(coreOptions, this.#clientPort, random, this.#observer, clock.now(), order, recovery.finish());
    this.#clientPort.attach(server);
    this.#core = server;
    return recovered;
  }

  async #startInEnsemble(options: EnsembleOptions, recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<RecoveryResult> {
    const others = (this.#ensemble = new EnsembleRuntime({
      world: this.#world,
      core: coreOptions,
      options,
      storage: this.#storage,
      observer: this.#observer,
      metrics: this.#metrics,
      oracle: this.#hooks.oracle,
      logger: this.#hooks.logger,
      runTurn: (work) => this.#runTurn(work),
      failed: (error) => this.failed(error),
    }));
    const { replica, recovered } = await others.recover(recovery);
    this.#clientPort = this.#newClientPort();
    this.#core = others.startPeer(replica, recovered, this.#clientPort, this.#planDescriptors().unknownPeersMax, this.#world.clock.now());
    return recovered;
  }

  /**
   * Made after the storage has opened its files: the number of connections depends on how many
   * descriptors are left.
   */
  #newClientPort(): ClientPort {
    const descriptors = this.#planDescriptors();
    const throttle = this.#options.connectionThrottle;
    if (throttle.tokens > 0) this.#throttle = new ConnectionThrottle(throttle, this.#world.random);
    return new ClientPort({
      network: this.#world.network,
      options: {
        ...clientPortDefaults,
        ...this.#options,
        ...this.#options.clientPortSizes,
        maxCnxns: descriptors.cnxnsMax,
        ...(descriptors.isLimitedByDescriptors && { maxCnxnsRemedy: `${descriptorRemedy} to allow more` }),
        juteMaxBuffer: this.#coreOptions.juteMaxBuffer,
        inFlightBytesMax: Math.min(this.#options.heldBytesMax, this.#budgets.port),
        stepUnits: this.#coreOptions.stepUnits,
        probeIntervalMs: Math.min(this.#coreOptions.tickTimeMs / 2, this.#coreOptions.minSessionTimeoutMs / 4),
      },
      throttle: this.#throttle,
      observer: this.#metrics,
      limitObserver: this.#observer,
      logger: this.#hooks.logger,
    });
  }

  /**
   * Each start writes a snapshot of the loaded state. In an empty folder the snapshot must exist
   * before the log: a log alone would look like a folder that has lost its snapshots.
   */
  async #takeFirstSnapshot(recovered: RecoveryResult): Promise<void> {
    this.#startSnapshot();
    if (recovered.snapshotZxid !== undefined) return;
    await this.#snapshotUnderWay;
    const { snapshotFailure } = this.#storage;
    if (snapshotFailure !== undefined)
      throw new Error(`cannot create a database in ${this.#options.dataDir}: writing its first snapshot failed (${snapshotFailure})`);
  }

  /** Later calls wait for the same end. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    if (this.#state === 'ended') return;
    const wasServing = this.#state === 'serving';
    this.#state = 'closing';
    this.#cancelTimers();
    this.#ensemble?.beginShutDown();
    // Everything accepted is made durable and answered; only then do the connections close.
    await this.#storage.close();
    await this.#snapshotUnderWay;
    // The disk may have failed meanwhile. Then no client gets an answer.
    if (wasServing && !this.#hasEnded()) {
      const { clock } = this.#world;
      while (!this.#hasEnded() && (this.#core.deadline() ?? Infinity) <= 0) this.#runTurn((now) => this.#core.wake(now, -Infinity));
      await Promise.all([this.#clientPort.shutDown(clock.now()), this.#ensemble?.shutDown(clock.now())]);
      this.#runTurn(noop);
      // Their last replies are on the way; a client that does not read them is not waited for.
      const goneMs = clock.now().elapsedMs + closeGraceMs;
      while (this.#clientPort.cnxnCount > 0 && clock.now().elapsedMs < goneMs) {
        await new Promise<void>((resolve) => clock.after(pollMs, resolve));
      }
    }
    this.#state = 'ended';
    this.#metrics.close();
    this.#stopWatchdog();
    this.#rejectExpirations();
  }

  #hasEnded(): boolean {
    return this.#state === 'ended';
  }

  /**
   * A failed assertion or a failed disk: from here on nothing happens, so that nothing is
   * acknowledged.
   */
  failed(error: unknown): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#metrics.unrecoverableError();
    this.#metrics.close();
    this.#cancelTimers();
    this.#stopWatchdog();
    this.#rejectExpirations();
    this.#hooks.failed(error);
  }

  #cancelTimers(): void {
    const { clock } = this.#world;
    if (this.#timer !== undefined) clock.cancel(this.#timer);
    if (this.#sizesTimer !== undefined) clock.cancel(this.#sizesTimer);
    this.#timer = this.#sizesTimer = undefined;
  }

  // --- At an operator's word

  expireSession(session: SessionId): Promise<boolean> {
    if (this.#state !== 'serving') return Promise.reject(new Error('cannot expire a session: this server is closing'));
    return new Promise((resolve, reject) => {
      this.#runTurn((now) => {
        const server = this.#server;
        if (server === undefined)
          reject(new Error('cannot expire a session: this server does not serve clients now; ask one that leads or follows'));
        else if (server.expireSession(session, now)) this.#pendingExpirations.push({ session, server, resolve, reject });
        else resolve(false);
      });
    });
  }

  /** The server of the clients; in an ensemble each role has a new one. */
  get #server(): Server | undefined {
    return this.#core instanceof Server ? this.#core : this.#core.server;
  }

  #resolveExpirations(now: Now): void {
    const server = this.#server;
    this.#pendingExpirations = this.#pendingExpirations.filter((expiration) => {
      const { session, resolve, server: asked } = expiration;
      if (!this.#core.inspect.hasSession(session)) {
        resolve(true);
        return false;
      }
      // The role that was asked is over, and the request may have been lost with it.
      if (server !== undefined && server !== asked) {
        expiration.server = server;
        server.expireSession(session, now);
      }
      return true;
    });
  }

  #rejectExpirations(): void {
    for (const { reject } of this.#pendingExpirations) reject(new Error('the server closed before the session ended'));
    this.#pendingExpirations = [];
  }

  // --- Turns

  #runTurn(input: (now: Now) => void): void {
    if (this.#state === 'starting' || this.#state === 'ended') return;
    const now = this.#world.clock.now();
    const pausedMs = now.elapsedMs - this.#lastTurnMs;
    this.#lastTurnMs = now.elapsedMs;
    try {
      if (pausedMs > this.#coreOptions.tickTimeMs) this.#ensemble?.peer.resumedAfterPause(now);
      input(now);
      this.#storage.flush();
      this.#clientPort.endTurn(now);
      this.#ensemble?.endTurn(now);
      this.#storage.flush();
      if (this.#isSnapshotDue && !this.#storage.isTakingSnapshot && this.#core.canSnapshot) this.#startSnapshot();
      if (this.#pendingExpirations.length > 0) this.#resolveExpirations(now);
      this.#scheduleWake(now);
    } catch (error) {
      this.failed(error);
    }
  }

  #scheduleWake(now: Now): void {
    if (this.#isWakeScheduled || this.#state !== 'serving') return;
    const { clock } = this.#world;
    const timed = Math.min(this.#core.deadline() ?? Infinity, this.#clientPort.deadline() ?? Infinity);
    const own = this.#clientPort.needsTurn ? 0 : timed;
    const due = this.#ensemble === undefined ? own : Math.min(own, earliestDeadline(this.#ensemble.ports));
    if (due <= now.elapsedMs) {
      this.#isWakeScheduled = true;
      clock.setImmediate(this.#wake);
      if (timed <= now.elapsedMs) this.#startInputRound(now);
    } else if (due < this.#timerDueMs) {
      if (this.#timer !== undefined) clock.cancel(this.#timer);
      this.#timerDueMs = due;
      this.#timer = clock.after(due - now.elapsedMs, this.#onTimer);
    }
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerDueMs = Infinity;
    this.#wakeAfterInputRound = true;
    this.#startInputRound(this.#world.clock.now());
  };

  /**
   * A session is silent only as far as the server has listened: the process may have been suspended
   * or busy, and bytes may wait unread. A round reads everything that arrived before it began: one
   * pass of the loop to accept connections, one to read their bytes, one to deliver them. Sessions
   * are judged as of its beginning, so that gaps in time need not be detected, and none postpones
   * anything.
   */
  #startInputRound(now: Now): void {
    if (this.#inputRoundStartMs !== undefined) return;
    this.#inputRoundStartMs = now.elapsedMs;
    this.#clientPort.beginProbes(now);
    this.#world.clock.setImmediate(this.#afterAccepts);
  }

  readonly #afterAccepts = (): void => this.#world.clock.setImmediate(this.#afterReads);

  readonly #afterReads = (): void => this.#world.clock.setImmediate(this.#afterDelivery);

  readonly #afterDelivery = (): void => {
    this.#inputWatermarkMs = this.#inputRoundStartMs!;
    this.#inputRoundStartMs = undefined;
    this.#clientPort.endProbes();
    if (this.#wakeAfterInputRound && !this.#isWakeScheduled) this.#wake();
    this.#wakeAfterInputRound = false;
  };

  readonly #wake = (): void => {
    this.#isWakeScheduled = false;
    this.#runTurn((now) => {
      // A closing server does not listen any more, and expires no session.
      this.#core.wake(now, this.#state === 'serving' ? this.#inputWatermarkMs : -Infinity);
      this.#clientPort.wake(now);
      if (this.#ensemble !== undefined) for (const port of this.#ensemble.ports) port.wake(now);
    });
  };

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.#runTurn((now) => {
      const other = this.#ensemble?.ports.find((port) => port.owns(listener));
      (other ?? this.#clientPort).accepted(stream, listener, remote, now);
    });
  }

  connected(stream: StreamId): void {
    this.#runTurn((now) => this.#portOf(stream)?.connected(stream, now));
  }

  /** The port to other servers that the stream belongs to; undefined for a client's stream. */
  #portOf(stream: StreamId): PeerPort | undefined {
    return this.#ensemble?.ports.find((port) => port.ownsStream(stream));
  }

  received(batch: ReceivedBatch): void {
    if (this.#state === 'closing') return;
    this.#runTurn((now) => {
      // Each port removes its own entries from the batch.
      this.#clientPort.received(batch, now);
      if (this.#ensemble !== undefined) for (const port of this.#ensemble.ports) port.received(batch, now);
    });
  }

  drained(stream: StreamId): void {
    this.#runTurn((now) => (this.#portOf(stream) ?? this.#clientPort).drained(stream, now));
  }

  ended(stream: StreamId): void {
    this.#runTurn((now) => (this.#portOf(stream) ?? this.#clientPort).ended(stream, now));
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.#runTurn((now) => (this.#portOf(stream) ?? this.#clientPort).closed(stream, error, now));
  }

  // --- What the storage reports

  appended(zxid: Zxid): void {
    this.#runTurn((now) => {
      this.#ensemble?.appended(zxid, now);
      this.#core.appended(zxid, now);
    });
  }

  snapshotDue(): void {
    this.#isSnapshotDue = true;
    this.#runTurn(noop);
  }

  synced(durationMs: Millis): void {
    this.#metrics.synced(durationMs);
  }

  flushed(batch: FlushedBatch): void {
    this.#metrics.flushed(batch);
  }

  // --- Snapshots

  /** Never during a long job: the tree would be between two zxids. */
  #startSnapshot(): void {
    this.#isSnapshotDue = false;
    this.#snapshotUnderWay = this.#snapshot().catch((error: unknown) => this.failed(error));
  }

  async #snapshot(): Promise<void> {
    const { clock } = this.#world;
    const startMs = clock.now().elapsedMs;
    const source = this.#reportingSteps(this.#core.snapshot(this.#options.serializeLastProcessedZxid));
    try {
      if (await this.#storage.takeSnapshot(this.#core.inspect.lastZxid(), source))
        this.#metrics.snapshotTaken(clock.now().elapsedMs - startMs);
      else if (this.#state === 'serving') this.#metrics.snapshotFailed();
    } finally {
      source.abandon();
    }
  }

  /** Notifies the observer of each step that ends during a snapshot. */
  #reportingSteps(source: { next(writer: Writer, bytesTarget: number): boolean; abandon(): void }) {
    return {
      abandon: () => source.abandon(),
      next: (writer: Writer, bytesTarget: number): boolean => {
        const isDone = source.next(writer, bytesTarget);
        if (!isDone) this.#observer.stepYielded('snapshot');
        return isDone;
      },
    };
  }

  // --- Vigil over memory and disk

  #startWatchdog(): void {
    const { memory, logger } = this.#hooks;
    if (memory !== undefined) this.#guard = new MemoryGuard(memory, this.#core, logger);
    const diskTimeoutMs = Math.max(diskTimeoutMsMin, this.#coreOptions.maxSessionTimeoutMs);
    const look = (): void => {
      this.#watchdogTimer = this.#world.clock.after(watchdogIntervalMs, look);
      this.#checkMemory();
      // By then every session that waits for the disk has expired. A server that waits longer
      // serves no client.
      this.#storage.checkDiskTimeout(diskTimeoutMs, watchdogIntervalMs);
      if (this.#state === 'closing' && (this.#closingMs += watchdogIntervalMs) >= diskTimeoutMs) {
        this.failed(new DiskError('ETIMEDOUT', 'close', this.#options.dataDir));
      }
    };
    this.#watchdogTimer = this.#world.clock.after(watchdogIntervalMs, look);
  }

  /** Empty when the probe fails; the guard logs it at its next measurement. */
  #memoryAtStart(): readonly MemoryUse[] {
    try {
      return this.#hooks.memory?.(0) ?? [];
    } catch {
      return [];
    }
  }

  #checkMemory(): void {
    const guard = this.#guard;
    if (guard === undefined || !guard.check(this.#world.clock.now().elapsedMs)) return;
    this.#runTurn(() => {
      this.#core.setMemoryState(guard.state, guard.watchesMayGrow);
      this.#clientPort.memoryState = guard.state;
    });
  }

  #stopWatchdog(): void {
    if (this.#watchdogTimer !== undefined) this.#world.clock.cancel(this.#watchdogTimer);
    this.#watchdogTimer = undefined;
  }

  /** Made after the storage has opened its files, because it counts open descriptors. */
  #planDescriptors(): DescriptorPlan {
    if (this.#descriptorPlan !== undefined) return this.#descriptorPlan;
    const peers = this.#ensembleOptions === undefined ? 0 : this.#ensembleOptions.quorum.servers.size - 1;
    this.#descriptorPlan = planDescriptors({ ...this.#options, peers }, this.#hooks.host);
    warnOfShortage(this.#descriptorPlan, this.#options.maxCnxns, this.#hooks.logger);
    return this.#descriptorPlan;
  }

  // --- Facts for four letter words

  #facts(): ServerFacts {
    const { host } = this.#hooks;
    const core = this.#coreOptions;
    const startedMs = (): Millis => this.#startedMs;
    const conf = (): ServerConf => ({
      clientPort: this.#listener?.endpoint.port ?? this.#options.clientPort,
      secureClientPort: -1,
      dataDir: this.#storage.snapshotFolder,
      dataLogDir: this.#storage.logFolder,
      tickTimeMs: core.tickTimeMs,
      maxClientCnxns: this.#options.maxClientCnxns,
      minSessionTimeoutMs: core.minSessionTimeoutMs,
      maxSessionTimeoutMs: core.maxSessionTimeoutMs,
      clientPortListenBacklog: this.#options.clientPortListenBacklog ?? -1,
      serverId: this.#ensembleOptions?.zab.sid ?? 0,
      ensemble: this.#ensembleOptions === undefined ? undefined : ensembleConf(this.#ensembleOptions),
    });
    return {
      version: host.version,
      unsafe: this.#options.unsafe,
      get conf() {
        return conf();
      },
      get startedMs() {
        return startedMs();
      },
      dataDirBytes: () => this.#sizes.dataDirBytes,
      logDirBytes: () => this.#sizes.logDirBytes,
      openFileDescriptors: () => host.openFileDescriptors(),
      maxFileDescriptors: () => host.maxFileDescriptors(),
      connectionDropChance: () => this.#throttle?.dropChance ?? 0,
      environment: () => host.environment(),
    };
  }

  async #measureSizes(): Promise<void> {
    try {
      this.#sizes = await this.#storage.sizes();
    } catch {
      // A purge may be running; the next measurement works again.
    }
    if (this.#state === 'serving') this.#sizesTimer = this.#world.clock.after(sizesIntervalMs, () => void this.#measureSizes());
  }
}

function noop(): void {}

/** How many servers of the ensemble vote, and how many observe. */
function countServers({ quorum }: EnsembleOptions): { readonly voters: number; readonly observers: number } {
  const servers = [...quorum.servers.values()];
  const voters = servers.filter(isParticipant).length;
  return { voters, observers: servers.length - voters };
}

/** The fields of `server.serving` that only an ensemble has. */
function ensembleFields(member: EnsembleOptions) {
  return { electionAddresses: member.electionAddresses.map(formatHostPort), ...countServers(member) };
}

/** "server 2 of 3 voters and 1 observer" */
function nameOf(member: EnsembleOptions): string {
  const { zab } = member;
  const { voters, observers } = countServers(member);
  const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return `server ${zab.sid} of ${counted(voters, 'voter')}${observers === 0 ? '' : ` and ${counted(observers, 'observer')}`}`;
}

/** With the ports that other servers use. */
function ensembleConf({ zab, role, quorum }: EnsembleOptions): EnsembleConf {
  const { addresses } = quorum.servers.get(zab.sid)!;
  return {
    initLimitTicks: zab.initLimitTicks,
    syncLimitTicks: zab.syncLimitTicks,
    electionPorts: [...new Set(addresses.map(({ electionPort }) => electionPort))],
    quorumPorts: [...new Set(addresses.map(({ quorumPort }) => quorumPort))],
    role,
  };
}

/**
 * Limits of what is held for clients at once, as shares of the memory: a small memory must not be
 * used up in a moment.
 */
function inFlightBudgets(uses: readonly MemoryUse[]): { readonly core: number; readonly port: number } {
  let core = Infinity;
  let port = Infinity;
  for (const { limitBytes, holdsTree } of uses) {
    core = Math.min(core, limitBytes / (holdsTree ? 40 : 16));
    if (holdsTree) port = Math.min(port, limitBytes / 10);
  }
  return { core, port };
}

interface PendingExpiration {
  readonly session: SessionId;
  server: Server;
  readonly resolve: (ended: boolean) => void;
  readonly reject: (error: Error) => void;
}
