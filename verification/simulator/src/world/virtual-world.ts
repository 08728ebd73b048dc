/**
 * Machines with disks and clocks, and a network between them, all virtual and determined by one
 * seed. Some run production servers, others clients. There is one list of future events; nothing
 * happens outside it.
 */
import { crc32 } from 'node:zlib';
import { type CoreOptions, coreDefaults, type ZabOptions } from '@tskeeper/core';
import {
  formatQuorumConfig,
  formatZxid,
  type Millis,
  OpCode,
  type QuorumServer,
  type Sid,
  Reader,
  readTxn,
  type Zxid,
} from '@tskeeper/protocol';
import {
  ensembleDefaults,
  type EnsembleOptions,
  VirtualDisk,
  numberedFiles,
  readLog,
  runtimeDefaults,
  type RuntimeOptions,
  SeededRandom,
  type SnappyCodec,
} from '@tskeeper/runtime';
import { type AcceptingProxy, VirtualWire } from '@tskeeper/runtime/internal';
import { ClientNetwork } from '../clients/client-network.ts';
import { serverPort } from '../clients/client-world.ts';
import { epochEnds, isCommitted, lastServed, leaderEpochsOf } from '../record/committed-history.ts';
import { markLocalCloses, newRecording, type Recording } from '../record/recording.ts';
import { Link } from './link.ts';
import { deadHostOf, deadIpOf, electionPort, otherNameOf, quorumPort } from './peer-ports.ts';
import { ServerHost } from './server-host.ts';
import { VirtualClock } from './virtual-clock.ts';

/**
 * More than any server reads: an entry that is too long for a server must be found, and not end the
 * log.
 */
const logEntryBytesMax = 4_000_000;
/** Ten times what a flood with small step budgets takes, which takes the most. */
const eventsMax = 4_000_000;

/** Groups and weights, if a majority is not what makes a quorum. */
export interface GroupOptions {
  readonly groups: ReadonlyMap<number, readonly Sid[]>;
  readonly weights: ReadonlyMap<Sid, number>;
}

export interface VirtualEnsembleOptions {
  readonly observers?: number;
  /**
   * Servers that the others do not know at first: their own configuration names the others and
   * themselves. They are the last ones.
   */
  readonly joiners?: number;
  readonly options?: Partial<EnsembleOptions>;
  readonly zab?: Partial<ZabOptions>;
  readonly grouped?: GroupOptions | undefined;
  /** `tskeeper.leaderPriority` of each server, in their order. */
  readonly priorities?: readonly number[] | undefined;
  /**
   * The server that an oracle may let continue alone where it is one of two voters. The others never
   * get this answer.
   */
  readonly oracleSid?: Sid | undefined;
  /** Each server has a second address, at which nothing ever answers; whether it is the first. */
  readonly deadAddress?: 'first' | 'second' | undefined;
}

export interface WorldOptions {
  /** The number of servers. Without `ensemble` they are independent. */
  readonly servers?: number;
  /** Makes the servers an ensemble, and sets its options; the last ones are the observers. */
  readonly ensemble?: VirtualEnsembleOptions;
  readonly core?: Partial<CoreOptions>;
  readonly options?: Partial<RuntimeOptions>;
  readonly snappy?: SnappyCodec | undefined;
  /** Whether reconfigurations may give servers other client ports. */
  readonly movesClientPorts?: boolean;
  /** Whether servers know how much memory they may use and do use (`ServerHost.memoryShare`). */
  readonly knowsMemory?: boolean;
}

const syncLimitTicksDefault = 5;

/** Servers know each other by name, since each process of a server has another address. */
function ensembleOptionsOf(sid: number, servers: number, tickTimeMs: Millis, ensemble: VirtualEnsembleOptions): EnsembleOptions {
  const { observers = 0, joiners = 0, deadAddress, options, zab, priorities } = ensemble;
  const members = servers - joiners;
  const all = Array.from({ length: servers }, (_, index): [number, QuorumServer] => {
    const own = { host: `server-${index + 1}`, quorumPort, electionPort };
    const dead = { host: deadHostOf(index + 1, deadAddress === 'first'), quorumPort, electionPort };
    const addresses = deadAddress === undefined ? [own] : deadAddress === 'first' ? [dead, own] : [own, dead];
    const isObserver = index >= members - observers && index < members;
    return [index + 1, { sid: index + 1, addresses, role: isObserver ? 'observer' : 'participant' }];
  }).filter(([other]) => other <= members || other === sid);
  return {
    ...ensembleDefaults,
    zab: {
      sid,
      tickTimeMs,
      initLimitTicks: 10,
      syncLimitTicks: syncLimitTicksDefault,
      forceSnapshotSync: false,
      counterMax: 0xffff_0000,
      leaderPriority: priorities?.[sid - 1],
      ...zab,
    },
    quorum: { version: 0, servers: new Map(all), ...groupedWith(sid, members, ensemble.grouped) },
    listensOnAllIps: true,
    cnxTimeoutMs: 5 * tickTimeMs,
    quorumCnxnTimeoutMs: 5 * tickTimeMs,
    connectToLeaderMs: 5 * tickTimeMs,
    ...options,
  };
}

/** A server that is to join has a weight of its own in the first group, as every voter must. */
function groupedWith(sid: Sid, members: number, grouped: GroupOptions | undefined): GroupOptions {
  if (grouped === undefined) return { groups: new Map(), weights: new Map() };
  if (sid <= members) return grouped;
  const groups = new Map(grouped.groups);
  groups.set(1, [...(groups.get(1) ?? []), sid]);
  return { groups, weights: new Map([...grouped.weights, [sid, 1]]) };
}

export class VirtualWorld {
  readonly random: SeededRandom;
  readonly clock: VirtualClock;
  readonly wire: VirtualWire;
  readonly servers: readonly ServerHost[];
  readonly recording: Recording;
  #oracleAllows = true;
  /** A hash over everything that happened, in order. */
  traceHash = 0;
  eventCount = 0;
  /** Called for each event: for reading a trace rather than comparing it. */
  onEvent: ((what: string, elapsedMs: Millis) => void) | undefined;
  readonly #numbers = Buffer.alloc(8);
  readonly #clients = new Map<string, string>();
  readonly #links = new Map<string, Link>();
  /** Machines by their current and former addresses, and servers' latest addresses. */
  readonly #nameOf = new Map<string, string>();
  readonly #addresses = new Map<string, string>();
  /** Names that do not resolve at present. */
  readonly #hidden = new Set<string>();

  constructor(
    seed: number,
    { servers = 1, ensemble, core, options, snappy, knowsMemory = false, movesClientPorts = false }: WorldOptions = {},
  ) {
    this.random = new SeededRandom(seed);
    this.clock = new VirtualClock(new SeededRandom(this.random.uint32()));
    this.wire = new VirtualWire(this.clock);
    this.wire.proxyFor = (from, to) => this.#earlyAccept(from, to);
    if (ensemble?.deadAddress !== undefined) for (let sid = 1; sid <= servers; sid++) this.#makeDeadMachine(sid);
    const coreOptions: CoreOptions = { ...coreDefaults, tickTimeMs: 200, minSessionTimeoutMs: 400, maxSessionTimeoutMs: 4000, ...core };
    const runtimeOptions: RuntimeOptions = {
      ...runtimeDefaults,
      dataDir: '/data',
      dataLogDir: '/data',
      clientPort: serverPort,
      preAllocSizeBytes: 4096,
      purgeIntervalMs: 0,
      ...options,
    };
    this.recording = newRecording({
      tickMs: coreOptions.tickTimeMs,
      minSessionTimeoutMs: coreOptions.minSessionTimeoutMs,
      maxSessionTimeoutMs: coreOptions.maxSessionTimeoutMs,
      extendedTypesEnabled: coreOptions.extendedTypesEnabled,
      containerMaxNeverUsedIntervalMs: coreOptions.containerMaxNeverUsedIntervalMs,
      enforceQuota: coreOptions.enforceQuota,
      localSessions: ensemble === undefined ? 'disabled' : coreOptions.localSessions,
      watchesPerCnxnMax: coreOptions.watchesPerCnxnMax,
      superDigest: coreOptions.superDigest,
      saslUsers: coreOptions.sasl === undefined ? undefined : Object.fromEntries(coreOptions.sasl.passwords),
      reconfigEnabled: coreOptions.reconfigEnabled,
      votersMin: ensemble?.options?.standaloneEnabled === false ? 1 : 2,
      multiAddressEnabled: ensemble?.options?.multiAddressEnabled === true,
      oracleSid: ensemble?.oracleSid,
      identitiesPerCnxnMax: coreOptions.identitiesPerCnxnMax,
      identityBytesPerCnxnMax: coreOptions.identityBytesPerCnxnMax,
      syncLimitTicks: ensemble === undefined ? undefined : (ensemble.zab?.syncLimitTicks ?? syncLimitTicksDefault),
      juteMaxBuffer: coreOptions.juteMaxBuffer,
      keeperExtensions: coreOptions.keeperExtensions,
      wideSequences: coreOptions.wideSequences,
      txnBytesMax: coreOptions.juteMaxBuffer + coreOptions.juteMaxBufferExtra,
    });
    if (ensemble?.oracleSid !== undefined) this.oracleAllows = true;
    this.servers = Array.from(
      { length: servers },
      (_, index) =>
        new ServerHost({
          name: `server-${index + 1}`,
          number: index,
          clock: this.clock,
          wire: this.wire,
          random: this.random,
          core: ensemble === undefined ? { ...coreOptions, localSessions: 'disabled' } : { ...coreOptions, serverId: index + 1 },
          options: runtimeOptions,
          ensembleOptions: ensemble === undefined ? undefined : ensembleOptionsOf(index + 1, servers, coreOptions.tickTimeMs, ensemble),
          oracle: ensemble?.oracleSid === undefined ? undefined : () => this.#oracleAllows && ensemble.oracleSid === index + 1,
          snappy,
          knowsMemory,
          movesClientPorts,
          recording: this.recording,
          until: (promise, atMostMs) => this.until(promise, atMostMs),
          run: (ms) => this.run(ms),
          booted: (name, address) => {
            this.#nameOf.set(address, name);
            this.#addresses.set(name, address);
            if (!this.#hidden.has(name)) this.#nameAddresses(name, [address]);
            for (const link of this.#links.values()) link.addressChanged();
          },
        }),
    );
    const first = this.server.quorum;
    for (const { name, sid } of this.servers) {
      if (first === undefined) continue;
      const quorum = first;
      const isVoter = quorum.servers.get(sid)?.role === 'participant';
      const group = [...quorum.groups].find(([, sids]) => sids.includes(sid))?.[0];
      const mayGoAlone = ensemble?.oracleSid === sid;
      const observesFollowers = !isVoter && ensemble?.options?.observerMasterPort !== undefined;
      const weight = quorum.weights.get(sid);
      this.recording.ensemble.set(name, { sid, isVoter, group, weight, observesFollowers, mayGoAlone });
      this.recording.configText = formatQuorumConfig(quorum);
    }
    this.clock.onRun = (what, elapsedMs) => {
      this.eventCount++;
      // So many events mean that the world makes no progress.
      if (this.eventCount > eventsMax) throw new Error(`still busy after ${eventsMax} events, at ${elapsedMs} ms with ${what}`);
      this.#numbers.writeDoubleLE(elapsedMs, 0);
      this.traceBytes(this.#numbers);
      this.traceHash = crc32(what, this.traceHash);
      this.onEvent?.(what, elapsedMs);
    };
  }

  /** Whether the oracle, if there is one, lets the server that it favours continue alone. */
  get oracleAllows(): boolean {
    return this.#oracleAllows;
  }

  set oracleAllows(isYes: boolean) {
    this.#oracleAllows = isYes;
    this.recording.oracleAnswers.push({ atMs: this.clock.elapsedMs, isYes });
  }

  #makeDeadMachine(sid: Sid): void {
    this.wire.stack(deadIpOf(sid)).isPoweredOff = true;
    this.wire.name(deadHostOf(sid, false), [deadIpOf(sid)]);
  }

  /** The first or only server. */
  get server(): ServerHost {
    return this.servers[0]!;
  }

  traceBytes(bytes: Uint8Array): void {
    this.traceHash = crc32(bytes, this.traceHash);
  }

  /** A client's machine; everything on its connections is recorded. */
  clientNetwork(client: string, address: string): ClientNetwork {
    this.#clients.set(client, address);
    this.#nameOf.set(address, client);
    return new ClientNetwork(this, client, address);
  }

  /** The current address of a machine; undefined for a server that is down. */
  addressOf(name: string): string | undefined {
    return this.#clients.get(name) ?? this.servers.find((server) => server.name === name)?.address;
  }

  /** The machine that has or had this address. */
  nameOf(address: string): string | undefined {
    return this.#nameOf.get(address);
  }

  hideName(name: string, isHidden: boolean): void {
    if (isHidden) this.#hidden.add(name);
    else this.#hidden.delete(name);
    const address = this.#addresses.get(name);
    this.#nameAddresses(name, isHidden || address === undefined ? [] : [address]);
  }

  #nameAddresses(name: string, addresses: readonly string[]): void {
    for (const each of [name, otherNameOf(name)]) this.wire.name(each, addresses);
  }

  /** The additional delay between these addresses. */
  extraDelayMs(from: string, to: string): Millis {
    let sumMs = 0;
    for (const { delayMs, distanceMs } of this.#linksBetween(from, to)) sumMs += delayMs + distanceMs;
    return sumMs;
  }

  /** The part of the additional delay that never changes. */
  distanceMs(from: string, to: string): Millis {
    let sumMs = 0;
    for (const { distanceMs } of this.#linksBetween(from, to)) sumMs += distanceMs;
    return sumMs;
  }

  #earlyAccept(from: string, to: string): AcceptingProxy | undefined {
    return this.#linksBetween(from, to).find(({ earlyAccept }) => earlyAccept !== undefined)?.earlyAccept;
  }

  #linksBetween(from: string, to: string): Link[] {
    const [a, b] = [this.nameOf(from), this.nameOf(to)];
    return [this.#links.get(`${a} ${b}`), this.#links.get(`${b} ${a}`)].filter((link) => link !== undefined);
  }

  /** The link between two machines. */
  link(a: string, b: string): Link {
    const key = `${a} ${b}`;
    let link = this.#links.get(key);
    if (link === undefined) this.#links.set(key, (link = new Link(this, a, b)));
    return link;
  }

  get links(): Iterable<Link> {
    return this.#links.values();
  }

  /** The server at this address. */
  serverAt(address: string): ServerHost | undefined {
    return this.servers.find((server) => server.address === address);
  }

  // --- Time

  /** Lets `ms` pass. */
  async run(ms: Millis): Promise<void> {
    const end = this.clock.elapsedMs + ms;
    await stepUntil(() => (this.clock.step(end) === undefined ? true : undefined));
  }

  /** Lets time pass until the condition holds; returns whether it did. */
  async runUntil(isSo: () => boolean, atMostMs: Millis): Promise<boolean> {
    const end = this.clock.elapsedMs + atMostMs;
    return await stepUntil(() => {
      if (isSo()) return true;
      return this.clock.step(end) === undefined ? isSo() : undefined;
    });
  }

  /**
   * Lets time pass until a promise of a server is settled. If no event is left, the promise can
   * only be waiting for work outside the world (zlib has threads of its own), so this waits too. A
   * run that must be repeatable has no such work.
   */
  async until<T>(promise: Promise<T>, atMostMs: Millis): Promise<T> {
    const end = this.clock.elapsedMs + atMostMs;
    const progress = { done: false };
    const note = () => {
      progress.done = true;
    };
    const settled = promise.then(note, note);
    for (await settlePromises(); !progress.done; await settlePromises()) {
      if (this.clock.isEmpty) await Promise.race([settled, this.clock.nextEntry()]);
      else if (this.clock.step(end) === undefined) {
        const lastWords = this.servers.flatMap(({ logLines }) => logLines.slice(-3)).join(' / ');
        throw new Error(`timed out after ${atMostMs} ms of virtual time; the servers' last log lines: ${lastWords}`);
      }
    }
    return await promise;
  }

  // --- Evidence

  /**
   * Reads the logs that servers left, including purged ones. A zxid in two files, or on two
   * servers, must be the same txn in both. Of an ensemble's logs only what was committed is its
   * history.
   */
  async readLogs(): Promise<void> {
    const { recording } = this;
    const entries = new Map<Zxid, { readonly server: string; readonly bytes: Buffer }>();
    for (const server of this.servers) {
      const files = server.evidence('log');
      for (const { name } of numberedFiles([...files.keys()], 'log')) {
        const reason = await this.#readLog(`${name} of ${server.name}`, files.get(name)!, entries);
        if (reason !== 'end of file' && reason !== 'padding') recording.violations.push(`${name} of ${server.name} ends with ${reason}`);
      }
      // The end of a log that no longer counts says nothing.
      for (const bytes of server.supersededLogs) await this.#readLog(`an old log of ${server.name}`, bytes, entries);
    }
    const isHistory = this.#history();
    recording.log = [...entries]
      .filter(([zxid]) => isHistory(zxid))
      .toSorted(([a], [b]) => a - b)
      .map(([, { bytes }]) => {
        const logged = readTxn(new Reader(bytes));
        return { atMs: this.#elapsedOf(logged.header.time), bytes: bytes.length, logged };
      });
    recording.abandonedReconfigs = [...entries].flatMap(([zxid, { bytes }]) => {
      const { header, txn } = readTxn(new Reader(bytes));
      if (isHistory(zxid) || header.type !== OpCode.reconfig || txn.kind !== 'setData') return [];
      return [{ zxid, text: Buffer.from(txn.data ?? []).toString('utf8') }];
    });
    recording.endedMs = this.clock.elapsedMs;
    markLocalCloses(recording);
  }

  /** Adds the txns of a log; returns why it ends. */
  async #readLog(name: string, content: Buffer, entries: Map<Zxid, { readonly server: string; readonly bytes: Buffer }>): Promise<string> {
    const reading = new VirtualDisk();
    reading.putFile('/log', content);
    const file = await reading.open('/log', 'existing');
    const { reason } = await readLog(file, logEntryBytesMax, (zxid, bytes, start, stop) => {
      const entry = { server: name, bytes: Buffer.from(bytes.subarray(start, stop)) };
      const known = entries.get(zxid);
      if (known === undefined) entries.set(zxid, entry);
      else if (!known.bytes.equals(entry.bytes)) {
        this.recording.violations.push(`${formatZxid(zxid)} is one txn in ${known.server} and another in ${entry.server}`);
      }
    });
    return reason;
  }

  #history(): (zxid: Zxid) => boolean {
    const { recording } = this;
    if (recording.ensemble.size === 0) return () => true;
    const ends = epochEnds(leaderEpochsOf(recording), lastServed(recording), recording.seedState.zxid);
    return (zxid) => isCommitted(ends, zxid);
  }

  /**
   * The instant of a wall-clock time, to the millisecond. Clocks differ so much that it belongs to
   * one of them only.
   */
  #elapsedOf(wallMs: Millis): Millis {
    const { elapsedMs } = this.clock;
    const clock = this.recording.wallClocks.find(({ offsetMs }) => wallMs >= offsetMs && wallMs <= offsetMs + elapsedMs);
    return clock === undefined ? NaN : wallMs - clock.offsetMs;
  }
}

/**
 * Steps for each turn of Node's event loop. A turn of one step costs as much as the step itself.
 */
const stepsPerTurn = 32;

/**
 * Calls `step` until it returns something, and resolves with that. Before each call, settled
 * promises have had their effect, as with `settlePromises`: Node runs them between any two
 * callbacks of `setImmediate`.
 */
function stepUntil<T>(step: () => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const once = () => {
      if (isOver) return;
      try {
        const result = step();
        if (result === undefined) return;
        isOver = true;
        resolve(result);
      } catch (error) {
        isOver = true;
        reject(error);
      }
    };
    const turn = () => {
      if (isOver) return;
      for (let steps = 0; steps < stepsPerTurn; steps++) setImmediate(once);
      setImmediate(turn);
    };
    turn();
  });
}

/** Lets settled promises have their effect, and everything that follows from them. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
