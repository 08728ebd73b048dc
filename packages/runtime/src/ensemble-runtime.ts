/**
 * The parts of a server that only an ensemble needs: the ports to the other servers, and the disk
 * work of its peer. The runtime drives it in its turns.
 */
import { type CoreOptions, type Now, type Observer, Peer, type PeerClients, type PeerStorage } from '@tskeeper/core';
import { CommittedLog, committedLogDefaults, Configuration, type Replica } from '@tskeeper/core/internal';
import { type HostPort, isParticipant, type Millis, PacketView, type QuorumConfig, type Zxid } from '@tskeeper/protocol';
import { EnsembleStorage } from './ensemble-storage.ts';
import type { Logger } from './logger.ts';
import type { EnsembleOptions } from './ensemble-options.ts';
import { MembershipPorts, peerServersOf } from './membership-ports.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { electionPortDefaults } from './ports/election/election-port-options.ts';
import { ElectionPort } from './ports/election/election-port.ts';
import { LearnerPort } from './ports/learner/learner-port.ts';
import { learnerPortDefaults } from './ports/learner/learner-port-options.ts';
import { MemoryOnlyStorage } from './memory-only-storage.ts';
import type { ReplicaRecovery } from './replica-recovery.ts';
import { ConfigFiles } from './storage/config-files.ts';
import type { EnsembleRecoveryResult, Storage } from './storage/storage.ts';
import type { World } from './world.ts';

export interface EnsembleRuntimeDependencies {
  readonly world: World;
  readonly core: CoreOptions;
  readonly options: EnsembleOptions;
  readonly storage: Storage;
  readonly observer: Observer;
  readonly metrics: Pick<ServerMetrics, 'txnReceived' | 'txnLogged'>;
  /** See `RuntimeHooks.oracle`. */
  readonly oracle: (() => Promise<boolean>) | undefined;
  readonly logger: Logger;
  /** Runs work in a turn of its own. */
  readonly runTurn: (work: (now: Now) => void) => void;
  /** Reports that the server cannot continue. It stops at once, and ends after `work`, if there is any. */
  readonly failed: (error: unknown, work?: Promise<void>) => void;
  /** The configuration gives this server another address for its clients. */
  readonly clientAddressChanged: (address: HostPort) => void;
}

/** Interval between two calls of the oracle. */
const oraclePollIntervalMs: Millis = 100;

/** A port to other servers, as the runtime drives it. */
export type PeerPort = ElectionPort | LearnerPort;

export class EnsembleRuntime {
  readonly #dependencies: EnsembleRuntimeDependencies;
  readonly #packetView: PacketView;
  #peer: Peer | undefined;
  #electionPort: ElectionPort | undefined;
  #learnerPort: LearnerPort | undefined;
  #storage: EnsembleStorage | undefined;
  #memoryOnlyStorage: MemoryOnlyStorage | undefined;
  /** The answer last given to the peer; undefined when the peer has forgotten it. */
  #oracleAnswer: boolean | undefined;
  #isShutDown = false;
  /** undefined: the configuration is stored in the log only. */
  readonly #configFiles: ConfigFiles | undefined;
  #membership: MembershipPorts | undefined;
  /** Empty before `startPeer`. */
  ports: readonly PeerPort[] = [];

  constructor(parts: EnsembleRuntimeDependencies) {
    this.#dependencies = parts;
    const { juteMaxBuffer, juteMaxBufferExtra } = parts.core;
    this.#packetView = new PacketView(juteMaxBuffer + juteMaxBufferExtra);
    const { world, options, logger } = parts;
    const { configFile, quorum, lastSeen } = options;
    if (configFile !== undefined) this.#configFiles = new ConfigFiles(world.disk, configFile, quorum, lastSeen, logger);
  }

  get peer(): Peer {
    if (this.#peer === undefined) throw new Error('the peer has not been opened');
    return this.#peer;
  }

  /** The active configuration. */
  get members(): QuorumConfig {
    return this.#membership?.members ?? this.#dependencies.options.quorum;
  }

  /**
   * Loads the folder into `recovery`. In an empty folder it writes a first snapshot: a log alone is
   * not trusted.
   */
  async recover(recovery: ReplicaRecovery): Promise<{ readonly replica: Replica; readonly recovered: EnsembleRecoveryResult }> {
    const { storage, options } = this.#dependencies;
    await this.#configFiles?.backUp();
    const recovered = await storage.openForEnsemble(recovery, {
      recent: { count: options.commitLogCount, bytes: committedLogDefaults.bytesMax },
      canRefetch: hasOtherVoters(options),
    });
    const replica = recovery.finish();
    // A folder that is not known to be new waits for the leader's snapshot.
    if (!recovered.needsSnapshot || recovered.lastZxid < 0) return { replica, recovered };
    const source = replica.snapshot();
    try {
      if (!(await storage.takeSnapshot(replica.lastZxid, source))) {
        throw new Error(
          `cannot create a database in ${storage.snapshotFolder}: writing its first snapshot failed (${storage.snapshotFailure ?? 'it was abandoned'})`,
        );
      }
    } finally {
      source.abandon();
    }
    return { replica, recovered };
  }

  /**
   * Makes the peer, which looks for a leader at once, and its ports, each of which accepts
   * `unknownPeersMax` connections of one kind from servers outside the configuration. No port
   * listens before `listen`.
   */
  startPeer(replica: Replica, recovered: EnsembleRecoveryResult, clients: PeerClients, unknownPeersMax: number, now: Now): Peer {
    const { world, core, options, logger, runTurn, observer } = this.#dependencies;
    const servers = peerServersOf(options.quorum, options.lastSeen === undefined ? [] : [options.lastSeen], options.observerMasterPort);
    const electionPort = { ...electionPortDefaults, ...options.electionPort };
    const learnerPort = { ...learnerPortDefaults, ...options.learnerPort };
    const { tickTimeMs, initLimitTicks } = options.zab;
    const portDependencies = { network: world.network, clock: world.clock, logger, runTurn, limitObserver: observer };
    this.#electionPort = new ElectionPort(
      {
        ...portDependencies,
        options: {
          ...electionPort,
          halfOpenMax: Math.min(electionPort.halfOpenMax, unknownPeersMax),
          unknownPeersMax: Math.min(electionPort.unknownPeersMax, unknownPeersMax),
          sid: options.zab.sid,
          cnxTimeoutMs: options.cnxTimeoutMs,
          initialMessageTimeoutMs: options.quorumCnxnTimeoutMs,
          multiAddressEnabled: options.multiAddressEnabled,
          reachabilityCheckTimeoutMs: options.reachabilityCheckTimeoutMs,
          bindTriesMax: options.bindTriesMax,
        },
      },
      servers,
    );
    this.#learnerPort = new LearnerPort(
      {
        ...portDependencies,
        view: this.#packetView,
        options: {
          ...learnerPort,
          halfOpenMax: Math.min(learnerPort.halfOpenMax, unknownPeersMax),
          packetBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
          dialTimeoutMs: options.connectToLeaderMs,
          cnxTimeoutMs: options.cnxTimeoutMs,
          reachabilityCheckTimeoutMs: options.reachabilityCheckTimeoutMs,
          firstPacketTimeoutMs: tickTimeMs * initLimitTicks,
          bindTriesMax: options.bindTriesMax,
        },
      },
      servers,
    );
    this.ports = [this.#electionPort, this.#learnerPort];
    const { quorum, lastSeen } = options;
    this.#storage = new EnsembleStorage(this.#dependencies, this.#learnerPort, this.#configFiles);
    this.#membership = new MembershipPorts({
      sid: options.zab.sid,
      members: quorum,
      lastSeen,
      listensOnAllIps: options.listensOnAllIps,
      electionPort: this.#electionPort,
      learnerPort: this.#learnerPort,
      observerMasterPort: options.observerMasterPort,
      network: world.network,
      logger,
      runTurn,
      clientAddressChanged: this.#dependencies.clientAddressChanged,
    });
    const bytesMax = options.observerMasterPort === undefined ? committedLogDefaults.bytesMax : options.observerMasterSizeLimitBytes;
    const committedLog = new CommittedLog({ bytesMax, countMax: options.commitLogCount });
    for (const { zxid, bytes } of recovered.recent) committedLog.restore(zxid, bytes);
    const { oracle } = this.#dependencies;
    const { standaloneEnabled, multiAddressEnabled } = options;
    const { reconfigEnabled } = core;
    const { sid } = options.zab;
    const hasOracle = oracle !== undefined;
    const config = new Configuration({ sid, active: quorum, lastSeen, reconfigEnabled, standaloneEnabled, multiAddressEnabled, hasOracle });
    const start = {
      replica,
      lastZxid: recovered.lastZxid,
      acceptedEpoch: recovered.acceptedEpoch,
      currentEpoch: recovered.currentEpoch,
      committedLog,
      snapshotZxid: recovered.snapshotZxid ?? 0,
    };
    const { zab, leaderServes, leaderConnectDelayMs, observerElectionDelayMs, observerReconnectDelayMs, readOnlyMode } = options;
    const observerMasterEnabled = options.observerMasterPort !== undefined;
    const { minNotificationIntervalMs, maxNotificationIntervalMs } = options;
    const election = { minNotificationIntervalMs, maxNotificationIntervalMs };
    const io = {
      clients,
      election: this.#electionPort,
      quorum: this.#learnerPort,
      storage: this.#keepsNoLog(config, replica) ? this.#memoryOnly(this.#storage) : this.#storage,
      oracle: oracle === undefined ? undefined : { ask: () => this.#askAgain(oracle) },
      members: this.#membership,
    };
    const ofObservers = { observerElectionDelayMs, observerReconnectDelayMs, observerMasterEnabled };
    const peerOptions = { core, zab, leaderServes, leaderConnectDelayMs, ...ofObservers, readOnlyMode, election };
    this.#peer = new Peer({ options: peerOptions, config, start, packetView: this.#packetView, io, random: world.random, observer }, now);
    for (const part of [...this.ports, this.#storage]) part.attach(this.#peer);
    this.#memoryOnlyStorage?.attach(this.#peer);
    if (oracle !== undefined) void this.#pollOracle(oracle);
    return this.#peer;
  }

  /** With syncEnabled=false, an observer that neither its files nor its log make a participant. */
  #keepsNoLog(config: Configuration, { tree }: Replica): boolean {
    const { syncEnabled, zab } = this.#dependencies.options;
    return !syncEnabled && config.members.servers.get(zab.sid)?.role === 'observer' && !config.mustKeepLogWith(tree);
  }

  /** For an observer that keeps what it receives in memory only. */
  #memoryOnly(storage: EnsembleStorage): PeerStorage {
    this.#dependencies.logger.info('this observer keeps no log (syncEnabled=false): after a restart it is sent everything again', {
      event: 'server.no-log',
    });
    storage.keepsLog = false;
    const { world, metrics, runTurn } = this.#dependencies;
    return (this.#memoryOnlyStorage = new MemoryOnlyStorage({ storage, clock: world.clock, metrics, runTurn }));
  }

  /**
   * Lets other servers send their votes to this one. Rejects with a sentence for the operator when
   * a port cannot be bound.
   */
  async listen(): Promise<void> {
    await this.#membership?.listen();
  }

  /**
   * At the end of each turn: flushes all output of the ports, and applies the peer's current role.
   */
  endTurn(now: Now): void {
    // Before its acknowledgements count, also for a configuration that is not active yet. The next
    // start must find that configuration: until it is committed, other voters may need this one.
    if (this.#memoryOnlyStorage !== undefined && this.#peer?.mustKeepLog === true) {
      // The disk may take its time, and the leader must not wait for this server meanwhile.
      this.#learnerPort?.dropAll(now);
      this.#dependencies.failed(
        new Error(
          'a reconfiguration makes this server a participant, or is about to, and it runs without a log (syncEnabled=false): restart it, and it keeps one',
        ),
        this.#storage?.configsStored,
      );
      return;
    }
    for (const port of this.ports) port.endTurn(now);
    this.#membership?.followRole(this.peer);
  }

  /** Called before the storage closes; `shutDown` follows. */
  beginShutDown(): void {
    this.#storage?.beginClose();
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid, now: Now): void {
    this.#storage?.appended(zxid, now);
  }

  async shutDown(now: Now): Promise<void> {
    this.#isShutDown = true;
    this.#storage?.close();
    this.#membership?.shutDown();
    await Promise.all([this.#electionPort?.shutDown(now), this.#learnerPort?.shutDown(now)]);
  }

  // --- An oracle

  /** Asks the oracle for as long as the server lives, because the answer may change. */
  async #pollOracle(oracle: () => Promise<boolean>): Promise<void> {
    await this.#askOracle(oracle);
    if (!this.#isShutDown) this.#dependencies.world.clock.after(oraclePollIntervalMs, () => void this.#pollOracle(oracle));
  }

  /** The peer has forgotten the oracle's answer. */
  #askAgain(oracle: () => Promise<boolean>): void {
    this.#oracleAnswer = undefined;
    void this.#askOracle(oracle);
  }

  async #askOracle(oracle: () => Promise<boolean>): Promise<void> {
    let canServeAlone = false;
    try {
      canServeAlone = await oracle();
    } catch {
      // A failure of the oracle must not let a server serve alone.
    }
    if (this.#isShutDown || canServeAlone === this.#oracleAnswer) return;
    this.#oracleAnswer = canServeAlone;
    this.#dependencies.logger.info(
      `the oracle ${canServeAlone ? 'lets this server go on without the other one' : 'does not let this server go on alone'}`,
      { event: 'oracle.answered', allowed: canServeAlone },
    );
    this.#dependencies.runTurn((now) => this.peer.oracleAnswered(canServeAlone, now));
  }
}

/**
 * Whether a quorum that has every txn can exist without this server. Observers are not part of a
 * quorum.
 */
function hasOtherVoters({ quorum, zab }: EnsembleOptions): boolean {
  return [...quorum.servers.values()].some((server) => server.sid !== zab.sid && isParticipant(server));
}

/** The earliest deadline of the ports. */
export function earliestDeadline(ports: readonly PeerPort[]): Millis {
  return Math.min(Infinity, ...ports.map((port) => (port.needsTurn ? 0 : (port.deadline() ?? Infinity))));
}
