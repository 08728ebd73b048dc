import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type QuorumVerifier, verifierOf } from '@tskeeper/core/internal';
import { epochOf, parseQuorumConfig, type SessionId, type Sid } from '@tskeeper/protocol';
import type { Clock, Logger } from '@tskeeper/runtime';
import { ActivityTracker } from './activity-tracker.ts';
import { type EnsembleServer, type EnsembleEnvironment, TestPeer } from './ensemble-server.ts';
import { hostOf, EnsembleNetwork } from './ensemble-network.ts';
import { electionPort, quorumPort } from './process-network.ts';
import { TestClock } from './test-clock.ts';

/** Options of a TestEnsemble. */
export interface TestEnsembleOptions {
  /** Number of voting servers, from 1 to 7, with sids from 1. Default: 3. */
  readonly servers?: number;
  /** Number of observers; their sids follow. Default: 0. */
  readonly observers?: number;
  /**
   * - `'memory'`, the default: nothing is written to disk; acknowledged writes survive `restart`
   *   and `kill`, and are gone after `close`.
   * - `'folder'`: a temporary folder, removed by `close`.
   * - `{ dataDir }`: a folder of yours, which stays, with one folder `server-<sid>` for each
   *   server.
   */
  readonly storage?: 'memory' | 'folder' | { readonly dataDir: string };
  /**
   * Settings of zoo.cfg for all servers: `{ tickTime: 100, syncLimit: 2 }`. Default: tickTime 200,
   * initLimit 10, syncLimit 5 and maxSessionTimeout 40000, so that a silent server is dropped after
   * a second, and clients get session timeouts from 0.4 to 40 seconds. Every four letter word is
   * answered. The ensemble sets `server.*` lines, ports and folders.
   */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /**
   * Receives the log lines of the servers, each prefixed with the server's number. Default: none.
   */
  readonly logger?: Logger;
}

/** Options of the methods that wait. */
export interface WaitOptions {
  /** Time limit, in ms of real time. Default: 10000. */
  readonly timeoutMs?: number;
}

/** A server, or its sid. */
export type ServerOrSid = EnsembleServer | Sid;

const serversMax = 7;
const timeoutMsDefault = 10_000;
const tickTimeMsDefault = 200;
/** The longest pause before a server that has lost its connection to another dials it again. */
const redialPauseMs = 1000;
const ownKeys = /^(?:server\.\d+|clientPort|clientPortAddress|dataDir|dataLogDir|dynamicConfigFile)$/;

/**
 * A ZooKeeper ensemble for one test: real servers, in this process, reachable over TCP by any
 * client.
 *
 * Start it with `await using ensemble = await TestEnsemble.start({ servers: 3 })`, or call `close`
 * in your own teardown. Each ensemble has its own ports and data, so tests can run side by side.
 * The servers communicate over a network inside the process.
 */
export class TestEnsemble implements AsyncDisposable {
  readonly #peers: readonly TestPeer[];
  readonly #quorum: QuorumVerifier;
  readonly #ensembleNetwork: EnsembleNetwork;
  readonly #activity: ActivityTracker;
  readonly #clock: TestClock;
  readonly #temporaryFolder: string | undefined;
  #isClosed = false;

  private constructor(options: TestEnsembleOptions, dataDir: string | undefined) {
    const { servers = 3, observers = 0, storage = 'memory', config = {}, logger } = options;
    const roles = Array.from({ length: servers + observers }, (_, index) => (index < servers ? 'participant' : 'observer'));
    const own = roles.map((role, index) => `server.${index + 1}=${hostOf(index + 1)}:${quorumPort}:${electionPort}:${role}`);
    const settings = {
      '4lw.commands.whitelist': '*',
      tickTime: tickTimeMsDefault,
      initLimit: 10,
      syncLimit: 5,
      maxSessionTimeout: 40_000,
      // Otherwise a single voting server would be standalone, without a role and without observers.
      ...(servers === 1 ? { standaloneEnabled: false } : {}),
      ...config,
    };
    const lines = [...own, ...Object.entries(settings).map(([key, value]) => `${key}=${value}`)];
    const quorumLines = lines.filter((line) => /^(?:server|group|weight)\./.test(line));
    this.#quorum = verifierOf(parseQuorumConfig(quorumLines.join('\n')));
    this.#temporaryFolder = storage === 'folder' ? dataDir : undefined;
    this.#activity = new ActivityTracker();
    this.#clock = new TestClock(this.#activity, tickTimeMsOf(config));
    this.#ensembleNetwork = new EnsembleNetwork(this.#activity, roles.length);
    const environment: EnsembleEnvironment = {
      ensembleNetwork: this.#ensembleNetwork,
      clock: this.#clock,
      activity: this.#activity,
      logger,
      configText: lines.join('\n'),
      waitUntilServing: (server) => this.#waitUntilServing(server),
      expireSession: (session) => this.expireSession(session),
    };
    this.#peers = roles.map((role, index) => {
      const sid = index + 1;
      const folder = dataDir === undefined ? undefined : join(dataDir, `server-${sid}`);
      return new TestPeer({ environment, sid, isObserver: role === 'observer', dataDir: folder });
    });
  }

  /**
   * Resolves when there is a leader and all servers accept clients. Rejects with one sentence if a
   * folder or a setting cannot be used.
   */
  static async start(options: TestEnsembleOptions = {}): Promise<TestEnsemble> {
    checkOptions(options);
    const { storage = 'memory' } = options;
    let dataDir: string | undefined;
    if (storage === 'folder') dataDir = await mkdtemp(join(tmpdir(), 'tskeeper-'));
    else if (storage !== 'memory') ({ dataDir } = storage);
    const ensemble = new TestEnsemble(options, dataDir);
    try {
      await Promise.all(ensemble.#peers.map((server) => server.startWithoutWaiting()));
      await ensemble.ready();
      // Servers that have just connected to each other pause before they connect again. The first
      // action of a test should not have to wait for that.
      await ensemble.advance(redialPauseMs);
    } catch (error) {
      await ensemble.close();
      throw error;
    }
    return ensemble;
  }

  // --- Servers and roles

  /**
   * Connect string for clients: all servers, running or not: `127.0.0.1:40123,127.0.0.1:40124,...`.
   */
  get connectString(): string {
    return this.#peers.map(({ connectString }) => connectString).join(',');
  }

  /** All servers, ordered by sid, observers last. */
  get servers(): readonly EnsembleServer[] {
    return this.#peers;
  }

  /** The server with this sid. Throws a RangeError if there is none. */
  server(sid: Sid): EnsembleServer {
    return this.#peer(sid);
  }

  #peer(server: ServerOrSid): TestPeer {
    const sid = typeof server === 'number' ? server : server.sid;
    const peer = this.#peers[sid - 1];
    if (peer === undefined) throw new Error(`there is no server ${sid}; this ensemble has servers 1 to ${this.#peers.length}`);
    return peer;
  }

  /**
   * The leader that has a quorum, with packets passing in both directions. Throws while there is
   * none; `elected` waits for it.
   */
  get leader(): EnsembleServer {
    const leader = this.#leader();
    if (leader === undefined) throw new Error(`no server leads: ${this.#describeState()}. Wait for one with elected()`);
    return leader;
  }

  /** The followers of the leader. Empty while there is no leader. */
  get followers(): EnsembleServer[] {
    return this.#learners().filter(({ role }) => role === 'follower');
  }

  /** The observers of the leader. Empty while there is no leader. */
  get observers(): EnsembleServer[] {
    return this.#learners().filter(({ role }) => role === 'observer');
  }

  #leader(): TestPeer | undefined {
    let best: TestPeer | undefined;
    for (const server of this.#peers) {
      if (server.role !== 'leader' || (best !== undefined && best.lastZxid > server.lastZxid)) continue;
      const sids = new Set([server, ...this.#learnersOf(server)].map(({ sid }) => sid));
      if (this.#quorum.containsQuorum(sids)) best = server;
    }
    return best;
  }

  #learners(): TestPeer[] {
    const leader = this.#leader();
    return leader === undefined ? [] : this.#learnersOf(leader);
  }

  /**
   * Servers that serve clients in the leader's epoch. A server behind a cut does not count, even if
   * it has not noticed the cut yet.
   */
  #learnersOf(leader: TestPeer): TestPeer[] {
    const epoch = epochOf(leader.lastZxid);
    return this.#peers.filter(
      (server) =>
        (server.role === 'follower' || server.role === 'observer') &&
        epochOf(server.lastZxid) === epoch &&
        this.#canReachEachOther(server, leader),
    );
  }

  #canReachEachOther(one: TestPeer, other: TestPeer): boolean {
    return one === other || !(this.#ensembleNetwork.isCut(one.sid, other.sid) || this.#ensembleNetwork.isCut(other.sid, one.sid));
  }

  // --- Waiting

  /**
   * Resolves with the leader as soon as there is one. After its end, or a cut that separates it
   * from its quorum, that is another server, or the same one in another epoch. Rejects on a
   * timeout.
   */
  async elected(options?: WaitOptions): Promise<EnsembleServer> {
    await this.#until(() => this.#leader() !== undefined, 'a leader', options);
    return this.leader;
  }

  /**
   * Resolves with the leader as soon as there is one and every running server that can reach it
   * accepts clients. Rejects on a timeout.
   */
  async ready(options?: WaitOptions): Promise<EnsembleServer> {
    const isReady = (): boolean => {
      const leader = this.#leader();
      if (leader === undefined) return false;
      const ready = new Set([leader, ...this.#learnersOf(leader)]);
      return this.#peers.every((server) => !server.isRunning || ready.has(server) || !this.#canReachEachOther(server, leader));
    };
    await this.#until(isReady, 'the ensemble to be ready', options);
    return this.leader;
  }

  /**
   * Resolves as soon as the ensemble is ready and every running server that can reach the leader
   * has applied everything that the leader has applied. Rejects on a timeout.
   */
  async synced(options?: WaitOptions): Promise<void> {
    await this.ready(options);
    const isSynced = (): boolean => {
      const leader = this.#leader();
      return leader !== undefined && this.#learnersOf(leader).every(({ lastZxid }) => lastZxid === leader.lastZxid);
    };
    await this.#until(isSynced, 'the servers to be in step', options);
  }

  /**
   * Resolves as soon as `condition` returns true; rejects on a timeout. It is called after each
   * action of a server, so ask about servers: `ensemble.until(() => ensemble.server(1).role ===
   * 'looking')`.
   */
  async until(condition: () => boolean, options?: WaitOptions): Promise<void> {
    await this.#until(condition, 'the condition', options);
  }

  async #until(condition: () => boolean, what: string, { timeoutMs = timeoutMsDefault }: WaitOptions = {}): Promise<void> {
    const isMet = await this.#activity.until(() => this.#isClosed || condition(), timeoutMs);
    if (!isMet) throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}: ${this.#describeState()}`);
    if (this.#isClosed) throw new Error('the ensemble is closed');
  }

  /** Waits until a started server serves clients, if it can reach a quorum. */
  async #waitUntilServing(server: TestPeer): Promise<void> {
    const reachable = this.#peers.filter((other) => other.isRunning && this.#canReachEachOther(server, other));
    if (!this.#quorum.containsQuorum(new Set(reachable.map(({ sid }) => sid)))) return;
    const isServing = (): boolean => {
      const leader = this.#leader();
      if (!server.isRunning) return true;
      return leader !== undefined && (server === leader || this.#learnersOf(leader).includes(server));
    };
    await this.#until(isServing, `server ${server.sid} to accept clients`);
  }

  #describeState(): string {
    const states = this.#peers.map(({ sid, role, failure }) => {
      return failure === undefined ? `server ${sid} is ${role}` : `server ${sid} has failed (${String(failure.error)})`;
    });
    const cuts = this.#ensembleNetwork.cuts.map(([from, to]) => `${from} to ${to}`);
    return [...states, ...(cuts.length === 0 ? [] : [`no packets from ${cuts.join(', ')}`])].join(', ');
  }

  // --- Time

  /**
   * The servers' clock. Pass it to a client (`connect(ensemble.connectString, { clock:
   * ensemble.clock })`) to let `advance` apply to the client as well: it then keeps its session
   * alive.
   */
  get clock(): Clock {
    return this.#clock;
  }

  /**
   * Advances the servers' clock by this many ms without waiting for them: sessions of silent
   * clients expire, container and TTL znodes are checked, and a server that is cut off is dropped.
   * The clock advances in steps of less than half a tick, so that servers exchange packets in
   * between and the leader keeps its quorum. Resolves when everything that follows has happened.
   * Rejects with a RangeError for an invalid time.
   *
   * Clients without `clock` do not see the added time: after more than its timeout, their session
   * has expired.
   */
  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  // --- Faults

  /**
   * Partitions the servers: two of them can communicate if they are in one group. Servers that no
   * group names form one more group. No connection is closed, and clients still reach all servers.
   *
   * - `partition([1], [2, 3])`, or `partition([1])`: server 1 is alone.
   * - `partition([1, 3], [3, 2])`: servers 1 and 2 cannot communicate, and 3 can communicate with
   *   both.
   *
   * The partition ends when the result is disposed of, or `heal` is called; packets sent in the
   * meantime arrive then, as with TCP.
   */
  partition(...groups: readonly (readonly ServerOrSid[])[]): Disposable {
    const named = groups.map((group) => new Set(group.map((server) => this.#peer(server).sid)));
    const others = new Set(this.#peers.map(({ sid }) => sid).filter((sid) => !named.some((group) => group.has(sid))));
    const all = [...named, others];
    return this.#cut((from, to) => !all.some((group) => group.has(from) && group.has(to)));
  }

  /**
   * A one-way cut: nothing that `from` send reaches `to`, while packets from `to` arrive. Otherwise
   * like `partition`.
   */
  cut({
    from,
    to,
  }: {
    readonly from: ServerOrSid | readonly ServerOrSid[];
    readonly to: ServerOrSid | readonly ServerOrSid[];
  }): Disposable {
    const [senders, receivers] = [from, to].map((servers) => new Set(toArray(servers).map((server) => this.#peer(server).sid)));
    return this.#cut((sender, receiver) => senders!.has(sender) && receivers!.has(receiver));
  }

  #cut(isCut: (from: Sid, to: Sid) => boolean): Disposable {
    const heals: (() => void)[] = [];
    for (const { sid: from } of this.#peers) {
      for (const { sid: to } of this.#peers) if (from !== to && isCut(from, to)) heals.push(this.#ensembleNetwork.cut(from, to));
    }
    return { [Symbol.dispose]: () => heals.splice(0).forEach((heal) => heal()) };
  }

  /** Ends every partition and every cut, including those of single servers. */
  heal(): void {
    this.#ensembleNetwork.healAll();
    for (const server of this.#peers) server.healClients();
  }

  /**
   * Closes the connections of a session, or of all clients, to all servers; returns how many there
   * were. Clients may connect again at once.
   */
  cutConnections(session?: SessionId): number {
    return this.#peers.filter(({ isRunning }) => isRunning).reduce((count, server) => count + server.cutConnections(session), 0);
  }

  /**
   * Expires a session, whichever server its client is connected to, as if the client had been
   * silent for too long: its ephemeral znodes are deleted, and the client learns that the session
   * has expired. Resolves with true when that has happened on every server that can reach the
   * leader, with false if the session did not exist. Rejects if there is no leader in time, or if
   * the leader ends before.
   */
  async expireSession(session: SessionId): Promise<boolean> {
    const leader = this.#peer(await this.elected());
    if (!(await leader.endSession(session))) return false;
    await this.#until(() => this.#learners().every((server) => !server.inspect.hasSession(session)), 'the session to end on every server');
    return true;
  }

  /**
   * Gives the lead to another server, by default to the follower with the highest priority
   * (`tskeeper.leaderPriority`), without an election and without a failure. All clients reconnect.
   * Sessions live on, except local ones, which end. Resolves with the new leader. Rejects with a
   * sentence if there is no leader in time, or if that server cannot take over.
   */
  async transferLeadership(to?: ServerOrSid): Promise<EnsembleServer> {
    const leader = this.#peer(await this.elected());
    const target = to === undefined ? undefined : this.#peer(to).sid;
    const next = await leader.giveLeadTo(target);
    await this.#until(() => this.#leader()?.sid === next, `server ${next} to lead`);
    return this.leader;
  }

  /**
   * Stops all servers for good, and removes a temporary folder. Rejects with the error of a server
   * that has failed.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.heal();
    try {
      await Promise.all(this.#peers.map((server) => server.close()));
    } finally {
      await this.#activity.close();
      if (this.#temporaryFolder !== undefined) await rm(this.#temporaryFolder, { recursive: true, force: true });
    }
    const failed = this.#peers.find(({ failure }) => failure !== undefined);
    if (failed !== undefined)
      throw new Error(`server ${failed.sid} has failed: ${String(failed.failure!.error)}`, { cause: failed.failure!.error });
  }

  /** The same as `close`, for `await using`, and rejects as that does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function toArray(servers: ServerOrSid | readonly ServerOrSid[]): readonly ServerOrSid[] {
  return typeof servers === 'number' || 'sid' in servers ? [servers] : servers;
}

/** The servers reject a value that is not a number. */
function tickTimeMsOf(config: NonNullable<TestEnsembleOptions['config']>): number {
  return Number(config['tickTime']) || tickTimeMsDefault;
}

function checkOptions({ servers = 3, observers = 0, config = {} }: TestEnsembleOptions): void {
  if (!Number.isInteger(servers) || servers < 1 || servers > serversMax)
    throw new RangeError(`servers must be a whole number from 1 to ${serversMax}, not ${servers}`);
  if (!Number.isInteger(observers) || observers < 0 || observers > serversMax)
    throw new RangeError(`observers must be a whole number from 0 to ${serversMax}, not ${observers}`);
  const own = Object.keys(config).find((key) => ownKeys.test(key));
  if (own !== undefined) throw new Error(`${own} cannot be set in the config of a TestEnsemble, which chooses ports and folders itself`);
}
