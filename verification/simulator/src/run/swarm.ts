/**
 * What a seed chooses before anything happens: sizes, limits, the faults and how often they strike.
 * Each seed switches some faults off, since a fault that strikes all the time hides what others
 * would show. Limits are small, so that what takes a real server weeks (a thousandth snapshot, the
 * last zxid of an epoch) takes a minute here.
 */
import { coreDefaults, type CoreOptions, type LocalSessionMode, type ZabOptions } from '@tskeeper/core';
import { AuthToLocal, SaslNames, saslProvider } from '@tskeeper/core/internal';
import { epochMax, makeZxid, type Millis, type Sid, type Zxid } from '@tskeeper/protocol';
import { type EnsembleOptions, runtimeDefaults, type RuntimeOptions, type SeededRandom } from '@tskeeper/runtime';
import {
  clientPortDefaults,
  type ClientPortSizes,
  type AcceptingProxy,
  electionPortDefaults,
  learnerPortDefaults,
  type LearnerPortOptions,
} from '@tskeeper/runtime/internal';
import type { SaslLogin } from '../clients/sasl-login.ts';
import type { WorkloadOptions } from '../clients/workload.ts';
import { type FaultName, faults } from '../faults/faults.ts';
import type { SeedState } from '../record/recording.ts';
import { drawFlood, type FloodPlan } from './flood.ts';
import { observerMasterPort } from '../world/peer-ports.ts';
import type { GroupOptions } from '../world/virtual-world.ts';

export interface ClientPlan {
  readonly timeoutMs: Millis;
  /** Name and password; ACLs distinguish them. */
  readonly credentials: string | undefined;
  /** Proved by SASL in addition. */
  readonly sasl: SaslLogin | undefined;
  readonly restoresWatches: boolean;
  /** The client library, or a raw client. */
  readonly kind: 'raw' | 'library';
  /** See `RawClientOptions`. */
  readonly acceptsReadOnly: boolean;
  readonly keepsLocalSession: boolean;
}

/** How the servers of an ensemble are set up. */
export interface EnsemblePlan {
  readonly observers: number;
  /** Servers that the configuration does not name at first. */
  readonly joiners?: number;
  readonly options: Partial<EnsembleOptions>;
  readonly zab: Partial<ZabOptions>;
  readonly grouped: GroupOptions | undefined;
  /** Of the servers; undefined if all have the default. */
  readonly priorities: readonly number[] | undefined;
  /**
   * Bytes that may be in transit between two servers. If there is little room, the sender holds
   * what a slow receiver has not read.
   */
  readonly windowBytes: number;
  /** See `VirtualEnsembleOptions.oracleSid`. */
  readonly oracleSid: Sid | undefined;
  /** See `VirtualEnsembleOptions.deadAddress`. */
  readonly deadAddress: 'first' | 'second' | undefined;
  /** Undefined if all servers are close to each other, with nothing in between. */
  readonly links: LinksPlan | undefined;
}

/** What lies between servers. */
export interface LinksPlan {
  /** The percentage of links with these properties. */
  readonly percent: number;
  /** Delay in each direction. */
  readonly distanceMs: Millis;
  /** A proxy accepts connections in place of the server. */
  readonly earlyAccept: AcceptingProxy | undefined;
}

/** How the membership of an ensemble changes; `reconfig-plan.ts` draws it. */
export interface ReconfigPlan {
  /** Servers that are up and that the first configuration does not name. */
  readonly joiners: number;
  /** An ensemble may have a single voter. */
  readonly standaloneEnabled: boolean;
  /** Average time between two requests. */
  readonly intervalMs: Millis;
  /** Servers get other ports and addresses for their clients. */
  readonly movesClientPorts: boolean;
  /** Libraries follow the configuration. Otherwise they have a list of all servers at all ports. */
  readonly clientsFollow: boolean;
}

export interface SeedPlan {
  readonly servers: number;
  /** Undefined for a standalone server. */
  readonly ensemble: EnsemblePlan | undefined;
  readonly core: Partial<CoreOptions>;
  readonly options: Partial<RuntimeOptions>;
  readonly usesSnappy: boolean;
  /** Servers know how much memory they use, and can run short of it. */
  readonly knowsMemory: boolean;
  readonly faults: readonly FaultName[];
  /** Average time between two faults. */
  readonly faultIntervalMs: Millis;
  /** Average time between two bursts of one client. */
  readonly workIntervalMs: Millis;
  readonly safetyMs: Millis;
  /** The longest time that one turn of a server takes. */
  readonly turnMsMax: Millis;
  readonly workload: WorkloadOptions;
  readonly clients: readonly ClientPlan[];
  readonly seedState: SeedState | undefined;
  readonly flood: FloodPlan | undefined;
  /**
   * Clients keep writing until every server serves again, and each fsync of one server's disk takes
   * up to `syncMsMax`: a server restarts under load.
   */
  readonly restartUnderLoad: { readonly slowServer: number; readonly syncMsMax: Millis } | undefined;
  /** The membership changes while the ensemble runs. */
  readonly reconfig?: ReconfigPlan | undefined;
}

/** Local sessions take part in every third ensemble. */
const localSessionModes: readonly LocalSessionMode[] = [...repeat<LocalSessionMode>('disabled', 4), 'enabled', 'upgradable'];
/** Without local sessions a server in read-only mode opens none. */
const readOnlySessionModes: readonly LocalSessionMode[] = ['enabled', 'upgradable', 'upgradable', 'disabled'];
/** ACLs name dave. */
const saslUsers: Readonly<Record<string, string>> = { dave: 'opens', erin: 'knocks' };
const saslNames = new SaslNames({
  rules: new AuthToLocal('DEFAULT', ''),
  removesHost: false,
  removesRealm: false,
  superUsers: new Set(),
});
const counterMaxDefault = 0xffff_0000;
/** The limit if the longest frame is a megabyte. */
const floodValueMax = 50_000;
/** Units of work; a change of one znode is 24. */
const smallSteps = 200;
const wallMs = 1_699_999_999_000;
/** Zxids and counters begin so near to their ends that many overflow. */
const zxidsLeftMax = 240;
const countsLeftMax = 12;
const wideCountsLeftMax = 5;
/**
 * Faults that are weighted: a truncated log, a pause longer than a session's timeout, and a torn
 * tail are otherwise too rare.
 */
const frequencies: Partial<Record<FaultName, number>> = {
  isolateAndKillLeader: 6,
  pause: 3,
  longPause: 2,
  failNewLeader: 2,
  powerLoss: 2,
  moveThereAndBack: 2,
  moveAheadOfRequests: 2,
  reconnectWithPendingRequests: 2,
  syncAtLaggingServer: 2,
  syncAtSlowDisk: 3,
  laggingLearner: 3,
  memoryHog: 2,
  halfOpenClient: 2,
  resumeSessionFromDump: 2,
  sharedSession: 2,
  abortedDials: 2,
  massDelete: 2,
  unknownPeer: 3,
  transferLead: 4,
  impersonator: 12,
};
/**
 * One of so many seeds has the fault; the others are in every second seed. After an impersonator no
 * guarantee to clients can be checked.
 */
const oneIn: Partial<Record<FaultName, number>> = { impersonator: 12, memoryPressure: 4, quorumLost: 6 };

/**
 * Faults after which a server may lose all data: an operator empties a folder from which the server
 * cannot start.
 */
export const diskLosingFaults: readonly FaultName[] = ['wipe', 'logRot', 'snapshotRot', 'epochRot', 'lostLog'];

/** Chosen apart from the others, by the seeds that they concern; see `faults-apart.ts`. */
const chosenApart: ReadonlySet<FaultName> = new Set<FaultName>(['observerAhead', 'syncAtObserver', 'expireSession']);

export function drawPlan(random: SeededRandom): SeedPlan {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const snapshotCompression = pick('none', 'none', 'none', 'snappy');
  const voters = pick(1, 2, 2, 3, 3, 3, 3, 4, 5, 5, 7);
  const ensemble = random.below(3) > 0 ? drawEnsemble(random, voters) : undefined;
  const isOfThisKind = (name: FaultName) => ensemble !== undefined || !('ensembleOnly' in faults[name]);
  const names = (Object.keys(faults) as FaultName[]).filter((name) => !chosenApart.has(name));
  const chosen = names.filter((name) => random.below(oneIn[name] ?? 2) === 0 && isOfThisKind(name));
  // A lone voter is its own leader.
  const isReadOnlyModeOn = ensemble !== undefined && voters > 1 && random.below(3) === 0;
  const servers = ensemble === undefined ? 1 : voters + ensemble.observers;
  // If an epoch is used up every other second, there is no time to return.
  const mayReturnLoaded =
    random.below(6) === 0 &&
    (ensemble?.zab.counterMax ?? counterMaxDefault) === counterMaxDefault &&
    (ensemble?.windowBytes ?? Infinity) === Infinity;
  const restartUnderLoad = mayReturnLoaded ? { slowServer: random.below(servers), syncMsMax: 2 + random.below(19) } : undefined;
  // Read-only mode begins after two seconds without a leader.
  const safetyMs = 1500 + random.below(4000) + (isReadOnlyModeOn ? 3000 : 0);
  // The longest frame is small, so that values of maximum length are cheap.
  const juteMaxBuffer = pick(coreDefaults.juteMaxBuffer, 30_000);
  const clientCount = 2 + random.below(4);
  const keeperExtensions = random.below(3) === 0;
  const allowsFailedSasl = random.below(3) === 0;
  const wideSequences = random.below(2) === 0;
  const flood =
    (ensemble?.windowBytes ?? Infinity) === Infinity && random.below(ensemble === undefined ? 14 : 8) === 0
      ? drawFlood(random, safetyMs, Math.min(juteMaxBuffer, floodValueMax))
      : undefined;
  const plan: SeedPlan = {
    servers,
    ensemble: withReadOnlyMode(
      flood !== undefined && ensemble !== undefined && random.below(2) === 0 ? withSnapshotSync(ensemble) : ensemble,
      isReadOnlyModeOn,
    ),
    core: {
      closeSessionTxnEnabled: random.below(4) > 0,
      requestThrottleLimit: pick(0, 0, 5, 1),
      requestThrottleDropStale: random.below(2) === 0,
      globalOutstandingLimit: pick(1000, 1000, 1000, 1000, 4, 1),
      // At eight times as much nothing may grow; an outstanding txn holds more than a kilobyte.
      inFlightBytesMax: pick(...repeat(coreDefaults.inFlightBytesMax, 5), 20_000, 1500, 200),
      watchesPerCnxnMax: pick(...repeat(coreDefaults.watchesPerCnxnMax, 4), 5, 2),
      // Room for an address and two users: the server refuses no client that authenticates only as
      // itself.
      identitiesPerCnxnMax: pick(coreDefaults.identitiesPerCnxnMax, 4),
      identityBytesPerCnxnMax: pick(...repeat(coreDefaults.identityBytesPerCnxnMax, 2), 180),
      identityBytesPerAddressMax: pick(coreDefaults.identityBytesPerAddressMax, 100),
      exemptIdentityBytes: pick(coreDefaults.exemptIdentityBytes, 50),
      shortAclEntriesMax: pick(16, 0),
      sasl: { mechanism: 'DIGEST-MD5', passwords: new Map(Object.entries(saslUsers)), names: saslNames },
      allowsFailedSasl,
      authProviders: [saslProvider(undefined)],
      extendedTypesEnabled: true,
      keeperExtensions,
      wideSequences,
      enforceQuota: random.below(8) > 0,
      containerCheckIntervalMs: pick(0, 150, 150, 150, 150, 150, 400, 400, 400, 400),
      containerMaxNeverUsedIntervalMs: pick(0, 0, 500),
      containerMaxPerMinute: pick(10_000, 10_000, 300),
      stepUnits: drawTurnUnits(random, flood !== undefined, restartUnderLoad !== undefined),
      ...(flood !== undefined && { juteMaxBuffer }),
      // One request at a time over a distance of 100 ms: a crowd of hundreds would wait for
      // minutes.
      ...(flood !== undefined && ensemble?.links !== undefined && { requestThrottleLimit: 0 }),
    },
    options: {
      ...(isReadOnlyModeOn && { fourLetterWords: ['srvr', 'isro'] }),
      snapCount: 10 + random.below(90),
      snapSizeLimitBytes: pick(0, 0, 20_000),
      preAllocSizeBytes: pick(0, 512, 4096, 65_536),
      txnLogSizeLimitBytes: pick(0, 0, 1500, 6000),
      maxBatchSize: pick(1, 3, 1000),
      flushDelayMs: pick(0, 0, 0, 3),
      maxWriteQueuePollMs: pick(0, 1),
      serializeLastProcessedZxid: random.below(4) > 0,
      snapshotCompression,
      purgeIntervalMs: pick(0, 0, 600),
      dataLogDir: pick('/data', '/data', '/log'),
      heldBytesMax: pick(...repeat(runtimeDefaults.heldBytesMax, 3), 60_000, 20_000, 4000),
      ...drawClientPort(random, clientCount, flood !== undefined),
      // A disk that needs an fsync for each txn, or several for each file of a few txns, could
      // never keep up.
      ...(restartUnderLoad !== undefined && { maxBatchSize: 1000, txnLogSizeLimitBytes: 0, snapCount: 1000 + random.below(1000) }),
      // A server that may lose its disk must not take an empty folder for a new one.
      ...((chosen.some((name) => diskLosingFaults.includes(name)) || flood?.restart === 'without its disk') && { dbAutocreate: false }),
    },
    usesSnappy: true,
    // Each client of a crowd connects once, whether new sessions are refused or not.
    knowsMemory: chosen.includes('memoryPressure') && flood === undefined,
    faults: chosen.flatMap((name) => Array.from({ length: frequencies[name] ?? 1 }, () => name)),
    faultIntervalMs: 20 + random.below(500),
    workIntervalMs: 10 + random.below(120),
    safetyMs,
    // The time for a turn of a few units bounds what a server can do; a flood, or a load under
    // which one restarts, must stay below it.
    turnMsMax: flood === undefined && restartUnderLoad === undefined ? pick(0, 0.25, 1) : pick(0, 0.25, 0.25),
    workload: {
      dataBytesMax: pick(40, 300, 3000, 25_000),
      closeEvery: pick(0, 0, 30),
      writePercent: 30 + random.below(60),
      usesAcls: random.below(16) > 0,
      usesQuotas: random.below(8) > 0,
      usesPages: random.below(3) > 0,
      usesKeeperExtensions: keeperExtensions,
      handsOverEphemerals: random.below(3) === 0,
    },
    clients: Array.from({ length: clientCount }, (_, index) => ({
      timeoutMs: 300 + random.below(1400),
      credentials: pick(undefined, 'alice:secret', 'bob:pw'),
      sasl: drawSaslLogin(random, index % 2 === 1 && allowsFailedSasl),
      restoresWatches: random.below(3) > 0,
      kind: index % 2 === 0 ? 'library' : 'raw',
      acceptsReadOnly: isReadOnlyModeOn && random.below(3) > 0,
      keepsLocalSession: isReadOnlyModeOn && random.below(3) === 0,
    })),
    // An impersonator that votes can use up the last epochs.
    seedState: chosen.includes('impersonator') ? undefined : drawSeedState(random, ensemble !== undefined, wideSequences),
    flood,
    restartUnderLoad,
  };
  return ensemble === undefined
    ? plan
    : { ...plan, core: { ...plan.core, localSessions: pick(...(isReadOnlyModeOn ? readOnlySessionModes : localSessionModes)) } };
}

/** @param mayBeWrong the password may be wrong, and the client is served nevertheless. */
function drawSaslLogin(random: SeededRandom, mayBeWrong: boolean): SaslLogin | undefined {
  if (random.below(2) === 0) return undefined;
  const username = random.below(3) > 0 ? 'dave' : 'erin';
  return { username, password: mayBeWrong && random.below(3) === 0 ? 'wrong' : saslUsers[username]! };
}

function repeat<T>(value: T, times: number): T[] {
  return Array.from({ length: times }, () => value);
}

/**
 * Limits of the client port, down to one or two places, one frame, a few bytes. Every client must
 * get in eventually: it has an address of its own, and there are more places than clients, apart
 * from those that dead connections occupy until the server notices.
 */
function drawClientPort(random: SeededRandom, clients: number, isFlooded: boolean): Partial<RuntimeOptions> {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const sizes: ClientPortSizes = {
    halfOpenMax: pick(clientPortDefaults.halfOpenMax, 1, 3),
    halfOpenGraceMs: pick(clientPortDefaults.halfOpenGraceMs, 100),
    outputHighWaterBytes: pick(...repeat(clientPortDefaults.outputHighWaterBytes, 2), 2000, 100, 1),
    queuedOutputBytesMax: pick(clientPortDefaults.queuedOutputBytesMax, 5000, 100),
    drainTimeoutMs: pick(clientPortDefaults.drainTimeoutMs, 300),
    sliceBytes: pick(...repeat(clientPortDefaults.sliceBytes, 2), 3000, 100),
    framesPerQuantum: pick(...repeat(clientPortDefaults.framesPerQuantum, 2), 3, 1),
    framesPerTurn: pick(...repeat(clientPortDefaults.framesPerTurn, 2), 20, 2),
    reservedCnxnsOneIn: pick(clientPortDefaults.reservedCnxnsOneIn, 2),
    reservedCnxnsMax: pick(clientPortDefaults.reservedCnxnsMax, 1),
    discardedBytesMax: pick(clientPortDefaults.discardedBytesMax, 100),
  };
  return {
    maxClientCnxns: pick(...repeat(runtimeDefaults.maxClientCnxns, 3), 3, 2, 1),
    // Each client of a crowd connects once, and one that finds no place sends nothing.
    maxCnxns: isFlooded ? 0 : pick(...repeat(0, 3), clients + 3, clients + 1),
    sessionlessTimeoutMs: pick(runtimeDefaults.sessionlessTimeoutMs, 700),
    largeRequestThreshold: pick(...repeat(runtimeDefaults.largeRequestThreshold, 3), 600),
    largeRequestMaxBytes: pick(40_000, 3000),
    connectionThrottle: pick(...repeat(runtimeDefaults.connectionThrottle, isFlooded ? 60 : 3), {
      ...runtimeDefaults.connectionThrottle,
      tokens: 3,
      fillTimeMs: 20,
      fillCount: 1,
    }),
    clientPortSizes: sizes,
  };
}

/**
 * Units of a step. A server that restarts under load needs room in a step for what is written
 * meanwhile.
 */
function drawTurnUnits(random: SeededRandom, isFlooded: boolean, isLoaded: boolean): number {
  const sizes = isLoaded ? [16_384, 2000, 200] : isFlooded ? [2000, 200, 48] : [16_384, 2000, 200, 24, 4];
  return sizes[random.below(sizes.length)]!;
}

/** The kinds that a report counts separately. */
export function kindsOf({ ensemble, flood, restartUnderLoad, core, reconfig }: SeedPlan): string[] {
  const kinds: readonly [string, boolean][] = [
    ['standalone', ensemble === undefined],
    ['ensemble', ensemble !== undefined],
    ['groups', ensemble?.grouped !== undefined],
    ['oracle', ensemble?.oracleSid !== undefined],
    ['observers of followers', (ensemble?.observers ?? 0) > 0 && ensemble?.options.observerMasterPort !== undefined],
    ['a dead address', ensemble?.deadAddress !== undefined],
    ['observers without a log', (ensemble?.observers ?? 0) > 0 && ensemble?.options.syncEnabled === false],
    ['reconfig', reconfig !== undefined],
    ['reconfig with dead addresses', reconfig !== undefined && ensemble?.deadAddress !== undefined],
    ['reconfig without a log', reconfig !== undefined && ensemble?.options.syncEnabled === false],
    ['reconfig with an oracle', reconfig !== undefined && ensemble?.oracleSid !== undefined],
    ['reconfig of client ports', reconfig?.movesClientPorts === true],
    ['flood', flood !== undefined],
    ['restart under load', restartUnderLoad !== undefined],
    ['local sessions', (core.localSessions ?? 'disabled') !== 'disabled'],
    ['read-only mode', ensemble?.options.readOnlyMode === true],
    ['small steps', (core.stepUnits ?? Infinity) <= smallSteps],
  ];
  return kinds.flatMap(([kind, isIt]) => (isIt ? [kind] : []));
}

/**
 * Txns in memory and logs are kept small, so that returning learners get a DIFF from either, a
 * TRUNC or a SNAP.
 */
function drawEnsemble(random: SeededRandom, voters: number): EnsemblePlan {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const oracleSid = voters === 2 && random.below(2) === 0 ? 1 + random.below(2) : undefined;
  const observers = pick(0, 0, 0, 1, 1, 2);
  const deadAddress = pick(...repeat(undefined, 4), 'first', 'second');
  const ofObservers: Partial<EnsembleOptions> = observers === 0 ? {} : drawObservers(random, voters);
  const servers = voters + observers;
  const links = random.below(3) === 0 ? drawLinks(random) : undefined;
  // With a distance, little would get through.
  const windowBytes = links === undefined ? pick(Infinity, 1500) : Infinity;
  const narrow: Partial<LearnerPortOptions> =
    windowBytes === Infinity
      ? {}
      : pick<Partial<LearnerPortOptions>>(
          {},
          { outputHighWaterBytes: 200, queuedBytesMax: 400_000 },
          { outputHighWaterBytes: 200, waitingBytesMax: 400_000 },
        );
  return {
    observers,
    deadAddress,
    options: {
      ...ofObservers,
      ...(deadAddress !== undefined && { multiAddressEnabled: true, reachabilityCheckTimeoutMs: pick(5, 20, 60) }),
      // With 0 there is none in memory after a start. What a learner is sent at once (a DIFF from
      // memory, a piece of the log, a slice of a snapshot) must be less than may wait, as in
      // production; otherwise it would be dropped each time it joins.
      commitLogCount: narrow.outputHighWaterBytes !== undefined ? pick(0, 1, 2, 3) : pick(0, 1, 2, 3, 10, 30, 500),
      snapshotSizeFactor: pick(-1, 0, 0, 0.33, 5),
      // Requests wait for room in the stream to the leader, and learners share packets, even if
      // there is little to send.
      learnerPort: {
        ...pick<Partial<LearnerPortOptions>>(
          {},
          { outputHighWaterBytes: 1 },
          { outputHighWaterBytes: 200, sharedBytesMin: 1 },
          { outputHighWaterBytes: 4096, sharedBytesMin: 100 },
        ),
        ...narrow,
        packetsPerQuantum: pick(learnerPortDefaults.packetsPerQuantum, 3, 1),
        // Honest servers need it only for a moment, but all at once after an election.
        halfOpenMax: pick(learnerPortDefaults.halfOpenMax, Math.max(2, servers - 1)),
      },
      electionPort: {
        halfOpenMax: pick(electionPortDefaults.halfOpenMax, Math.max(2, servers - 1)),
        unknownPeersMax: pick(electionPortDefaults.unknownPeersMax, 1, 0),
        messagesPerQuantum: pick(electionPortDefaults.messagesPerQuantum, 1),
      },
    },
    zab: {
      forceSnapshotSync: random.below(4) === 0,
      snapSyncsMax: pick(10, 1),
      diffSyncsMax: pick(100, 1),
      unknownObserversMax: pick(undefined, 1, 0),
      counterMax: pick(counterMaxDefault, counterMaxDefault, 40, 150),
    },
    links,
    windowBytes,
    grouped: oracleSid === undefined && voters > 1 && random.below(4) === 0 ? drawGroups(random, voters) : undefined,
    oracleSid,
    priorities: random.below(4) === 0 ? Array.from({ length: voters }, () => pick(0, 1, 1, 5)) : undefined,
  };
}

/** From whom observers learn, and whether they keep a log. One voter alone has no follower. */
function drawObservers(random: SeededRandom, voters: number): Partial<EnsembleOptions> {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  return {
    observerMasterPort: voters > 1 ? pick(undefined, observerMasterPort) : undefined,
    observerMasterSizeLimitBytes: pick(32 * 1024 * 1024, 2000),
    observerReconnectDelayMs: pick(0, 0, 300),
    syncEnabled: pick(true, true, false),
  };
}

/** A server that returns during a flood receives a snapshot. */
function withSnapshotSync(ensemble: EnsemblePlan): EnsemblePlan {
  return { ...ensemble, zab: { ...ensemble.zab, forceSnapshotSync: true } };
}

function withReadOnlyMode(ensemble: EnsemblePlan | undefined, readOnlyMode: boolean): EnsemblePlan | undefined {
  return ensemble === undefined ? undefined : { ...ensemble, options: { ...ensemble.options, readOnlyMode } };
}

/**
 * One to three groups, with a weight for each server, which may be 0, and sometimes a group without
 * any weight.
 */
function drawGroups(random: SeededRandom, voters: number): GroupOptions {
  const groups = new Map<number, Sid[]>();
  const weights = new Map<Sid, number>();
  const count = 1 + random.below(Math.min(3, voters));
  for (let sid = 1; sid <= voters; sid++) {
    // The first server of each group has a weight, except possibly that of the last group.
    const group = sid <= count ? sid : 1 + random.below(count);
    groups.set(group, [...(groups.get(group) ?? []), sid]);
    weights.set(sid, sid < count || sid === 1 ? 1 + random.below(3) : [1, 1, 2, 3, 0][random.below(5)]!);
  }
  return { groups, weights };
}

function drawLinks(random: SeededRandom): LinksPlan {
  const pick = <T>(...from: readonly T[]): T => from[random.below(from.length)]!;
  const early: AcceptingProxy = {
    location: pick('near end', 'far end'),
    refusal: pick('end', 'reset'),
    refusalMs: pick(0, 0, 1 + random.below(20)),
    dialTimeoutMs: pick(500, 3000),
  };
  return { percent: pick(50, 100), distanceMs: pick(0, 2, 20, random.below(100)), earlyAccept: random.below(4) > 0 ? early : undefined };
}

function drawSeedState(random: SeededRandom, isEnsemble: boolean, wideSequences: boolean): SeedState | undefined {
  // The next epoch of an ensemble begins before a txn does, and must be possible.
  const lastZxid = isEnsemble
    ? makeZxid(random.below(2) === 0 ? 7 : epochMax - 1000, 0xffff_0000)
    : makeZxid(0, 2 ** 32 - 1 - random.below(zxidsLeftMax));
  const begins = random.below(8);
  if (begins > 1) return undefined;
  const znodesUpTo = wideSequences ? drawWideCounter(random) : drawCounter(random);
  const count = znodesUpTo(0).length;
  const zxid = begins === 0 ? count : lastZxid;
  return { zxid, wallMs, znodes: znodesUpTo(zxid - count + 1) };
}

/** The znodes of a tree, the first of which gets `zxid`, the others the zxids that follow. */
type SeedZnodes = (zxid: Zxid) => SeedState['znodes'];

function drawCounter(random: SeededRandom): SeedZnodes {
  const creates = 2 ** 31 - 1 - random.below(countsLeftMax);
  return () => [
    { path: '/q', creates },
    { path: '/q/last', creates: 0 },
  ];
}

/** Near the first record of a number, where 32 bits end, or where a record is renewed. */
function drawWideCounter(random: SeededRandom): SeedZnodes {
  const left = random.below(wideCountsLeftMax);
  const turns = 1 + random.below(4);
  switch (random.below(3)) {
    case 0:
      return drawCounter(random);
    case 1:
      return () => wideCounter(2 ** 32 - 2 - left);
    default: {
      const creates = turns * 2 ** 32 - 2 - left;
      const recorded = creates - 2 ** 30 + random.below(wideCountsLeftMax);
      return (zxid) => [
        ...wideCounter(creates),
        { path: '/zookeeper/sequences', creates: 1 },
        { path: '/zookeeper/sequences/%2Fq', creates: 0, data: `number=${recorded}\nczxid=0x${zxid.toString(16)}\n` },
      ];
    }
  }
}

/** More creates than a signed counter can rise by at once. */
function wideCounter(creates: number): SeedState['znodes'] {
  return [
    { path: '/q', creates },
    { path: '/q/first', creates: 0 },
    { path: '/q/last', creates: 0 },
  ];
}
