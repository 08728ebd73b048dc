/**
 * What zoo.cfg, the dynamic file and myid say about an ensemble, as one value. It checks everything
 * that ZooKeeper's QuorumPeerConfig checks when a server of an ensemble starts, and what
 * QuorumPeerConfig leaves to fail later: two servers on one port, a sid that is not in the list.
 */
import { join } from 'node:path';
import type { LocalSessionMode } from '@tskeeper/core';
import {
  formatHostPort,
  isHierarchical,
  isParticipant,
  isWildcardHost,
  parseQuorumConfig,
  type PeerRole,
  type QuorumConfig,
  QuorumConfigError,
  quorumConfigOf,
  type QuorumServer,
  type Sid,
} from '@tskeeper/protocol';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import { isLoopback } from './loopback.ts';
import type { Setting } from './settings.ts';

/** One server's view of its ensemble. Ticks are multiples of tickTime. */
export interface EnsembleConfig {
  /** This server's number, from the file myid; `quorum` or `lastSeen` contains it. */
  readonly myid: Sid;
  /** As in the list of servers, whatever peerType says. */
  readonly role: PeerRole;
  /**
   * The active configuration. Its version is 0 unless the name of the dynamic file, which a
   * reconfig writes, ends in one.
   */
  readonly quorum: QuorumConfig;
  /**
   * A configuration that the last run received and did not activate; undefined when there is none.
   */
  readonly lastSeen: QuorumConfig | undefined;
  /** zoo.cfg, which a reconfig rewrites. */
  readonly configFile: string;
  /** The file that lists the servers, if that is not zoo.cfg. */
  readonly dynamicConfigFile: string | undefined;
  readonly standaloneEnabled: boolean;
  readonly reconfigEnabled: boolean;
  readonly readOnlyMode: boolean;

  /** Limit for a learner to connect and to be in sync. */
  readonly initLimitTicks: number;
  /** Limit for an answer from a learner that is in sync. */
  readonly syncLimitTicks: number;
  /** Limit for a learner to reach the leader; initLimit unless set. */
  readonly connectToLearnerMasterTicks: number;
  /**
   * How long a new leader waits for a quorum while a voter looks for another leader; undefined:
   * syncLimit.
   */
  readonly maxTimeToWaitForEpochMs: number | undefined;
  readonly leaderConnectDelayDuringRetryMs: number;
  readonly maxUnknownObservers: number;
  readonly leaderPriority: number;

  /** Time limit to connect to an election port. */
  readonly cnxTimeoutMs: number;
  /**
   * Time limit for the first message on a connection to the election port; syncLimit unless set.
   */
  readonly quorumCnxnTimeoutMs: number;
  /** Number of tries to bind the election port; 0: no limit. */
  readonly electionPortBindRetry: number;
  readonly minNotificationIntervalMs: number;
  readonly maxNotificationIntervalMs: number;
  readonly quorumListenOnAllIps: boolean;
  readonly tcpKeepAlive: boolean;
  readonly multiAddressEnabled: boolean;
  /** How long an address may be silent before another is tried as well; undefined: no limit. */
  readonly reachabilityCheckTimeoutMs: number | undefined;

  readonly leaderServes: boolean;
  readonly commitLogCount: number;
  readonly forceSnapshotSync: boolean;
  /** Largest number of concurrent snapshots to learners that do not vote. */
  readonly snapSyncsMax: number;
  /** Largest number of such learners that the log is read for at a time. */
  readonly diffSyncsMax: number;
  /**
   * Logs are sent instead of a snapshot up to this share of the snapshot's size; 0: any size; below
   * 0: logs are never sent.
   */
  readonly snapshotSizeFactor: number;

  /** Whether an observer logs the txns it receives. */
  readonly syncEnabled: boolean;
  readonly observerElectionDelayMs: number;
  readonly observerReconnectDelayMs: number;
  /** The port on which followers accept observers; undefined: they do not. */
  readonly observerMasterPort: number | undefined;
  /** Bytes of committed txns that a server with that port keeps in memory. */
  readonly observerMasterSizeLimitBytes: number;

  readonly localSessions: LocalSessionMode;
  /** The file that decides whether one of two servers may serve alone. */
  readonly oraclePath: string | undefined;
}

/** The lines that name servers, groups and weights, and where they were written. */
export interface QuorumLines {
  readonly lines: ReadonlyMap<string, Setting>;
  /** zoo.cfg. */
  readonly configFile: string;
  readonly dynamicConfigFile: string | undefined;
}

/** Servers with larger numbers cannot number the sessions that own TTL znodes. */
const extendedTypesMyidMax = 254;
/** The smallest number of committed txns that ZooKeeper keeps for learners. */
const commitLogCountMin = 500;
const electionPortBindRetryDefault = 3;
const nextSuffix = '.dynamic.next';

/**
 * The servers, groups and weights as written. Throws a ConfigError for what is impossible, and
 * warns about what is possible but inadvisable.
 */
export function readQuorum(source: QuorumLines, settings: ConfigSettings): QuorumConfig {
  const inFile = source.dynamicConfigFile ?? source.configFile;
  const place = (line: string): string => source.lines.get(line)?.where ?? inFile;
  const written = withLocations(() => quorumConfigOf(source.lines.values()), place);
  checkAddresses(written, place, settings);
  const version = versionOfName(source.dynamicConfigFile);
  if (!Number.isSafeInteger(version)) {
    throw new ConfigError(
      `${settings.where('dynamicConfigFile')}: dynamicConfigFile ends in a version of ${version.toString(16)}, and versions are below 2^53. Give the file another name.`,
    );
  }
  if (settings.text('oraclePath') === '' || !isHierarchical(written)) return { ...written, version };
  settings.warn(settings.where('oraclePath'), 'with oraclePath majorities decide: groups and weights have no effect.');
  return { ...written, version, groups: new Map(), weights: new Map() };
}

/**
 * Whether these servers are an ensemble: more than one of them votes, or standaloneEnabled=false
 * makes a single server one. Throws a ConfigError when they can be neither an ensemble nor a
 * standalone server.
 */
export function isEnsemble({ servers }: QuorumConfig, source: QuorumLines, settings: ConfigSettings): boolean {
  const participants = [...servers.values()].filter(isParticipant).length;
  const where = source.lines.values().next().value?.where ?? settings.where('standaloneEnabled');
  if (!settings.boolean('standaloneEnabled') && participants === 0) {
    throw new ConfigError(
      `${where}: standaloneEnabled=false asks for an ensemble, but no server is a participant. Add a line such as server.1=host:2888:3888.`,
    );
  }
  const observers = servers.size - participants;
  if (observers > 0 && participants === 0) {
    throw new ConfigError(
      `${where}: every server is an observer, and an observer needs participants to observe. Make one or three of them participants.`,
    );
  }
  if (observers > 0 && participants === 1 && settings.boolean('standaloneEnabled')) {
    throw new ConfigError(
      `${where}: one participant alone runs standalone, and ${observers === 1 ? 'the observer has' : 'the observers have'} nothing to observe. Add participants, or set standaloneEnabled=false.`,
    );
  }
  return participants > 1 || !settings.boolean('standaloneEnabled');
}

/** Reads all other settings of a server of an ensemble. `dataDir` is the folder of myid. */
export function readEnsemble(quorum: QuorumConfig, source: QuorumLines, dataDir: string, settings: ConfigSettings): EnsembleConfig {
  const tickTimeMs = settings.int('tickTime');
  const initLimitTicks = limit('initLimit', settings);
  const syncLimitTicks = limit('syncLimit', settings);
  const lastSeen = readLastSeen(source, settings);
  const myid = readMyid(quorum, lastSeen, dataDir, settings);
  const server = serverOf(myid, quorum, lastSeen)!;
  checkPeerType(server, settings);
  warnOfSize(quorum, settings, source);
  const own = (name: string): number | undefined => (settings.int(name) > 0 ? settings.int(name) : undefined);
  const observerMasterPort = own('observerMasterPort');
  if (observerMasterPort !== undefined) {
    checkObserverMasterPort(observerMasterPort, server, settings);
    warnOfObserversWithoutFollower(quorum, settings);
  }
  const config = {
    myid,
    role: server.role,
    quorum,
    lastSeen,
    configFile: source.configFile,
    dynamicConfigFile: source.dynamicConfigFile,
    standaloneEnabled: settings.boolean('standaloneEnabled'),
    reconfigEnabled: settings.boolean('reconfigEnabled'),
    readOnlyMode: settings.boolean('readonlymode.enabled'),
    initLimitTicks,
    syncLimitTicks,
    connectToLearnerMasterTicks: own('connectToLearnerMasterLimit') ?? initLimitTicks,
    maxTimeToWaitForEpochMs: settings.int('leader.maxTimeToWaitForEpoch') === -1 ? undefined : settings.int('leader.maxTimeToWaitForEpoch'),
    leaderConnectDelayDuringRetryMs: settings.int('leaderConnectDelayDuringRetryMs'),
    maxUnknownObservers: settings.int('tskeeper.maxUnknownObservers'),
    leaderPriority: settings.int('tskeeper.leaderPriority'),
    cnxTimeoutMs: settings.int('cnxTimeout'),
    quorumCnxnTimeoutMs: own('quorumCnxnTimeoutMs') ?? syncLimitTicks * tickTimeMs,
    electionPortBindRetry: atLeast('electionPortBindRetry', 0, electionPortBindRetryDefault, settings),
    minNotificationIntervalMs: settings.int('fastleader.minNotificationInterval'),
    maxNotificationIntervalMs: settings.int('fastleader.maxNotificationInterval'),
    quorumListenOnAllIps: settings.boolean('quorumListenOnAllIPs'),
    tcpKeepAlive: settings.boolean('tcpKeepAlive'),
    multiAddressEnabled: settings.boolean('multiAddress.enabled'),
    reachabilityCheckTimeoutMs:
      settings.boolean('multiAddress.enabled') && settings.boolean('multiAddress.reachabilityCheckEnabled')
        ? settings.int('multiAddress.reachabilityCheckTimeoutMs')
        : undefined,
    leaderServes: settings.boolean('leaderServes'),
    commitLogCount: atLeast('commitLogCount', commitLogCountMin, commitLogCountMin, settings),
    forceSnapshotSync: settings.boolean('forceSnapshotSync'),
    snapSyncsMax: settings.int('leader.maxConcurrentSnapSyncs'),
    diffSyncsMax: settings.int('leader.maxConcurrentDiffSyncs'),
    snapshotSizeFactor: settings.real('snapshotSizeFactor'),
    // The property, where it is set, overrides the key of the file, as in ZooKeeper.
    syncEnabled: settings.text('observer.syncEnabled') === '' ? settings.boolean('syncEnabled') : settings.boolean('observer.syncEnabled'),
    observerElectionDelayMs: settings.int('observer.election.DelayMs'),
    observerReconnectDelayMs: settings.int('observer.reconnectDelayMs'),
    observerMasterSizeLimitBytes: settings.int('observerMaster.sizeLimit'),
    observerMasterPort,
    localSessions: localSessionMode(settings),
    oraclePath: settings.text('oraclePath') || undefined,
  };
  if (!config.syncEnabled && config.role !== 'observer') {
    const name = settings.isSet('observer.syncEnabled') ? 'observer.syncEnabled' : 'syncEnabled';
    settings.warn(
      settings.where(name),
      `${name}=false has no effect on server.${myid}, which is a participant: only an observer can do without a log.`,
    );
  }
  const { configFile } = config;
  if (lastSeen !== undefined && lastSeen.version > config.quorum.version && !config.reconfigEnabled) {
    throw new ConfigError(
      `${configFile}${nextSuffix}: a change of the ensemble was under way when this server last stopped. Set reconfigEnabled=true, as on the other servers, so that it can be finished.`,
    );
  }
  return config;
}

/** Adds the place of the line to errors about the text of a configuration. */
function withLocations<T>(read: () => T, place: (line: string) => string): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof QuorumConfigError) throw new ConfigError(`${place(error.line)}: ${error.message}`, { cause: error });
    throw error;
  }
}

/**
 * A reconfig writes dynamic files whose names end in the version, in hexadecimal; other names mean
 * version 0.
 */
function versionOfName(path: string | undefined): number {
  const digits = /\.([0-9a-f]{1,16})$/i.exec(path ?? '')?.[1];
  return digits === undefined ? 0 : Number.parseInt(digits, 16);
}

function readLastSeen({ configFile, dynamicConfigFile }: QuorumLines, settings: ConfigSettings): QuorumConfig | undefined {
  if (dynamicConfigFile === undefined) return undefined;
  const path = configFile + nextSuffix;
  const text = maybeRead(path, settings);
  if (text === undefined) return undefined;
  try {
    return parseQuorumConfig(text);
  } catch (error) {
    if (!(error instanceof QuorumConfigError)) throw error;
    // What it proposed is in the log as well, and ZooKeeper ignores such a file too.
    settings.warn(path, `${error.message} The file is ignored: remove it once this server follows a leader.`);
    return undefined;
  }
}

/** The text of a file; undefined if it does not exist. */
function maybeRead(path: string, settings: ConfigSettings): string | undefined {
  try {
    return settings.readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    // A folder of that name counts as no file of that name, as in ZooKeeper.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return undefined;
    throw new ConfigError(`${path}: the file cannot be read (${code}). Let this user read it.`, { cause: error });
  }
}

function limit(name: string, settings: ConfigSettings): number {
  const ticks = settings.maybeInt(name);
  if (ticks !== undefined && ticks > 0) return ticks;
  const example = name === 'initLimit' ? 10 : 5;
  throw new ConfigError(
    `${settings.where(name)}: ${name} is not set, and an ensemble needs it. Add a line such as ${name}=${example}, in ticks.`,
  );
}

/** Whether local sessions may become global matters only where there are any. */
function localSessionMode(settings: ConfigSettings): LocalSessionMode {
  if (!settings.boolean('localSessionsEnabled')) return 'disabled';
  return settings.boolean('localSessionsUpgradingEnabled') ? 'upgradable' : 'enabled';
}

/** A number that ZooKeeper replaces when it is too small. */
function atLeast(name: string, least: number, otherwise: number, settings: ConfigSettings): number {
  const value = settings.int(name);
  if (value >= least) return value;
  settings.warn(settings.where(name), `${name} must be at least ${least}; using ${otherwise}.`);
  return otherwise;
}

/**
 * The line of a server; undefined if it has none. A server that a pending change adds may be needed to
 * complete it.
 */
export function serverOf(myid: Sid, quorum: QuorumConfig, lastSeen: QuorumConfig | undefined): QuorumServer | undefined {
  return quorum.servers.get(myid) ?? lastSeen?.servers.get(myid);
}

function readMyid(quorum: QuorumConfig, lastSeen: QuorumConfig | undefined, dataDir: string, settings: ConfigSettings): Sid {
  const path = join(dataDir, 'myid');
  const text = maybeRead(path, settings);
  const listed = [...quorum.servers.keys()].join(', ');
  if (text === undefined) {
    throw new ConfigError(
      `${path}: the file is missing, and a server of an ensemble needs it to know its number. Write this server's number into it: one of ${listed}.`,
    );
  }
  const line = (text.split(/\r?\n/)[0] ?? '').trim();
  const myid = /^\+?\d{1,15}$/.test(line) ? Number(line) : Number.NaN;
  if (Number.isNaN(myid)) {
    throw new ConfigError(`${path}: the first line must be this server's number in decimal digits, one of ${listed}, not "${line}".`);
  }
  if (serverOf(myid, quorum, lastSeen) === undefined) {
    throw new ConfigError(
      `${path}: this server is number ${myid}, and there is no line server.${myid} in ${listedIn(settings)}. Add the line, or write one of ${listed} into the file.`,
    );
  }
  if (myid > extendedTypesMyidMax && settings.boolean('extendedTypesEnabled')) {
    throw new ConfigError(
      `${path}: with extendedTypesEnabled=true the number of a server is at most ${extendedTypesMyidMax}, not ${myid}. Choose another number.`,
    );
  }
  return myid;
}

/** The file that lists the servers. */
function listedIn(settings: ConfigSettings): string {
  return settings.text('dynamicConfigFile') || settings.where('server.*').replace(/:\d+$/, '');
}

/** The list applies, as in ZooKeeper. */
function checkPeerType({ sid, role }: QuorumServer, settings: ConfigSettings): void {
  const said = settings.text('peerType').toLowerCase();
  if (said === role || !settings.isSet('peerType')) return;
  settings.warn(
    settings.where('peerType'),
    `peerType is ${said}, and the line of server.${sid} makes it ${role === 'observer' ? 'an' : 'a'} ${role}; the line applies.`,
  );
}

function warnOfSize({ servers }: QuorumConfig, settings: ConfigSettings, source: QuorumLines): void {
  const participants = [...servers.values()].filter(isParticipant).length;
  const where = source.lines.values().next().value!.where;
  if (participants <= 2) {
    const many = participants === 1 ? 'one participant' : 'two participants';
    settings.warn(where, `an ensemble of ${many} stops serving when one server fails. Use at least three.`);
  } else if (participants % 2 === 0) {
    settings.warn(where, `${participants} participants tolerate no more failures than ${participants - 1}. Use an odd number.`);
  }
}

/**
 * Finds mistakes that would show later as a port in use, or as two servers mistaken for each other.
 */
function checkAddresses(quorum: QuorumConfig, place: (line: string) => string, settings: ConfigSettings): void {
  const users = new Map<string, string>();
  const claim = (sid: Sid, host: string, port: number, what: string): void => {
    if (port === 0 || isWildcardHost(host)) return;
    const address = `${host.toLowerCase()}:${port}`;
    const user = `the ${what} port of server.${sid}`;
    const other = users.get(address);
    if (other !== undefined) {
      const line = `server.${sid}`;
      throw new ConfigError(
        `${place(line)}: ${user} is ${formatHostPort({ host, port })}, which is ${other} already. Give one of them another port.`,
      );
    }
    users.set(address, user);
  };
  for (const { sid, addresses, clientAddress } of quorum.servers.values()) {
    if (addresses.length > 1 && !settings.boolean('multiAddress.enabled')) {
      throw new ConfigError(
        `${place(`server.${sid}`)}: server.${sid} has ${addresses.length} addresses, and multiAddress.enabled is false. Keep one address, or set multiAddress.enabled=true on all servers.`,
      );
    }
    for (const { host, quorumPort, electionPort } of addresses) {
      claim(sid, host, quorumPort, 'quorum');
      claim(sid, host, electionPort, 'election');
    }
    if (clientAddress === undefined) continue;
    // A loopback address in the line of another server means another machine.
    if (!isLoopback(clientAddress.host)) claim(sid, clientAddress.host, clientAddress.port, 'client');
    const own = addresses.find(({ quorumPort, electionPort }) => [quorumPort, electionPort].includes(clientAddress.port));
    if (own !== undefined && clientAddress.port !== 0 && (isWildcardHost(clientAddress.host) || clientAddress.host === own.host)) {
      throw new ConfigError(
        `${place(`server.${sid}`)}: server.${sid} uses port ${clientAddress.port} for clients and for other servers. Give one of them another port.`,
      );
    }
  }
}

/** Followers accept observers, and one voter alone has none. */
function warnOfObserversWithoutFollower({ servers }: QuorumConfig, settings: ConfigSettings): void {
  const participants = [...servers.values()].filter(isParticipant).length;
  if (participants > 1 || participants === servers.size) return;
  settings.warn(
    settings.where('observerMasterPort'),
    'with observerMasterPort observers learn from followers, and one participant alone has none, so its observers never serve. Remove the setting, or add participants.',
  );
}

function checkObserverMasterPort(port: number, { sid, addresses, clientAddress }: QuorumServer, settings: ConfigSettings): void {
  const taken = [clientAddress?.port, ...addresses.flatMap(({ quorumPort, electionPort }) => [quorumPort, electionPort])];
  if (!taken.includes(port)) return;
  throw new ConfigError(
    `${settings.where('observerMasterPort')}: observerMasterPort is ${port}, which the line of server.${sid} uses already. Give one of them another port.`,
  );
}
