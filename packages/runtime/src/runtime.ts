/**
 * Starts and closes a server: recovers its state, makes its parts, listens for clients, and passes
 * what the network and the storage report to the part concerned, each in a turn (turn-loop.ts).
 */
import {
  type AuthResult,
  type AuthTicket,
  type CoreOptions,
  type Inspector,
  type Observer,
  Server,
  standaloneSequencer,
} from '@tskeeper/core';
import { ConnectionThrottle, StepBudget } from '@tskeeper/core/internal';
import type { Millis, SessionId, Sid, Zxid } from '@tskeeper/protocol';
import { ClientListener } from './client-listener.ts';
import type { EnsembleOptions } from './ensemble-options.ts';
import { EnsembleRuntime, type PeerPort } from './ensemble-runtime.ts';
import { FolderSizes } from './folder-sizes.ts';
import { type InFlightBudgets, inFlightBudgets } from './in-flight-budgets.ts';
import { combineObservers } from './metrics/combined-observer.ts';
import { OperatorLog } from './metrics/operator-log.ts';
import type { Endpoint, Listener, NetworkSink, ReceivedBatch, StreamId } from './network.ts';
import type { RuntimeOptions } from './options.ts';
import { PendingExpirations } from './pending-expirations.ts';
import { PendingTransfers } from './pending-transfers.ts';
import { ClientPort } from './ports/client/client-port.ts';
import { clientPortDefaults } from './ports/client/client-port-options.ts';
import { type DescriptorPlan, planDescriptors, descriptorRemedy, warnOfShortage } from './ports/descriptor-plan.ts';
import { FourLetterWords, parseWhitelist } from './ports/four-letter-words/four-letter-words.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import { RunningServerFacts } from './running-server-facts.ts';
import { ServerParts } from './server-parts.ts';
import { logServing } from './serving-log.ts';
import { SnapshotTaker } from './snapshot-taker.ts';
import type { RecoveryResult } from './storage/recovery.ts';
import { Storage, type StorageSink } from './storage/storage.ts';
import type { FlushedBatch } from './storage/txn-log.ts';
import { TurnLoop } from './turn-loop.ts';
import { Watchdog } from './watchdog.ts';
import type { Runtime, RuntimeHooks, World } from './world.ts';

/**
 * Starts a server, standalone or, with `ensembleOptions`, as part of an ensemble. Resolves when
 * clients can connect, although a server of an ensemble refuses them until it leads or follows.
 * Rejects with a sentence for the operator (`FolderInUse`, `StorageRefused`, `DiskError`, a port in
 * use) when it cannot serve; then everything is closed.
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

/** How long a closing server waits for its clients to read their last replies. */
const closeGraceMs = 1000;
const pollMs = 10;

class ServerRuntime implements Runtime, NetworkSink, StorageSink {
  readonly #world: World;
  readonly #coreOptions: CoreOptions;
  readonly #options: RuntimeOptions;
  readonly #hooks: RuntimeHooks;
  readonly #ensembleOptions: EnsembleOptions | undefined;
  readonly #metrics: OperatorLog;
  /** The metrics and the observer of the hooks, if there is one. */
  readonly #observer: Observer;
  readonly #storage: Storage;
  readonly #budgets: InFlightBudgets;
  readonly #parts = new ServerParts();
  readonly #snapshots: SnapshotTaker;
  readonly #expirations: PendingExpirations;
  readonly #transfers: PendingTransfers;
  readonly #turns: TurnLoop;
  readonly #watchdog: Watchdog;
  readonly #sizes: FolderSizes;
  #throttle: ConnectionThrottle | undefined;
  #descriptorPlan: DescriptorPlan | undefined;
  readonly #listener: ClientListener;
  #facts: RunningServerFacts | undefined;
  #closed: Promise<void> | undefined;

  constructor(world: World, core: CoreOptions, options: RuntimeOptions, hooks: RuntimeHooks, ensembleOptions: EnsembleOptions | undefined) {
    this.#world = world;
    this.#coreOptions = core;
    this.#options = options;
    this.#hooks = hooks;
    this.#ensembleOptions = ensembleOptions;
    this.#metrics = new OperatorLog(hooks.logger, world.clock, ensembleOptions?.zab.sid);
    this.#observer = hooks.observer === undefined ? this.#metrics : combineObservers(this.#metrics, hooks.observer);
    const limits = {
      txnBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
      snapshotSliceBytes: new StepBudget(core.stepUnits).snapshotBytes,
    };
    this.#storage = new Storage(world, { ...options, ...limits }, hooks, this);
    this.#budgets = inFlightBudgets(hooks.memory);
    const { serializeLastProcessedZxid, dataDir } = options;
    const { tickTimeMs, maxSessionTimeoutMs } = core;
    const shared = { parts: this.#parts, clock: world.clock, storage: this.#storage, owner: this };
    this.#snapshots = new SnapshotTaker({ ...shared, metrics: this.#metrics, observer: this.#observer, serializeLastProcessedZxid });
    this.#expirations = new PendingExpirations(this.#parts);
    this.#transfers = new PendingTransfers(this.#parts, world.clock, ensembleOptions?.zab);
    const waiting = { expirations: this.#expirations, transfers: this.#transfers };
    this.#turns = new TurnLoop({ ...shared, snapshots: this.#snapshots, ...waiting, tickTimeMs });
    const { memory, logger } = hooks;
    this.#watchdog = new Watchdog({ ...shared, turns: this.#turns, memory, logger, maxSessionTimeoutMs, dataDir });
    this.#sizes = new FolderSizes(world.clock, this.#storage, this.#parts);
    // Before the peer, which may know at once of another address for clients than the options.
    this.#listener = new ClientListener({
      network: world.network,
      clock: world.clock,
      logger,
      parts: this.#parts,
      backlog: options.clientPortListenBacklog,
      onMoved: ({ port }) => (this.#facts!.clientPort = port),
    });
  }

  get inspect(): Inspector {
    return this.#parts.core.inspect;
  }

  get clientEndpoint(): Endpoint {
    return this.#listener.endpoint;
  }

  // --- Beginning and end

  async start(): Promise<void> {
    const { clock, network, random } = this.#world;
    const { logger, host } = this.#hooks;
    const parts = this.#parts;
    const options = this.#options;
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
    const facts = (this.#facts = new RunningServerFacts({
      core: this.#coreOptions,
      options,
      ensembleOptions: this.#ensembleOptions,
      parts,
      storage: this.#storage,
      sizes: this.#sizes,
      throttle: this.#throttle,
      host,
    }));
    const words = new FourLetterWords({
      whitelist: parseWhitelist(options.fourLetterWords.join(','), false),
      inspect: parts.core.inspect,
      metrics: this.#metrics,
      facts,
    });
    parts.clientPort.words = words;
    if (parts.ensemble === undefined) await this.#takeFirstSnapshot(recovered);
    network.start(this);
    if (parts.ensemble !== undefined) parts.stage = 'serving';
    await this.#listener.start(options.clientPortAddress, options.clientPort);
    facts.clientPort = this.#listener.endpoint.port;
    facts.startedMs = clock.now().elapsedMs;
    parts.stage = 'serving';
    void this.#sizes.measure();
    this.#watchdog.start();
    // After the client port: while this server waits for its own name to resolve, four letter words
    // show its state.
    await parts.ensemble?.listen();
    this.#turns.runEmpty();
    logServing(logger, {
      clientEndpoint: this.#listener.endpoint,
      ensembleOptions: this.#ensembleOptions,
      lastZxid: parts.core.inspect.lastZxid(),
      recovered,
      unsafe: options.unsafe,
    });
  }

  async #startStandalone(recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<RecoveryResult> {
    const recovered = await this.#storage.open(recovery);
    if (recovered.lastZxid < 0) {
      throw new Error(
        `${this.#options.dataDir} is empty and db.autocreate is false; restore the data, or create a file named initialize there to start a new database`,
      );
    }
    this.#parts.clientPort = this.#newClientPort();
    const { clock, random } = this.#world;
    const order = standaloneSequencer(this.#storage);
    const { clientPort } = this.#parts;
    const server = new Server(coreOptions, clientPort, random, this.#observer, clock.now(), order, recovery.finish());
    clientPort.attach(server);
    this.#parts.core = server;
    return recovered;
  }

  async #startInEnsemble(options: EnsembleOptions, recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<RecoveryResult> {
    const others = (this.#parts.ensemble = new EnsembleRuntime({
      world: this.#world,
      core: coreOptions,
      options,
      storage: this.#storage,
      observer: this.#observer,
      metrics: this.#metrics,
      oracle: this.#hooks.oracle,
      logger: this.#hooks.logger,
      runTurn: (work) => this.#turns.run(work),
      failed: (error, work) => this.failed(error, work),
      clientAddressChanged: (address) => this.#listener.follow(address),
    }));
    const { replica, recovered } = await others.recover(recovery);
    this.#parts.clientPort = this.#newClientPort();
    this.#parts.core = others.startPeer(
      replica,
      recovered,
      this.#parts.clientPort,
      this.#planDescriptors().unknownPeersMax,
      this.#world.clock.now(),
    );
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
        opensLocalSessions: this.#coreOptions.localSessions !== 'disabled',
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

  /** Made after the storage has opened its files, because it counts open descriptors. */
  #planDescriptors(): DescriptorPlan {
    if (this.#descriptorPlan !== undefined) return this.#descriptorPlan;
    const peers = this.#ensembleOptions === undefined ? 0 : this.#ensembleOptions.quorum.servers.size - 1;
    this.#descriptorPlan = planDescriptors({ ...this.#options, peers }, this.#hooks.host);
    warnOfShortage(this.#descriptorPlan, this.#options.maxCnxns, this.#hooks.logger);
    return this.#descriptorPlan;
  }

  /**
   * Each start writes a snapshot of the loaded state. In an empty folder the snapshot must exist
   * before the log: a log alone would look like a folder that has lost its snapshots.
   */
  async #takeFirstSnapshot(recovered: RecoveryResult): Promise<void> {
    this.#snapshots.start();
    if (recovered.snapshotZxid !== undefined) return;
    await this.#snapshots.underWay;
    const { snapshotFailure } = this.#storage;
    if (snapshotFailure !== undefined)
      throw new Error(`cannot create a database in ${this.#options.dataDir}: writing its first snapshot failed (${snapshotFailure})`);
  }

  /** Later calls wait for the same end. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    if (this.#parts.stage === 'ended') return;
    const wasServing = this.#parts.stage === 'serving';
    this.#parts.stage = 'closing';
    this.#cancelTimers();
    this.#parts.ensemble?.beginShutDown();
    // Everything accepted is made durable and answered; only then do the connections close.
    await this.#storage.close();
    await this.#snapshots.underWay;
    // The disk may have failed meanwhile. Then no client gets an answer.
    if (wasServing && !this.#hasEnded()) {
      const { clock } = this.#world;
      while (!this.#hasEnded() && (this.#parts.core.deadline() ?? Infinity) <= 0)
        this.#turns.run((now) => this.#parts.core.wake(now, -Infinity));
      await Promise.all([this.#parts.clientPort.shutDown(clock.now()), this.#parts.ensemble?.shutDown(clock.now())]);
      this.#turns.runEmpty();
      // Their last replies are on the way; a client that does not read them is not waited for.
      const goneMs = clock.now().elapsedMs + closeGraceMs;
      while (this.#parts.clientPort.cnxnCount > 0 && clock.now().elapsedMs < goneMs) {
        await new Promise<void>((resolve) => clock.after(pollMs, resolve));
      }
    }
    this.#parts.stage = 'ended';
    this.#metrics.close();
    this.#watchdog.stop();
    this.#expirations.rejectAll();
    this.#transfers.rejectAll();
  }

  #hasEnded(): boolean {
    return this.#parts.stage === 'ended';
  }

  /**
   * A failed assertion or a failed disk: from here on nothing happens, so that nothing is
   * acknowledged.
   */
  failed(error: unknown, work?: Promise<void>): void {
    if (this.#parts.stage === 'ended') return;
    this.#parts.stage = 'ended';
    this.#metrics.unrecoverableError();
    this.#metrics.close();
    this.#cancelTimers();
    this.#watchdog.stop();
    this.#expirations.rejectAll();
    this.#transfers.rejectAll();
    if (work === undefined) this.#hooks.failed(error);
    else void this.#failAfter(work, error);
  }

  async #failAfter(work: Promise<void>, error: unknown): Promise<void> {
    try {
      await work;
    } finally {
      this.#hooks.failed(error);
    }
  }

  #cancelTimers(): void {
    this.#turns.cancelTimer();
    this.#sizes.cancelTimer();
  }

  // --- At an operator's word

  expireSession(session: SessionId): Promise<boolean> {
    if (this.#parts.stage !== 'serving') return Promise.reject(new Error('cannot expire a session: this server is closing'));
    return new Promise((resolve, reject) => {
      this.#turns.run((now) => this.#expirations.expire(session, now, resolve, reject));
    });
  }

  transferLeadership(target?: Sid): Promise<Sid> {
    if (this.#parts.stage !== 'serving') return Promise.reject(new Error('cannot give the lead to another server: this server is closing'));
    return new Promise((resolve, reject) => {
      this.#turns.run((now) => this.#transfers.transfer(target, now, resolve, reject));
    });
  }

  shedConnections(share: number): Promise<number> {
    if (!(share >= 0 && share <= 1))
      return Promise.reject(new RangeError(`a share of the connections is a number from 0 to 1, not ${share}`));
    if (this.#parts.stage !== 'serving')
      return Promise.reject(new Error('cannot close a share of the connections: this server is closing'));
    return new Promise((resolve, reject) => {
      this.#turns.run((now) => {
        const { server } = this.#parts;
        if (server === undefined) reject(new Error('cannot close a share of the connections: this server serves no clients now'));
        else resolve(server.shedConnections(share, now));
      });
    });
  }

  /** As `Server.authenticated`. Its server may have ended since, and then nothing waits for it. */
  authenticated(ticket: AuthTicket, result: AuthResult): void {
    this.#turns.run((now) => this.#parts.server?.authenticated(ticket, result, now));
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.#turns.run((now) => {
      const other = this.#parts.ensemble?.ports.find((port) => port.owns(listener));
      (other ?? this.#parts.clientPort).accepted(stream, listener, remote, now);
    });
  }

  connected(stream: StreamId): void {
    this.#turns.run((now) => this.#portOf(stream)?.connected(stream, now));
  }

  /** The port to other servers that the stream belongs to; undefined for a client's stream. */
  #portOf(stream: StreamId): PeerPort | undefined {
    return this.#parts.ensemble?.ports.find((port) => port.ownsStream(stream));
  }

  received(batch: ReceivedBatch): void {
    if (this.#parts.stage === 'closing') return;
    this.#turns.run((now) => {
      // Each port removes its own entries from the batch.
      this.#parts.clientPort.received(batch, now);
      if (this.#parts.ensemble !== undefined) for (const port of this.#parts.ensemble.ports) port.received(batch, now);
    });
  }

  drained(stream: StreamId): void {
    this.#turns.run((now) => (this.#portOf(stream) ?? this.#parts.clientPort).drained(stream, now));
  }

  ended(stream: StreamId): void {
    this.#turns.run((now) => (this.#portOf(stream) ?? this.#parts.clientPort).ended(stream, now));
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.#turns.run((now) => (this.#portOf(stream) ?? this.#parts.clientPort).closed(stream, error, now));
  }

  // --- What the storage reports

  appended(zxid: Zxid): void {
    this.#turns.run((now) => {
      const { ensemble, core } = this.#parts;
      if (ensemble === undefined) core.appended(zxid, now);
      else ensemble.appended(zxid, now);
    });
  }

  snapshotDue(): void {
    this.#snapshots.markDue();
    this.#turns.runEmpty();
  }

  synced(durationMs: Millis): void {
    this.#metrics.synced(durationMs);
  }

  flushed(batch: FlushedBatch): void {
    this.#metrics.flushed(batch);
  }
}
