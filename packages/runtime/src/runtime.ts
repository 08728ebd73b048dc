/**
 * Runs a core in a world: recovers its state, listens for clients, and drives it in turns.
 *
 * A turn is one input from the world (a batch from the network, a completed sync, a timer), all
 * work of the core for it, and then one flush: first the log, so that the disk works while output
 * is sent, then all output. Time is read once per turn.
 */
import { type CoreOptions, type Inspect, type Now, type Observer, type Peer, Server, standaloneOrder } from '@tskeeper/core';
import { ConnectionThrottle, StepBudget } from '@tskeeper/core/internal';
import { formatHostPort, formatZxid, isParticipant, type Millis, type SessionId, type Writer, type Zxid } from '@tskeeper/protocol';
import type { TimerHandle } from './clock.ts';
import { DiskError } from './disk.ts';
import { MemoryGuard } from './memory-guard.ts';
import { firstDeadline, Member, type MemberPort } from './member.ts';
import type { MemberOptions } from './member-options.ts';
import type { MemoryUse } from './memory-use.ts';
import { Bookkeeping } from './metrics/bookkeeping.ts';
import type { Endpoint, Listener, NetworkSink, ReceivedBatch, StreamId } from './network.ts';
import type { RuntimeOptions } from './options.ts';
import { ClientPort, clientPortDefaults } from './ports/client-port.ts';
import { type DescriptorPlan, descriptorPlan, descriptorRemedy, warnOfShortage } from './ports/descriptor-plan.ts';
import { FourLetterWords, parseWhitelist } from './ports/four-letter-words.ts';
import type { EnsembleConf, ServerConf, ServerFacts } from './ports/server-facts.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import type { Recovered } from './storage/recovery.ts';
import { Storage, type StorageSink, type StorageSizes } from './storage/storage.ts';
import { twoObservers } from './metrics/two-observers.ts';
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
  member?: MemberOptions,
): Promise<Runtime> {
  const server = new ServerRuntime(world, core, options, hooks, member);
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
const lastAnswersMs = 1000;
const pollMs = 10;

/** How often a server checks its memory and its disk. */
const vigilMs = 100;
/** Minimum time limit of the disk for one batch of the log, and for closing. */
const patienceMsMin = 10_000;

class ServerRuntime implements Runtime, NetworkSink, StorageSink {
  readonly #world: World;
  readonly #coreOptions: CoreOptions;
  readonly #options: RuntimeOptions;
  readonly #hooks: RuntimeHooks;
  readonly #storage: Storage;
  readonly #books: Bookkeeping;
  /** The bookkeeping and the observer of the hooks, if there is one. */
  readonly #observer: Observer;
  readonly #member: MemberOptions | undefined;
  #core!: Server | Peer;
  /** The parts that only an ensemble needs. */
  #others: Member | undefined;
  #port!: ClientPort;
  readonly #budgets: { readonly core: number; readonly port: number };
  #throttle: ConnectionThrottle | undefined;
  #listener: Listener | undefined;
  #startedMs: Millis = 0;
  #sizes: StorageSizes = { dataDirBytes: 0, logDirBytes: 0 };
  #sizesTimer: TimerHandle | undefined;
  #vigilTimer: TimerHandle | undefined;
  #guard: MemoryGuard | undefined;
  #descriptorPlan: DescriptorPlan | undefined;
  /** How long the server has been closing, without time in which the process was suspended. */
  #closingMs: Millis = 0;
  #timer: TimerHandle | undefined;
  /** Start of the last turn. */
  #lastTurnMs: Millis = Infinity;
  /** When the timer is due; Infinity without one. */
  #timerDueMs: Millis = Infinity;
  #wakeIsSoon = false;
  /** Everything that had arrived by this time has been delivered. */
  #heardMs: Millis = -Infinity;
  /** Start of the round in progress; when it ends, `#heardMs` becomes this. */
  #roundBeganMs: Millis | undefined;
  #wakeAfterRound = false;
  #snapshotWanted = false;
  #snapshotUnderWay: Promise<void> | undefined;
  /**
   * `closing`: no more input is accepted, and accepted input is completed. `ended`: nothing happens
   * any more.
   */
  #state: 'starting' | 'serving' | 'closing' | 'ended' = 'starting';
  #closed: Promise<void> | undefined;
  /** Callers that wait for the end of a session. */
  #farewells: Farewell[] = [];

  constructor(world: World, core: CoreOptions, options: RuntimeOptions, hooks: RuntimeHooks, member: MemberOptions | undefined) {
    this.#member = member;
    this.#world = world;
    this.#coreOptions = core;
    this.#options = options;
    this.#hooks = hooks;
    this.#books = new Bookkeeping(hooks.logger, world.clock, member?.zab.sid);
    this.#observer = hooks.observer === undefined ? this.#books : twoObservers(this.#books, hooks.observer);
    const limits = {
      txnBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
      snapshotSliceBytes: new StepBudget(core.turnUnits).snapshotBytes,
    };
    this.#storage = new Storage(world, { ...options, ...limits }, hooks, this);
    this.#budgets = inFlightBudgets(this.#memoryAtStart());
  }

  get inspect(): Inspect {
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
      this.#member === undefined
        ? await this.#beginAlone(recovery, coreOptions)
        : await this.#beginAsMember(this.#member, recovery, coreOptions);
    this.#books.loaded({
      totalMs: recovered.loadSnapshotMs + recovered.replayMs,
      snapshotMs: recovered.loadSnapshotMs,
      logMs: recovered.replayMs,
      txns: recovered.txnCount,
    });
    const words = new FourLetterWords({
      whitelist: parseWhitelist(this.#options.fourLetterWords.join(','), false),
      inspect: this.#core.inspect,
      metrics: this.#books,
      facts: this.#facts(),
    });
    this.#port.attach(this.#core, words);
    if (this.#others === undefined) await this.#firstSnapshot(recovered);
    network.start(this);
    if (this.#others !== undefined) this.#state = 'serving';
    this.#listener = await this.#port.listen({
      address: this.#options.clientPortAddress,
      port: this.#options.clientPort,
      backlog: this.#options.clientPortListenBacklog,
    });
    this.#startedMs = clock.now().elapsedMs;
    this.#state = 'serving';
    void this.#measureSizes();
    this.#keepVigil();
    // After the client port: while this server waits for its own name to resolve, four letter words
    // show its state.
    await this.#others?.listen();
    this.#turn(nothing);
    const { address: host, port } = this.#listener.endpoint;
    const what = this.#member === undefined ? 'serving' : `${nameOf(this.#member)}, listening for`;
    const votes = this.#member === undefined ? '' : ` and for votes on ${this.#member.electionAddresses.map(formatHostPort).join(', ')}`;
    const zxid = formatZxid(this.#core.inspect.lastZxid());
    const durationMs = Math.round(recovered.loadSnapshotMs + recovered.replayMs);
    logger.info(
      `${what} clients on ${formatHostPort({ host, port })}${votes}, from zxid ${zxid} ` +
        `(${recovered.txnCount} txns replayed, loaded in ${durationMs} ms)`,
      {
        event: 'server.serving',
        address: formatHostPort({ host, port }),
        ...(this.#member === undefined ? {} : ensembleFields(this.#member)),
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

  async #beginAlone(recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<Recovered> {
    const recovered = await this.#storage.open(recovery);
    if (recovered.lastZxid < 0) {
      throw new Error(
        `${this.#options.dataDir} is empty and db.autocreate is false; restore the data, or create a file named initialize there to start a new database`,
      );
    }
    this.#port = this.#newClientPort();
    const { clock, random } = this.#world;
    const order = standaloneOrder(this.#storage);
    this.#core = new Server(coreOptions, this.#port, random, this.#observer, clock.now(), order, recovery.finish());
    return recovered;
  }

  async #beginAsMember(options: MemberOptions, recovery: ReplicaRecovery, coreOptions: CoreOptions): Promise<Recovered> {
    const others = (this.#others = new Member({
      world: this.#world,
      core: coreOptions,
      options,
      storage: this.#storage,
      observer: this.#observer,
      books: this.#books,
      oracle: this.#hooks.oracle,
      logger: this.#hooks.logger,
      turn: (work) => this.#turn(work),
      failed: (error) => this.failed(error),
    }));
    const { replica, recovered } = await others.recover(recovery);
    this.#port = this.#newClientPort();
    this.#core = others.begin(replica, recovered, this.#port, this.#descriptors().strangers, this.#world.clock.now());
    return recovered;
  }

  /**
   * Made after the storage has opened its files: the number of connections depends on how many
   * descriptors are left.
   */
  #newClientPort(): ClientPort {
    const descriptors = this.#descriptors();
    const throttle = this.#options.connectionThrottle;
    if (throttle.tokens > 0) this.#throttle = new ConnectionThrottle(throttle, this.#world.random);
    return new ClientPort({
      network: this.#world.network,
      options: {
        ...clientPortDefaults,
        ...this.#options,
        ...this.#options.clientPortSizes,
        maxCnxns: descriptors.cnxns,
        ...(descriptors.byDescriptors && { maxCnxnsRemedy: `${descriptorRemedy} to allow more` }),
        juteMaxBuffer: this.#coreOptions.juteMaxBuffer,
        inFlightBytesMax: Math.min(this.#options.heldBytesMax, this.#budgets.port),
        turnUnits: this.#coreOptions.turnUnits,
        probeIntervalMs: Math.min(this.#coreOptions.tickTimeMs / 2, this.#coreOptions.minSessionTimeoutMs / 4),
      },
      throttle: this.#throttle,
      observer: this.#books,
      limits: this.#observer,
      logger: this.#hooks.logger,
    });
  }

  /**
   * Each start writes a snapshot of the loaded state. In an empty folder the snapshot must exist
   * before the log: a log alone would look like a folder that has lost its snapshots.
   */
  async #firstSnapshot(recovered: Recovered): Promise<void> {
    this.#beginSnapshot();
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
    this.#others?.beginShutDown();
    // Everything accepted is made durable and answered; only then do the connections close.
    await this.#storage.close();
    await this.#snapshotUnderWay;
    // The disk may have failed meanwhile. Then no client gets an answer.
    if (wasServing && !this.#hasEnded()) {
      const { clock } = this.#world;
      while (!this.#hasEnded() && (this.#core.deadline() ?? Infinity) <= 0) this.#turn((now) => this.#core.wake(now, -Infinity));
      await Promise.all([this.#port.shutDown(clock.now()), this.#others?.shutDown(clock.now())]);
      this.#turn(nothing);
      // Their last replies are on the way; a client that does not read them is not waited for.
      const goneMs = clock.now().elapsedMs + lastAnswersMs;
      while (this.#port.cnxnCount > 0 && clock.now().elapsedMs < goneMs) {
        await new Promise<void>((resolve) => clock.after(pollMs, resolve));
      }
    }
    this.#state = 'ended';
    this.#books.close();
    this.#endVigil();
    this.#breakFarewells();
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
    this.#books.unrecoverableError();
    this.#books.close();
    this.#cancelTimers();
    this.#endVigil();
    this.#breakFarewells();
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
      this.#turn((now) => {
        const askedOf = this.#server;
        if (askedOf === undefined)
          reject(new Error('cannot expire a session: this server does not serve clients now; ask one that leads or follows'));
        else if (this.#core.expireSession(session, now)) this.#farewells.push({ session, askedOf, resolve, reject });
        else resolve(false);
      });
    });
  }

  /** The server of the clients; in an ensemble each role has a new one. */
  get #server(): Server | undefined {
    return this.#core instanceof Server ? this.#core : this.#core.server;
  }

  #sayFarewells(now: Now): void {
    const server = this.#server;
    this.#farewells = this.#farewells.filter((farewell) => {
      const { session, resolve, askedOf } = farewell;
      if (!this.#core.inspect.hasSession(session)) {
        resolve(true);
        return false;
      }
      // The role that was asked is over, and the request may have been lost with it.
      if (server !== undefined && server !== askedOf) {
        farewell.askedOf = server;
        this.#core.expireSession(session, now);
      }
      return true;
    });
  }

  #breakFarewells(): void {
    for (const { reject } of this.#farewells) reject(new Error('the server closed before the session ended'));
    this.#farewells = [];
  }

  // --- Turns

  #turn(input: (now: Now) => void): void {
    if (this.#state === 'starting' || this.#state === 'ended') return;
    const now = this.#world.clock.now();
    const stoodStillMs = now.elapsedMs - this.#lastTurnMs;
    this.#lastTurnMs = now.elapsedMs;
    try {
      if (stoodStillMs > this.#coreOptions.tickTimeMs) this.#others?.peer.stoodStill(now);
      input(now);
      this.#storage.flush();
      this.#port.endTurn(now);
      this.#others?.endTurn(now);
      this.#storage.flush();
      if (this.#snapshotWanted && !this.#storage.takesSnapshot && this.#core.canSnapshot) this.#beginSnapshot();
      if (this.#farewells.length > 0) this.#sayFarewells(now);
      this.#planWake(now);
    } catch (error) {
      this.failed(error);
    }
  }

  #planWake(now: Now): void {
    if (this.#wakeIsSoon || this.#state !== 'serving') return;
    const { clock } = this.#world;
    const timed = Math.min(this.#core.deadline() ?? Infinity, this.#port.deadline() ?? Infinity);
    const own = this.#port.unfinished ? 0 : timed;
    const due = this.#others === undefined ? own : Math.min(own, firstDeadline(this.#others.ports));
    if (due <= now.elapsedMs) {
      this.#wakeIsSoon = true;
      clock.soon(this.#wake);
      if (timed <= now.elapsedMs) this.#beginRound(now);
    } else if (due < this.#timerDueMs) {
      if (this.#timer !== undefined) clock.cancel(this.#timer);
      this.#timerDueMs = due;
      this.#timer = clock.after(due - now.elapsedMs, this.#onTimer);
    }
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerDueMs = Infinity;
    this.#wakeAfterRound = true;
    this.#beginRound(this.#world.clock.now());
  };

  /**
   * A session is silent only as far as the server has listened: the process may have been suspended
   * or busy, and bytes may wait unread. A round reads everything that arrived before it began: one
   * pass of the loop to accept connections, one to read their bytes, one to deliver them. Sessions
   * are judged as of its beginning, so that gaps in time need not be detected, and none postpones
   * anything.
   */
  #beginRound(now: Now): void {
    if (this.#roundBeganMs !== undefined) return;
    this.#roundBeganMs = now.elapsedMs;
    this.#port.beginProbes(now);
    this.#world.clock.soon(this.#hasAccepted);
  }

  readonly #hasAccepted = (): void => this.#world.clock.soon(this.#hasRead);

  readonly #hasRead = (): void => this.#world.clock.soon(this.#hasDelivered);

  readonly #hasDelivered = (): void => {
    this.#heardMs = this.#roundBeganMs!;
    this.#roundBeganMs = undefined;
    this.#port.endProbes();
    if (this.#wakeAfterRound && !this.#wakeIsSoon) this.#wake();
    this.#wakeAfterRound = false;
  };

  readonly #wake = (): void => {
    this.#wakeIsSoon = false;
    this.#turn((now) => {
      // A closing server does not listen any more, and expires no session.
      this.#core.wake(now, this.#state === 'serving' ? this.#heardMs : -Infinity);
      this.#port.wake(now);
      if (this.#others !== undefined) for (const port of this.#others.ports) port.wake(now);
    });
  };

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.#turn((now) => {
      const other = this.#others?.ports.find((port) => port.owns(listener));
      (other ?? this.#port).accepted(stream, listener, remote, now);
    });
  }

  connected(stream: StreamId): void {
    this.#turn((now) => this.#portOf(stream)?.connected(stream, now));
  }

  /** The port to other servers that the stream belongs to; undefined for a client's stream. */
  #portOf(stream: StreamId): MemberPort | undefined {
    return this.#others?.ports.find((port) => port.ownsStream(stream));
  }

  received(batch: ReceivedBatch): void {
    if (this.#state === 'closing') return;
    this.#turn((now) => {
      // Each port removes its own entries from the batch.
      this.#port.received(batch, now);
      if (this.#others !== undefined) for (const port of this.#others.ports) port.received(batch, now);
    });
  }

  drained(stream: StreamId): void {
    this.#turn((now) => (this.#portOf(stream) ?? this.#port).drained(stream, now));
  }

  ended(stream: StreamId): void {
    this.#turn((now) => (this.#portOf(stream) ?? this.#port).ended(stream, now));
  }

  closed(stream: StreamId, error: string | undefined): void {
    this.#turn((now) => (this.#portOf(stream) ?? this.#port).closed(stream, error, now));
  }

  // --- What the storage reports

  appended(zxid: Zxid): void {
    this.#turn((now) => {
      this.#others?.appended(zxid, now);
      this.#core.appended(zxid, now);
    });
  }

  snapshotDue(): void {
    this.#snapshotWanted = true;
    this.#turn(nothing);
  }

  synced(durationMs: Millis): void {
    this.#books.synced(durationMs);
  }

  flushed(batch: FlushedBatch): void {
    this.#books.flushed(batch);
  }

  // --- Snapshots

  /** Never during a long job: the tree would be between two zxids. */
  #beginSnapshot(): void {
    this.#snapshotWanted = false;
    this.#snapshotUnderWay = this.#snapshot().catch((error: unknown) => this.failed(error));
  }

  async #snapshot(): Promise<void> {
    const { clock } = this.#world;
    const startMs = clock.now().elapsedMs;
    const source = this.#inSteps(this.#core.snapshot(this.#options.serializeLastProcessedZxid));
    try {
      if (await this.#storage.takeSnapshot(this.#core.inspect.lastZxid(), source))
        this.#books.snapshotTaken(clock.now().elapsedMs - startMs);
      else if (this.#state === 'serving') this.#books.snapshotFailed();
    } finally {
      source.abandon();
    }
  }

  /** Notifies the observer of each step that ends during a snapshot. */
  #inSteps(source: { next(writer: Writer, bytesTarget: number): boolean; abandon(): void }) {
    return {
      abandon: () => source.abandon(),
      next: (writer: Writer, bytesTarget: number): boolean => {
        const isDone = source.next(writer, bytesTarget);
        if (!isDone) this.#observer.stepEnded('snapshot');
        return isDone;
      },
    };
  }

  // --- Vigil over memory and disk

  #keepVigil(): void {
    const { memory, logger } = this.#hooks;
    if (memory !== undefined) this.#guard = new MemoryGuard(memory, this.#core, logger);
    const patienceMs = Math.max(patienceMsMin, this.#coreOptions.maxSessionTimeoutMs);
    const look = (): void => {
      this.#vigilTimer = this.#world.clock.after(vigilMs, look);
      this.#lookAtMemory();
      // By then every session that waits for the disk has expired. A server that waits longer
      // serves no client.
      this.#storage.giveUpAfter(patienceMs, vigilMs);
      if (this.#state === 'closing' && (this.#closingMs += vigilMs) >= patienceMs) {
        this.failed(new DiskError('ETIMEDOUT', 'close', this.#options.dataDir));
      }
    };
    this.#vigilTimer = this.#world.clock.after(vigilMs, look);
  }

  /** Empty when the probe fails; the guard logs it at its next measurement. */
  #memoryAtStart(): readonly MemoryUse[] {
    try {
      return this.#hooks.memory?.(0) ?? [];
    } catch {
      return [];
    }
  }

  #lookAtMemory(): void {
    const guard = this.#guard;
    if (guard === undefined || !guard.look(this.#world.clock.now().elapsedMs)) return;
    this.#turn(() => {
      this.#core.memory(guard.state, guard.watchesMayGrow);
      this.#port.memory = guard.state;
    });
  }

  #endVigil(): void {
    if (this.#vigilTimer !== undefined) this.#world.clock.cancel(this.#vigilTimer);
    this.#vigilTimer = undefined;
  }

  /** Made after the storage has opened its files, because it counts open descriptors. */
  #descriptors(): DescriptorPlan {
    if (this.#descriptorPlan !== undefined) return this.#descriptorPlan;
    const peers = this.#member === undefined ? 0 : this.#member.quorum.servers.size - 1;
    this.#descriptorPlan = descriptorPlan({ ...this.#options, peers }, this.#hooks.host);
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
      serverId: this.#member?.zab.sid ?? 0,
      ensemble: this.#member === undefined ? undefined : ensembleConf(this.#member),
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

function nothing(): void {}

/** How many servers of the ensemble vote, and how many observe. */
function countServers({ quorum }: MemberOptions): { readonly voters: number; readonly observers: number } {
  const servers = [...quorum.servers.values()];
  const voters = servers.filter(isParticipant).length;
  return { voters, observers: servers.length - voters };
}

/** The fields of `server.serving` that only an ensemble has. */
function ensembleFields(member: MemberOptions) {
  return { electionAddresses: member.electionAddresses.map(formatHostPort), ...countServers(member) };
}

/** "server 2 of 3 voters and 1 observer" */
function nameOf(member: MemberOptions): string {
  const { zab } = member;
  const { voters, observers } = countServers(member);
  const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return `server ${zab.sid} of ${counted(voters, 'voter')}${observers === 0 ? '' : ` and ${counted(observers, 'observer')}`}`;
}

/** With the ports that other servers use. */
function ensembleConf({ zab, role, quorum }: MemberOptions): EnsembleConf {
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

interface Farewell {
  readonly session: SessionId;
  askedOf: Server;
  readonly resolve: (ended: boolean) => void;
  readonly reject: (error: Error) => void;
}
