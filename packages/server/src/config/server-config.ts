import { isIP } from 'node:net';
import { dirname } from 'node:path';
import { coreDefaults, type CoreOptions } from '@tskeeper/core';
import { digestAlgorithmDefault, type HostPort, isDigestAlgorithm, type QuorumServer } from '@tskeeper/protocol';
import { runtimeDefaults, type RuntimeOptions } from '@tskeeper/runtime';
import { fourLetterWords } from '@tskeeper/runtime/internal';
import { ConfigError } from './config-error.ts';
import { type ConfigKey, findKey, jvmProperty, nearestKey } from './config-keys.ts';
import { type EnsembleConfig, isEnsemble, type SettingsLookup, readEnsemble, readQuorum, type QuorumLines } from './ensemble-config.ts';
import { parseDefinition, parseJavaFlags, parseProperties, type Setting } from './settings.ts';

/** The configuration as written, from all places. */
export interface ConfigSources {
  /** zoo.cfg: its name, for messages, and its text. */
  readonly file?: ConfigFile | undefined;
  /** `name=value`, from -D on the command line. */
  readonly definitions?: readonly string[] | undefined;
  /** The variables JVMFLAGS and SERVER_JVMFLAGS are read. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** From the command line or a program; they override zoo.cfg. */
  readonly dataDir?: string | undefined;
  readonly clientPort?: number | undefined;
  readonly clientAddress?: string | undefined;
  /**
   * Reads the file that `dynamicConfigFile` names, the file next to zoo.cfg that a reconfig leaves,
   * and myid. Throws as readFileSync.
   */
  readonly readFile?: ((path: string) => string) | undefined;
  /** Whether a file, or anything that is not a folder, has this name. Default: no. */
  readonly isFile?: ((path: string) => boolean) | undefined;
}

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
}

export interface ServerConfig {
  readonly core: CoreOptions;
  readonly runtime: RuntimeOptions;
  /** Undefined for a standalone server. */
  readonly ensemble: EnsembleConfig | undefined;
  readonly clientTcpKeepAlive: boolean;
  /** Limit of memory for the process, in bytes; undefined: that of the container or the machine. */
  readonly memoryLimitBytes: number | undefined;
  /** Sentences for the operator: what is ignored, unknown or unsafe. */
  readonly warnings: readonly string[];
  /** Keys accepted without effect. */
  readonly notices: readonly string[];
  /** Settings that differ from their defaults, by key, as written; secrets are masked. */
  readonly changed: Readonly<Record<string, string>>;
}

/** Keys whose values must not be logged. */
const secret = /digest$|password|passwd|secret/i;
/** Commands of the Java server that are not four letter words. */
const javaOnlyWords = ['telnet close'];
/** ZooKeeper's purge keeps at least this many, whatever is configured. */
const snapshotsKeptMin = 3;
/** Room in addition to a frame that ZooKeeper grants at least. */
const juteExtraMin = 1024;
const hourMs = 3_600_000;
/** Ordinary requests are longer than this. */
const juteMaxBufferUsualMin = 1024;
/**
 * Keys whose value is a path, and what is at that path. A Java properties file has no quotes: they
 * would be part of the name.
 */
const pathKeys: ReadonlyMap<string, string> = new Map([
  ['dataDir', 'folder'],
  ['dataLogDir', 'folder'],
  ['dynamicConfigFile', 'file'],
  ['oraclePath', 'file'],
]);
/** Families whose keys name one server or group each. */
const quorumFamilies: readonly string[] = ['server.*', 'group.*', 'weight.*'];

/** Turns sources into options. Throws `ConfigError` for anything that must not be guessed. */
export function resolveConfig(sources: ConfigSources): ServerConfig {
  return new Resolver(sources).resolve();
}

class Resolver {
  readonly #sources: ConfigSources;
  readonly #settings = new Map<string, Setting>();
  /** Lines that name servers, groups and weights. */
  readonly #quorumLines = new Map<string, Setting>();
  /** Settings that only an ensemble uses. */
  readonly #ensembleSettings: Setting[] = [];
  readonly #warnings: string[] = [];
  readonly #notices: string[] = [];

  constructor(sources: ConfigSources) {
    this.#sources = sources;
  }

  resolve(): ServerConfig {
    // In ZooKeeper the command line sets properties first and zoo.cfg sets them again, so the file
    // overrides the command line.
    for (const setting of this.#definitions()) this.#applyProperty(setting);
    const { file } = this.#sources;
    if (file !== undefined) this.#applyFile(file);
    const dataDir = this.#dataDir();
    const dataLogDir = this.#sources.dataDir === undefined ? this.#text('dataLogDir') || dataDir : dataDir;
    this.#checkFolder('dataDir', dataDir);
    if (dataLogDir !== dataDir) this.#checkFolder('dataLogDir', dataLogDir);
    const { ensemble, server } = this.#servers(dataDir);

    const tickTimeMs = this.#int('tickTime');
    const [minSessionTimeoutMs, maxSessionTimeoutMs] = this.#sessionTimeouts(tickTimeMs);
    const juteMaxBuffer = this.#juteMaxBuffer();
    const core: CoreOptions = {
      // In ZooKeeper too a standalone server is number 1, whatever myid says.
      serverId: ensemble?.myid ?? 1,
      tickTimeMs,
      minSessionTimeoutMs,
      maxSessionTimeoutMs,
      juteMaxBuffer,
      juteMaxBufferExtra: Math.max(juteExtraMin, this.#maybeInt('jute.maxbuffer.extrasize') ?? juteMaxBuffer),
      extendedTypesEnabled: this.#boolean('extendedTypesEnabled'),
      emulate353TtlNodes: this.#boolean('emulate353TTLNodes'),
      enforceQuota: this.#boolean('enforceQuota'),
      skipAcl: this.#boolean('skipACL'),
      digestAuthEnabled: this.#boolean('DigestAuthenticationProvider.enabled'),
      superDigest: this.#superDigest(),
      digestAlgorithm: this.#digestAlgorithm(),
      treeDigestEnabled: this.#boolean('digest.enabled'),
      closeSessionTxnEnabled: this.#boolean('closeSessionTxn.enabled'),
      reconfigEnabled: this.#boolean('reconfigEnabled'),
      containerCheckIntervalMs: this.#int('znode.container.checkIntervalMs'),
      containerMaxPerMinute: this.#int('znode.container.maxPerMinute'),
      containerMaxNeverUsedIntervalMs: this.#int('znode.container.maxNeverUsedIntervalMs'),
      globalOutstandingLimit: this.#int('globalOutstandingLimit'),
      inFlightBytesMax: coreDefaults.inFlightBytesMax,
      watchesPerCnxnMax: coreDefaults.watchesPerCnxnMax,
      identitiesPerCnxnMax: coreDefaults.identitiesPerCnxnMax,
      identityBytesPerCnxnMax: coreDefaults.identityBytesPerCnxnMax,
      identityBytesPerAddressMax: coreDefaults.identityBytesPerAddressMax,
      exemptIdentityBytes: coreDefaults.exemptIdentityBytes,
      shortAclEntriesMax: coreDefaults.shortAclEntriesMax,
      stepUnits: coreDefaults.stepUnits,
      requestThrottleLimit: this.#int('request_throttle_max_requests'),
      requestThrottleStallMs: this.#int('request_throttle_stall_time'),
      requestThrottleDropStale: this.#boolean('request_throttle_drop_stale'),
      throttledOpWaitMs: this.#int('throttled_op_wait_time'),
      enforcedAuthSchemes: this.#enforcedAuthSchemes(),
      authProviders: [],
    };

    const runtime: RuntimeOptions = {
      unsafe: this.#unsafe(),
      dataDir,
      dataLogDir,
      dataDirAutocreate: this.#boolean('datadir.autocreate'),
      dbAutocreate: this.#boolean('db.autocreate'),
      snapshotTrustEmpty: this.#boolean('snapshot.trust.empty'),
      snapCount: this.#int('snapCount'),
      snapSizeLimitBytes: Math.max(0, this.#int('snapSizeLimitInKb')) * 1024,
      txnLogSizeLimitBytes: Math.max(0, this.#int('txnLogSizeLimitInKb')) * 1024,
      preAllocSizeBytes: this.#int('preAllocSize') * 1024,
      forceSync: this.#boolean('forceSync'),
      fsyncWarningThresholdMs: this.#int('fsync.warningthresholdms'),
      flushDelayMs: this.#int('flushDelay'),
      maxWriteQueuePollMs: this.#maybeInt('maxWriteQueuePollTime') ?? Math.floor(this.#int('flushDelay') / 3),
      maxBatchSize: this.#int('maxBatchSize'),
      snapshotCompression: this.#snapshotCompression(),
      serializeLastProcessedZxid: this.#boolean('serializeLastProcessedZxid.enabled'),
      snapRetainCount: this.#snapRetainCount(),
      purgeIntervalMs: this.#int('autopurge.purgeInterval') * hourMs,
      ...this.#clientEndpoint(server),
      clientPortListenBacklog: minusOneIsDefault(this.#int('clientPortListenBacklog')),
      maxClientCnxns: this.#int('maxClientCnxns'),
      maxCnxns: this.#int('maxCnxns'),
      fourLetterWords: this.#fourLetterWords(),
      sessionlessTimeoutMs: this.#int('nio.sessionlessCnxnTimeout'),
      largeRequestThreshold: this.#int('largeRequestThreshold'),
      largeRequestMaxBytes: this.#int('largeRequestMaxBytes'),
      heldBytesMax: runtimeDefaults.heldBytesMax,
      connectionThrottle: {
        tokens: this.#int('connection_throttle_tokens'),
        fillTimeMs: this.#int('connection_throttle_fill_time'),
        fillCount: this.#int('connection_throttle_fill_count'),
        freezeTimeMs: this.#int('connection_throttle_freeze_time'),
        dropIncrease: this.#real('connection_throttle_drop_increase'),
        dropDecrease: this.#real('connection_throttle_drop_decrease'),
        decreaseRatio: this.#real('connection_throttle_decrease_ratio'),
        weightEnabled: this.#boolean('connection_throttle_weight_enabled'),
        ...this.#sessionWeights(),
      },
    };
    return {
      core,
      runtime,
      ensemble,
      clientTcpKeepAlive: this.#boolean('clientTcpKeepAlive'),
      memoryLimitBytes: this.#memoryLimitBytes(),
      warnings: this.#warnings,
      notices: this.#notices,
      changed: this.#changed(ensemble !== undefined),
    };
  }

  #changed(isInEnsemble: boolean): Record<string, string> {
    const changed: Record<string, string> = {};
    const settings = [...this.#settings.values(), ...this.#quorumLines.values()];
    for (const setting of settings) {
      const { name, value } = setting;
      // A standalone server has notices about these.
      if (!isInEnsemble && this.#ensembleSettings.includes(setting)) continue;
      const byDefault = findKey(name, ['file', 'property', 'bare', 'either'])?.default;
      if (value !== '' && value !== byDefault) changed[name] = secret.test(name) ? '(masked)' : value;
    }
    return changed;
  }

  // Reading the sources.

  #definitions(): Setting[] {
    const environment = this.#sources.environment ?? {};
    const settings: Setting[] = [];
    // zkServer.sh puts SERVER_JVMFLAGS before JVMFLAGS, and of two -D settings with the same name
    // Java uses the later one.
    for (const variable of ['SERVER_JVMFLAGS', 'JVMFLAGS']) {
      const { properties, others } = parseJavaFlags(environment[variable] ?? '', variable);
      settings.push(...properties);
      if (others.length > 0)
        this.#notices.push(`${variable}: ${others.join(' ')} is accepted and has no effect: it is for the Java virtual machine.`);
    }
    return [...settings, ...(this.#sources.definitions ?? []).map((definition) => parseDefinition(definition))];
  }

  #applyProperty(setting: Setting): void {
    const { name, where } = setting;
    if (name.startsWith('zookeeper.')) {
      const short = name.slice('zookeeper.'.length);
      const key = findKey(short, ['property', 'either']);
      if (key !== undefined) return this.#apply(key, { ...setting, name: short });
      const elsewhere = findKey(short, ['file', 'bare']);
      if (elsewhere?.source === 'file') return this.#warn(where, `${short} can be set in zoo.cfg only; this setting has no effect.`);
      if (elsewhere !== undefined)
        return this.#warn(where, `${short} is read without the prefix; write -D${short}. This setting has no effect.`);
      return this.#unknown(setting);
    }
    const key = findKey(name, ['bare', 'either']);
    if (key !== undefined) return this.#apply(key, setting);
    if (jvmProperty.test(name)) return this.#notice(where, name, 'it is for the Java virtual machine');
    if (findKey(name, ['property']) !== undefined) {
      return this.#warn(where, `${name} is read with a prefix; write -Dzookeeper.${name}. This setting has no effect.`);
    }
    if (findKey(name, ['file']) !== undefined) return this.#warn(where, `${name} can be set in zoo.cfg only; this setting has no effect.`);
    this.#unknown(setting);
  }

  #applyFile(file: ConfigFile): void {
    for (const setting of this.#lastOfEach(parseProperties(file.text, file.name))) {
      const { name, where } = setting;
      const key = findKey(name, ['file', 'property', 'either']);
      if (key !== undefined) this.#apply(key, setting);
      else if (findKey(name, ['bare']) !== undefined) {
        this.#warn(where, `${name} cannot be set in zoo.cfg, as in ZooKeeper; pass -D${name}=${setting.value}. This line has no effect.`);
      } else this.#unknown(setting);
    }
  }

  #lastOfEach(settings: readonly Setting[]): Setting[] {
    const last = new Map(settings.map((setting) => [setting.name, setting]));
    return settings.filter((setting) => {
      const counts = last.get(setting.name)!;
      if (counts === setting) return true;
      const family = findKey(setting.name, ['file'])?.name ?? '';
      // A server left out of the list by mistake would not be part of any quorum.
      if (quorumFamilies.includes(family) && counts.value !== setting.value) {
        throw new ConfigError(
          `${counts.where}: ${setting.name} has another value at ${setting.where}. Keep one of the lines; each server has a number of its own.`,
        );
      }
      this.#warn(setting.where, `${setting.name} is set again at ${counts.where}; the last one applies.`);
      return false;
    });
  }

  #apply(key: ConfigKey, setting: Setting): void {
    this.#check(key, setting);
    const { name, value, where } = setting;
    const isInert = value === '' || (key.inertValues?.includes(key.value === 'boolean' ? value.toLowerCase() : value) ?? false);
    switch (key.status) {
      case 'stops':
        if (isInert) return;
        throw new ConfigError(
          `${where}: ${name} asks for ${key.reason}, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.`,
        );
      case 'warns':
        if (!isInert) this.#warn(where, `${name} asks for ${key.reason}, which this version does not support yet; it has no effect.`);
        return;
      case 'no effect':
        this.#notice(where, name, key.reason!);
        return;
      case 'ensemble':
      case 'built': {
        if (key.status === 'ensemble') this.#ensembleSettings.push(setting);
        if (quorumFamilies.includes(key.name)) {
          this.#quorumLines.set(name, setting);
          return;
        }
        const earlier = this.#settings.get(name);
        if (earlier !== undefined && earlier.value !== value) this.#warn(earlier.where, `overridden by ${where}.`);
        this.#settings.set(name, setting);
      }
    }
  }

  #unknown({ name, where }: Setting): void {
    const nearest = nearestKey(name);
    this.#warn(where, `${name} is not a known key; it has no effect.${nearest === undefined ? '' : ` Did you mean ${nearest}?`}`);
  }

  #warn(where: string, sentence: string): void {
    this.#warnings.push(`${where}: ${sentence}`);
  }

  #notice(where: string, name: string, because: string): void {
    this.#notices.push(`${where}: ${name} is accepted and has no effect: ${because}.`);
  }

  // Reading values.

  #check(key: ConfigKey, setting: Setting): void {
    if (key.name.endsWith('.*')) return;
    const kind = pathKeys.get(key.name);
    const unquoted = /^(["'])(.*)\1$/.exec(setting.value)?.[2];
    if (kind !== undefined && unquoted !== undefined) {
      throw new ConfigError(
        `${setting.where}: the value of ${key.name} is in quotes, which would be part of the name of the ${kind}. Write ${key.name}=${unquoted}.`,
      );
    }
    if (key.value === 'boolean') readBoolean(setting);
    else if (key.value === 'yes or no') readYesNo(setting);
    // An empty value of a number means that it is not set.
    else if (typeof key.value === 'object' && setting.value !== '') {
      if ('real' in key.value) readReal(setting, key.value.min);
      else readInteger(setting, key.value, key.source);
    }
  }

  /** The setting, or the key's default as if it were set. */
  #setting(name: string): { key: ConfigKey; setting: Setting } {
    const key = findKey(name, ['file', 'property', 'bare', 'either']);
    if (key === undefined) throw new Error(`${name} is not in the table of keys`);
    return { key, setting: this.#settings.get(name) ?? { name, value: key.default, where: 'default' } };
  }

  #text(name: string): string {
    return this.#setting(name).setting.value;
  }

  #boolean(name: string): boolean {
    const { key, setting } = this.#setting(name);
    return key.value === 'yes or no' ? readYesNo(setting) : readBoolean(setting);
  }

  #int(name: string): number {
    const read = this.#maybeInt(name);
    if (read === undefined) throw new Error(`${name} has neither a value nor a default`);
    return read;
  }

  #maybeInt(name: string): number | undefined {
    const { key, setting } = this.#setting(name);
    const value = setting.value === '' ? key.default : setting.value;
    if (value === '') return undefined;
    return readInteger({ ...setting, value }, key.value as { min: number; max: number }, key.source);
  }

  #real(name: string): number {
    const { key, setting } = this.#setting(name);
    const { min } = key.value as { min?: number };
    return readReal(setting.value === '' ? { ...setting, value: key.default } : setting, min);
  }

  #where(name: string): string {
    return this.#settings.get(name)?.where ?? this.#sources.file?.name ?? 'configuration';
  }

  // Keys with rules of their own.

  #sessionTimeouts(tickTimeMs: number): [number, number] {
    const [least, most] = [this.#int('minSessionTimeout'), this.#int('maxSessionTimeout')];
    const minMs = least === -1 ? 2 * tickTimeMs : least;
    const maxMs = most === -1 ? 20 * tickTimeMs : most;
    if (minMs > maxMs) {
      const where = this.#where(least === -1 ? 'maxSessionTimeout' : 'minSessionTimeout');
      throw new ConfigError(
        `${where}: minSessionTimeout (${minMs} ms) must not be larger than maxSessionTimeout (${maxMs} ms). Change one of them.`,
      );
    }
    return [minMs, maxMs];
  }

  #superDigest(): string | undefined {
    const name = 'DigestAuthenticationProvider.superDigest';
    const value = this.#text(name);
    if (value === '') return undefined;
    // The value is the hash of a secret, or by mistake the secret itself: the message does not
    // repeat it.
    if (!/^[^:]+:[A-Za-z0-9+/]+=*$/.test(value)) {
      throw new ConfigError(
        `${this.#where(name)}: ${name} must be super:<base64 of the digest of "super:password">, not a plain-text password.`,
      );
    }
    return value;
  }

  #memoryLimitBytes(): number | undefined {
    const megabytes = this.#maybeInt('tskeeper.memoryLimitInMb');
    return megabytes === undefined ? undefined : megabytes * 1024 ** 2;
  }

  #digestAlgorithm(): string {
    const name = 'DigestAuthenticationProvider.digestAlg';
    const value = this.#text(name) || digestAlgorithmDefault;
    if (!isDigestAlgorithm(value)) {
      throw new ConfigError(
        `${this.#where(name)}: ${name} names an unknown digest, "${value}". Choose SHA1, SHA-256 or SHA-512, the same on all servers.`,
      );
    }
    return value.toUpperCase();
  }

  #enforcedAuthSchemes(): readonly string[] {
    if (!this.#boolean('enforce.auth.enabled')) return [];
    const name = 'enforce.auth.schemes';
    const schemes = commaList(this.#text(name));
    if (schemes.length === 0) {
      throw new ConfigError(
        `${this.#where('enforce.auth.enabled')}: enforce.auth.enabled needs enforce.auth.schemes, such as enforce.auth.schemes=digest.`,
      );
    }
    const available = this.#boolean('DigestAuthenticationProvider.enabled') ? ['digest', 'ip'] : ['ip'];
    const missing = schemes.find((scheme) => !available.includes(scheme));
    if (missing !== undefined) {
      throw new ConfigError(
        `${this.#where(name)}: enforce.auth.schemes names ${missing}, which this server does not offer. Name some of: ${available.join(', ')}.`,
      );
    }
    return schemes;
  }

  #snapshotCompression(): 'none' | 'gz' | 'snappy' {
    const name = 'snapshot.compression.method';
    const value = this.#text(name).toLowerCase();
    switch (value) {
      case '':
      case 'none':
        return 'none';
      case 'gz':
      case 'snappy':
        return value;
      default:
        throw new ConfigError(`${this.#where(name)}: ${name} must be gz, snappy or empty, not "${value}".`);
    }
  }

  #snapRetainCount(): number {
    const name = 'autopurge.snapRetainCount';
    const count = this.#int(name);
    if (count < snapshotsKeptMin) this.#warn(this.#where(name), `${name} is raised to ${snapshotsKeptMin}, the minimum.`);
    return Math.max(snapshotsKeptMin, count);
  }

  #fourLetterWords(): readonly string[] {
    const name = '4lw.commands.whitelist';
    const asked = commaList(this.#text(name));
    // zkServer.sh asks srvr for the status, and a client that looks for a server that is not
    // read-only asks isro.
    const known: readonly string[] = fourLetterWords;
    const enabled = new Set(asked.includes('*') ? known : ['srvr', ...asked]);
    if (this.#boolean('readonlymode.enabled')) enabled.add('isro');
    for (const word of asked) {
      if (javaOnlyWords.includes(word)) this.#notice(this.#where(name), word, 'it is for the Java server');
      else if (word !== '*' && !known.includes(word)) {
        this.#warn(this.#where(name), `${name} names ${word}, which is not a four letter word; known are ${known.join(', ')}.`);
      }
    }
    return known.filter((word) => enabled.has(word));
  }

  #sessionWeights(): { globalSessionWeight: number; localSessionWeight: number; renewSessionWeight: number } {
    const localSessionWeight = this.#int('connection_throttle_local_session_weight');
    // A session that is written to the log cannot cost less than one that is not.
    return {
      globalSessionWeight: Math.max(localSessionWeight, this.#int('connection_throttle_global_session_weight')),
      localSessionWeight,
      renewSessionWeight: Math.max(localSessionWeight, this.#int('connection_throttle_renew_session_weight')),
    };
  }

  #dataDir(): string {
    const dataDir = this.#sources.dataDir ?? this.#text('dataDir');
    if (dataDir === '') {
      throw new ConfigError(
        `${this.#sources.file?.name ?? 'configuration'}: dataDir is not set. Add a line such as dataDir=/var/lib/zookeeper, or pass --data-dir.`,
      );
    }
    return dataDir;
  }

  /** Without this check the disk would seem to fail when the folder is created. */
  #checkFolder(name: string, folder: string): void {
    const isFile = this.#sources.isFile ?? (() => false);
    let file = folder;
    while (!isFile(file)) {
      const parent = dirname(file);
      if (parent === file) return;
      file = parent;
    }
    const where = this.#sources.dataDir === undefined ? this.#where(name) : '--data-dir';
    const what = file === folder ? `${folder}, which is a file` : `${folder}, and ${file} is a file`;
    throw new ConfigError(`${where}: ${name} is ${what}. Name a folder; the server makes it if it is missing.`);
  }

  #juteMaxBuffer(): number {
    const name = 'jute.maxbuffer';
    const bytes = this.#int(name);
    if (bytes < juteMaxBufferUsualMin) {
      this.#warn(
        this.#where(name),
        `${name} is ${bytes} bytes: the server closes the connection of a client that sends a longer request, and most requests are longer. Remove the setting to use the default of ${findKey(name, ['bare'])!.default}.`,
      );
    }
    return bytes;
  }

  /** The server's line may hold the client port as well. */
  #clientEndpoint(server: QuorumServer | undefined): { clientPort: number; clientPortAddress: string | undefined } {
    const line = server?.clientAddress;
    const clientPort = this.#sources.clientPort ?? line?.port ?? this.#maybeInt('clientPort');
    if (clientPort === undefined) {
      throw new ConfigError(
        `${this.#sources.file?.name ?? 'configuration'}: clientPort is not set. Add the line clientPort=2181, or pass --client-port.`,
      );
    }
    const written = this.#text('clientPortAddress');
    if (server !== undefined && line !== undefined) this.#compareWithLine(server.sid, line, written);
    const address = this.#sources.clientAddress ?? line?.host ?? written;
    // Java's "every address" includes IPv6 where the machine has it.
    return { clientPort, clientPortAddress: isEveryAddress(address) ? undefined : withoutBrackets(address) };
  }

  /**
   * When two settings of the same thing differ, neither may silently override the other. Two names
   * may mean the same address, so only numeric addresses are compared.
   */
  #compareWithLine(sid: number, line: HostPort, writtenAddress: string): void {
    const where = this.#quorumLines.get(`server.${sid}`)?.where ?? `server.${sid}`;
    const port = this.#maybeInt('clientPort');
    if (port !== undefined && line.port !== port) {
      throw new ConfigError(`${this.#where('clientPort')}: clientPort is ${port} and ${where} says ${line.port}. Keep one of them.`);
    }
    const address = withoutBrackets(writtenAddress);
    if (isEveryAddress(address) || isIP(address) === 0 || isIP(line.host) === 0 || address === line.host) return;
    throw new ConfigError(
      `${this.#where('clientPortAddress')}: clientPortAddress is ${address} and ${where} says ${line.host}. Keep one of them.`,
    );
  }

  /**
   * The ensemble, if there is one, and the line of this server, if there is one: a list of one
   * server is a standalone server.
   */
  #servers(dataDir: string): { ensemble: EnsembleConfig | undefined; server: QuorumServer | undefined } {
    const dynamic = this.#text('dynamicConfigFile');
    if (dynamic !== '') this.#applyDynamicFile(dynamic);
    const source: QuorumLines = {
      lines: this.#quorumLines,
      configFile: this.#sources.file?.name ?? 'configuration',
      dynamicConfigFile: dynamic === '' ? undefined : dynamic,
    };
    const settings = this.#lookup();
    this.#checkPeerType();
    const quorum = readQuorum(source, settings);
    if (!isEnsemble(quorum, source, settings)) {
      if (this.#text('peerType').toLowerCase() === 'observer') {
        throw new ConfigError(
          `${this.#where('peerType')}: an observer needs an ensemble to observe, and no other server is named. Add the lines of the servers, or remove peerType.`,
        );
      }
      for (const { where, name } of this.#ensembleSettings) this.#notice(where, name, 'it matters in an ensemble only');
      return { ensemble: undefined, server: quorum.servers.values().next().value };
    }
    const ensemble = readEnsemble(quorum, source, dataDir, settings);
    return { ensemble, server: quorum.servers.get(ensemble.myid) };
  }

  #lookup(): SettingsLookup {
    return {
      text: (name) => this.#text(name),
      int: (name) => this.#int(name),
      maybeInt: (name) => this.#maybeInt(name),
      real: (name) => this.#real(name),
      boolean: (name) => this.#boolean(name),
      isSet: (name) => this.#settings.has(name),
      where: (name) => this.#where(name),
      warn: (where, sentence) => this.#warn(where, sentence),
      readFile: this.#sources.readFile ?? noFiles,
    };
  }

  #checkPeerType(): void {
    const value = this.#text('peerType');
    if (['participant', 'observer'].includes(value.toLowerCase())) return;
    throw new ConfigError(`${this.#where('peerType')}: peerType must be participant or observer, not "${value}".`);
  }

  #applyDynamicFile(path: string): void {
    const where = this.#where('dynamicConfigFile');
    const [line] = this.#quorumLines.values();
    if (line !== undefined) throw new ConfigError(`${line.where}: ${line.name} must be in the dynamic file ${path}. Move the line there.`);
    let text: string;
    try {
      text = (this.#sources.readFile ?? noFiles)(path);
    } catch (error) {
      throw new ConfigError(
        `${where}: the dynamic file ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`,
        { cause: error },
      );
    }
    for (const setting of this.#lastOfEach(parseProperties(text, path))) {
      if (setting.name === 'version') {
        throw new ConfigError(`${setting.where}: the version of a dynamic file is the end of its name. Remove the line.`);
      }
      const key = findKey(setting.name, ['file']);
      if (key === undefined || !quorumFamilies.includes(key.name)) {
        throw new ConfigError(
          `${setting.where}: a dynamic file holds server, group and weight lines only. Move ${setting.name} to zoo.cfg or remove it.`,
        );
      }
      this.#apply(key, setting);
    }
  }

  #unsafe(): readonly string[] {
    const unsafe: [string, string][] = [];
    if (!this.#boolean('forceSync'))
      unsafe.push(['forceSync=no', 'writes are acknowledged before the disk has them, and a loss of power loses them']);
    if (this.#boolean('skipACL')) unsafe.push(['skipACL=yes', 'every client may read and change every znode']);
    if (this.#boolean('snapshot.trust.empty')) unsafe.push(['snapshot.trust.empty=true', 'missing snapshots go unnoticed']);
    for (const [setting, consequence] of unsafe) {
      this.#warn(
        this.#where(setting.slice(0, setting.indexOf('='))),
        `UNSAFE: ${setting}: ${consequence}. Do not run it where data matters.`,
      );
    }
    return unsafe.map(([setting]) => setting);
  }
}

function isEveryAddress(address: string): boolean {
  return ['', '0.0.0.0', '::', '[::]'].includes(address);
}

function withoutBrackets(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1');
}

function noFiles(): string {
  throw new Error('no readFile is given');
}

function minusOneIsDefault(value: number): number | undefined {
  return value < 0 ? undefined : value;
}

function commaList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

function readBoolean({ name, value, where }: Setting): boolean {
  const word = value.toLowerCase();
  if (word !== 'true' && word !== 'false') throw new ConfigError(`${where}: ${name} must be true or false, not "${value}".`);
  return word === 'true';
}

function readYesNo({ name, value, where }: Setting): boolean {
  if (value !== 'yes' && value !== 'no') throw new ConfigError(`${where}: ${name} must be yes or no, not "${value}".`);
  return value === 'yes';
}

/**
 * Keys of the file are decimal; properties may also be hexadecimal (0x10, #10) or octal (010), as
 * Java reads them.
 */
function readInteger({ name, value, where }: Setting, { min, max }: { min: number; max: number }, place: ConfigKey['source']): number {
  const match = /^([+-]?)(0x|#|0(?=\d))?([0-9a-f]+)$/i.exec(value);
  const prefix = match?.[2]?.toLowerCase();
  const radix = prefix === undefined || place === 'file' ? 10 : prefix === '0' ? 8 : 16;
  const digits = place === 'file' ? (match?.[2] ?? '') + (match?.[3] ?? '') : (match?.[3] ?? '');
  const valid = (radix === 16 ? /^[0-9a-f]+$/i : radix === 8 ? /^[0-7]+$/ : /^\d+$/).test(digits);
  const number = valid ? Number.parseInt(digits, radix) * (match?.[1] === '-' ? -1 : 1) : Number.NaN;
  if (!(number >= min && number <= max)) {
    const range = min === max ? `${min}` : `a whole number from ${min} to ${max}`;
    throw new ConfigError(`${where}: ${name} must be ${range}, not "${value}".`);
  }
  return number;
}

function readReal({ name, value, where }: Setting, min = 0): number {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number) || number < min) {
    const range = min === 0 ? 'a number of at least 0' : 'a number';
    throw new ConfigError(`${where}: ${name} must be ${range}, not "${value}".`);
  }
  return number;
}
