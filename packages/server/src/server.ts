import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIPv6 } from 'node:net';
import { basename, resolve } from 'node:path';
import type { CoreOptions, Inspector } from '@tskeeper/core';
import { formatHostPort, type SessionId, type Sid } from '@tskeeper/protocol';
import {
  type Clock,
  type Disk,
  type Logger,
  type EnsembleOptions,
  type MemoryProbe,
  type Network,
  type Runtime,
  type RuntimeHooks,
  ownAddresses,
  type RuntimeOptions,
  silentLogger,
  type World,
} from '@tskeeper/runtime';
import { RateLimitedLog } from '@tskeeper/runtime/internal';
import { PluginProvider } from './auth-plugin.ts';
import { ConfigError } from './config/config-error.ts';
import { ensembleOptionsOf } from './config/ensemble-options.ts';
import type { ConfigFile, ConfigSources, ReadFile } from './config/config-sources.ts';
import { resolveConfig, type ServerConfig } from './config/server-config.ts';
import { exposedPorts, exposedSentence } from './exposed-ports.ts';
import { FsDisk } from './fs-disk.ts';
import { hostFacts, ownVersion, zookeeperRelease } from './host-facts.ts';
import { loggerThatNeverThrows } from './log.ts';
import { memoryProbe } from './memory-probe.ts';
import { fileOracle } from './oracle-file.ts';
import { formatEndpoint, NetNetwork } from './net-network.ts';
import { snappy } from './snappy.ts';
import { SystemClock } from './system-clock.ts';
import { SystemRandom } from './system-random.ts';

/**
 * Options of `startServer`. Without any: a standalone server on 127.0.0.1:2181 with data in ./data.
 */
export interface ServerOptions {
  /** Path of a zoo.cfg. Default: none, and 127.0.0.1, port 2181, data in ./data. */
  readonly configFile?: string | undefined;
  /** Overrides zoo.cfg, for transaction logs as well. Default: as in zoo.cfg. */
  readonly dataDir?: string | undefined;
  /** Overrides zoo.cfg; 0 for any free port. Default: as in zoo.cfg. */
  readonly clientPort?: number | undefined;
  /** Overrides zoo.cfg. Default: as in zoo.cfg. */
  readonly clientAddress?: string | undefined;
  /** `name=value` each, as with -D on Java's command line. Default: none. */
  readonly definitions?: readonly string[] | undefined;
  /** Variables that may hold JVMFLAGS and SERVER_JVMFLAGS. Default: none. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Default: nothing is logged. */
  readonly logger?: Logger | undefined;
}

/** A running server. */
export interface Server extends AsyncDisposable {
  /** The address for a client on this machine. */
  readonly connectString: string;
  /** The folder of its data. */
  readonly dataDir: string;
  /** The server's view of itself: sessions, connections, watches, znodes, zxids. */
  readonly inspect: Inspector;
  /**
   * Ends a session as if it had expired. Resolves when its ephemerals are deleted, with false when
   * there was no such session or it was already ending. Rejects when the server closes before that.
   */
  expireSession(session: SessionId): Promise<boolean>;
  /**
   * Gives the lead of the ensemble to another server: `target`, or by default the follower with the
   * highest priority. Clients' writes wait for it a few milliseconds; then all clients of the
   * ensemble reconnect. Sessions live on, except local ones, which end. Resolves with the sid of
   * that server when it leads. Rejects with a sentence when this server does not lead, when the
   * target cannot take over or does not within half of syncLimit, or when this server has known no
   * leader for initLimit plus syncLimit.
   */
  transferLeadership(target?: Sid): Promise<Sid>;
  /**
   * Closes a share of this server's client connections, from 0 to 1, so that their clients connect
   * to other servers: in random order, about 500 a second, each after the replies that it waits for.
   * Sessions live on, except local ones, which end at another server. Resolves with the number of
   * connections, before they are closed. Rejects with a RangeError for another share, and with an
   * Error when this server serves no clients.
   */
  shedConnections(share: number): Promise<number>;
  /** Resolves after `close`; rejects when the server has failed and the process should end. */
  readonly ended: Promise<void>;
  /** Stops accepting, makes everything acknowledged durable, and releases the data folder. */
  close(): Promise<void>;
}

export type StartRuntime = (
  world: World,
  core: CoreOptions,
  runtime: RuntimeOptions,
  hooks: RuntimeHooks,
  member?: EnsembleOptions,
) => Promise<Runtime>;

/** Replacements for parts of the real world: for tests. */
export interface ServerEnvironment {
  readonly disk?: Disk | undefined;
  /** Wraps the network of this machine. */
  readonly network?: ((real: Network) => Network) | undefined;
  /** Replaces the clock of this machine. */
  readonly clock?: Clock | undefined;
  /** Wraps the memory figures. */
  readonly memory?: ((real: MemoryProbe) => MemoryProbe) | undefined;
  /** Replaces the configuration file. */
  readonly config?: ConfigFile | undefined;
  /** Replaces the file myid. Throws as readFileSync. */
  readonly readMyid?: ((path: string) => string) | undefined;
}

/** Builds the real world from the options and starts a runtime in it. */
export async function startServerWith(
  startRuntime: StartRuntime,
  options: ServerOptions,
  environment: ServerEnvironment = {},
): Promise<Server> {
  const config = resolveConfig(sourcesOf(options, environment));
  const logger = loggerThatNeverThrows(withSid(config.ensemble?.myid, options.logger ?? silentLogger));
  const member = config.ensemble === undefined ? undefined : ensembleOptionsOf(config.ensemble, config.core.tickTimeMs, options.configFile);
  logStart(config, member, environment.config?.name ?? options.configFile, logger);
  for (const warning of config.warnings) logger.warn(warning, { event: 'config.warning', reason: warning });
  const addresses =
    member === undefined ? undefined : ownAddresses(member.quorum, member.zab.sid, member.listensOnAllIps, member.observerMasterPort);
  const exposed = addresses === undefined ? [] : exposedPorts(addresses);
  if (exposed.length > 0) logger.warn(exposedSentence(exposed), { event: 'server.exposed', addresses: exposed });
  for (const notice of config.notices) logger.info(notice, { event: 'config.no-effect', reason: notice });

  const clock = environment.clock ?? new SystemClock(timerErrorLogger(logger));
  const disk = environment.disk ?? new FsDisk(clock);
  if (!disk.canSyncFolders) {
    const reason = 'this system cannot sync folders: a file created or renamed shortly before a loss of power may be missing after it';
    logger.warn(`${reason}.`, { event: 'server.unsafe', reason });
  }
  const network = new NetNetwork({ logger, keepAlive: config.clientTcpKeepAlive, serverKeepAlive: config.ensemble?.tcpKeepAlive ?? false });
  const world: World = {
    disk,
    network: environment.network?.(network) ?? network,
    clock,
    random: new SystemRandom(),
  };
  const runtimeOptions: RuntimeOptions = {
    ...config.runtime,
    dataDir: resolve(config.runtime.dataDir),
    dataLogDir: resolve(config.runtime.dataLogDir),
  };
  const end = new EndSignal();
  const memory = memoryProbe({ processBytes: config.memoryLimitBytes });
  const hooks: RuntimeHooks = {
    logger,
    snappy,
    host: hostFacts,
    memory: environment.memory?.(memory) ?? memory,
    oracle: config.ensemble?.oraclePath === undefined ? undefined : fileOracle(config.ensemble.oraclePath, logger),
    failed: (error) => end.fail(error),
  };
  const runtime = await startRuntime(world, config.core, runtimeOptions, hooks, member);
  for (const provider of config.core.authProviders) if (provider instanceof PluginProvider) provider.serve(runtime, logger);
  return new RunningServer(runtime, runtimeOptions.dataDir, end);
}

/** The first line: what starts, and with which settings. */
function logStart(config: ServerConfig, member: EnsembleOptions | undefined, configFile: string | undefined, logger: Logger): void {
  const { runtime, changed } = config;
  const dataDir = resolve(runtime.dataDir);
  const dataLogDir = resolve(runtime.dataLogDir);
  const clientAddress = formatEndpoint({ address: runtime.clientPortAddress ?? '0.0.0.0', port: runtime.clientPort });
  const { quorum, zab, listensOnAllIps } = member ?? {};
  const electionAddresses = quorum && ownAddresses(quorum, zab!.sid, listensOnAllIps!)?.election.map(formatHostPort);
  const role = quorum === undefined ? 'standalone' : (quorum.servers.get(zab!.sid)?.role ?? 'participant');
  const settings = Object.entries(changed).map(([name, value]) => `${name}=${value}`);
  logger.info(
    [
      `tskeeper ${ownVersion} (as ZooKeeper ${zookeeperRelease}) on Node ${process.version}, process ${process.pid}: ` +
        (member === undefined ? role : `server ${member.zab.sid}, ${role}`),
      `clients at ${clientAddress}`,
      ...(electionAddresses === undefined ? [] : [`votes at ${electionAddresses.join(' and ')}`]),
      `data in ${dataDir}${dataLogDir === dataDir ? '' : `, transaction logs in ${dataLogDir}`}`,
      settings.length === 0 ? 'all settings at their defaults' : `settings that differ from their defaults: ${settings.join(', ')}`,
    ].join('; '),
    {
      event: 'server.starting',
      version: ownVersion,
      zookeeperVersion: zookeeperRelease,
      nodeVersion: process.version,
      role,
      dataDir,
      dataLogDir,
      clientAddress,
      electionAddresses,
      configFile,
      settings: changed,
    },
  );
}

/** Logs what the system refuses to timers, within the limits of the log. */
function timerErrorLogger(logger: Logger): (error: Error) => void {
  const limited = new RateLimitedLog(logger);
  return ({ message }) =>
    limited.warn(performance.now(), `the system refused a call of a timer (${message}); the server continues`, {
      event: 'timer.refused',
      reason: message,
    });
}

/** Adds the number of a server of an ensemble to each line. */
function withSid(sid: number | undefined, logger: Logger): Logger {
  if (sid === undefined) return logger;
  return {
    debug: (message, fields) => logger.debug(message, { sid, ...fields }),
    info: (message, fields) => logger.info(message, { sid, ...fields }),
    warn: (message, fields) => logger.warn(message, { sid, ...fields }),
    error: (message, fields) => logger.error(message, { sid, ...fields }),
  };
}

class RunningServer implements Server {
  readonly connectString: string;
  readonly dataDir: string;
  readonly #runtime: Runtime;
  readonly #end: EndSignal;
  #closing: Promise<void> | undefined;

  constructor(runtime: Runtime, dataDir: string, end: EndSignal) {
    this.#runtime = runtime;
    this.#end = end;
    this.dataDir = dataDir;
    const { address, port } = runtime.clientEndpoint;
    const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
    this.connectString = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  }

  get inspect(): Inspector {
    return this.#runtime.inspect;
  }

  get ended(): Promise<void> {
    return this.#end.promise;
  }

  expireSession(session: SessionId): Promise<boolean> {
    return this.#runtime.expireSession(session);
  }

  transferLeadership(target?: Sid): Promise<Sid> {
    return this.#runtime.transferLeadership(target);
  }

  shedConnections(share: number): Promise<number> {
    return this.#runtime.shedConnections(share);
  }

  async close(): Promise<void> {
    this.#closing ??= this.#runtime.close().then(
      () => this.#end.succeed(),
      (error: unknown) => {
        this.#end.fail(error);
        throw error;
      },
    );
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** How a server ended, reported once. */
class EndSignal {
  readonly promise: Promise<void>;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise((resolveEnd, rejectEnd) => {
      this.#resolve = resolveEnd;
      this.#reject = rejectEnd;
    });
    // A caller may ignore this promise: one that only calls `close` gets the failure there.
    this.promise.catch(() => undefined);
  }

  succeed(): void {
    this.#resolve();
  }

  fail(error: unknown): void {
    this.#reject(error);
  }
}

function sourcesOf(options: ServerOptions, { config, readMyid, disk }: ServerEnvironment): ConfigSources {
  const sources = withDefaults(options);
  const { readFile } = sources;
  const readFileOrMyid: ReadFile = (path, encoding) =>
    readMyid !== undefined && basename(path) === 'myid' ? readMyid(path) : readFile(path, encoding);
  // Files of another disk are not visible here.
  const isFile = disk === undefined ? isFileOnDisk : undefined;
  return { ...sources, readFile: readFileOrMyid, isFile, ...(config === undefined ? {} : { file: config }) };
}

function withDefaults(options: ServerOptions): ConfigSources & { readonly readFile: ReadFile } {
  const { configFile, dataDir, clientPort, clientAddress, definitions, environment } = options;
  const readText: ReadFile = (path, encoding = 'latin1') => readFileSync(path, encoding);
  const loadModule = createRequire(resolve(configFile ?? 'zoo.cfg'));
  const shared = { definitions, environment, readFile: readText, loadModule };
  if (configFile !== undefined) return { ...shared, file: readConfigFile(configFile, readText), dataDir, clientPort, clientAddress };
  return { ...shared, dataDir: dataDir ?? 'data', clientPort: clientPort ?? 2181, clientAddress: clientAddress ?? '127.0.0.1' };
}

function isFileOnDisk(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
  } catch {
    // What cannot be examined shows when the folder is used.
    return false;
  }
}

/**
 * A Java properties file is Latin-1, whatever the locale: the same bytes must name the same folder
 * as under ZooKeeper.
 */
function readConfigFile(path: string, readText: (path: string) => string): ConfigFile {
  try {
    return { name: path, text: readText(path) };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new ConfigError(`${path}: the configuration cannot be read (${code}). Give the path of an existing zoo.cfg.`, { cause: error });
  }
}
