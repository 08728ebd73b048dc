/**
 * The configuration of a server: all sources in, the options of its parts out. Whatever could be
 * read in two ways stops the start with a sentence that names the place and the remedy.
 *
 * source-reader.ts reads the sources into the settings (config-settings.ts); core-config.ts,
 * runtime-config.ts and ensemble-config.ts read the options of one part each out of them.
 */
import { dirname } from 'node:path';
import type { CoreOptions } from '@tskeeper/core';
import type { QuorumServer } from '@tskeeper/protocol';
import type { RuntimeOptions } from '@tskeeper/runtime';
import { ConfigError } from './config-error.ts';
import { ConfigSettings } from './config-settings.ts';
import type { ConfigSources } from './config-sources.ts';
import { readCoreOptions } from './core-config.ts';
import { type EnsembleConfig, isEnsemble, type QuorumLines, readEnsemble, readQuorum, serverOf } from './ensemble-config.ts';
import { readRuntimeOptions } from './runtime-config.ts';
import { SourceReader } from './source-reader.ts';

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

/** Turns sources into options. Throws `ConfigError` for anything that must not be guessed. */
export function resolveConfig(sources: ConfigSources): ServerConfig {
  const settings = new ConfigSettings(sources);
  const reader = new SourceReader(sources, settings);
  reader.apply();
  const dataDir = readDataDir(sources, settings);
  const dataLogDir = sources.dataDir === undefined ? settings.text('dataLogDir') || dataDir : dataDir;
  checkFolder('dataDir', dataDir, sources, settings);
  if (dataLogDir !== dataDir) checkFolder('dataLogDir', dataLogDir, sources, settings);
  const { ensemble, server } = readServers(dataDir, reader, settings);
  return {
    // In ZooKeeper too a standalone server is number 1, whatever myid says, and has no local
    // sessions.
    core: readCoreOptions({ serverId: ensemble?.myid ?? 1, localSessions: ensemble?.localSessions ?? 'disabled' }, settings),
    runtime: readRuntimeOptions({ dataDir, dataLogDir }, sources, server, settings),
    ensemble,
    clientTcpKeepAlive: settings.boolean('clientTcpKeepAlive'),
    memoryLimitBytes: memoryLimitBytes(settings),
    warnings: settings.warnings,
    notices: settings.notices,
    changed: settings.changed(ensemble !== undefined),
  };
}

function readDataDir(sources: ConfigSources, settings: ConfigSettings): string {
  const dataDir = sources.dataDir ?? settings.text('dataDir');
  if (dataDir === '') {
    throw new ConfigError(`${settings.configFile}: dataDir is not set. Add a line such as dataDir=/var/lib/zookeeper, or pass --data-dir.`);
  }
  return dataDir;
}

/** Without this check the disk would seem to fail when the folder is created. */
function checkFolder(name: string, folder: string, sources: ConfigSources, settings: ConfigSettings): void {
  const isFile = sources.isFile ?? (() => false);
  let file = folder;
  while (!isFile(file)) {
    const parent = dirname(file);
    if (parent === file) return;
    file = parent;
  }
  const where = sources.dataDir === undefined ? settings.where(name) : '--data-dir';
  const what = file === folder ? `${folder}, which is a file` : `${folder}, and ${file} is a file`;
  throw new ConfigError(`${where}: ${name} is ${what}. Name a folder; the server makes it if it is missing.`);
}

/**
 * The ensemble, if there is one, and the line of this server, if there is one: a list of one
 * server is a standalone server.
 */
function readServers(
  dataDir: string,
  reader: SourceReader,
  settings: ConfigSettings,
): { ensemble: EnsembleConfig | undefined; server: QuorumServer | undefined } {
  const dynamic = settings.text('dynamicConfigFile');
  if (dynamic !== '') reader.applyDynamicFile(dynamic);
  const source: QuorumLines = {
    lines: settings.quorumLines,
    configFile: settings.configFile,
    dynamicConfigFile: dynamic === '' ? undefined : dynamic,
  };
  checkPeerType(settings);
  const quorum = readQuorum(source, settings);
  if (!isEnsemble(quorum, source, settings)) {
    if (settings.text('peerType').toLowerCase() === 'observer') {
      throw new ConfigError(
        `${settings.where('peerType')}: an observer needs an ensemble to observe, and no other server is named. Add the lines of the servers, or remove peerType.`,
      );
    }
    for (const { where, name } of settings.ensembleSettings) settings.notice(where, name, 'it matters in an ensemble only');
    return { ensemble: undefined, server: quorum.servers.values().next().value };
  }
  const ensemble = readEnsemble(quorum, source, dataDir, settings);
  // Where a pending change will put its client port matters before the change only if nothing else says it.
  const pending = settings.isSet('clientPort') ? undefined : ensemble.lastSeen;
  return { ensemble, server: serverOf(ensemble.myid, quorum, pending) };
}

function checkPeerType(settings: ConfigSettings): void {
  const value = settings.text('peerType');
  if (['participant', 'observer'].includes(value.toLowerCase())) return;
  throw new ConfigError(`${settings.where('peerType')}: peerType must be participant or observer, not "${value}".`);
}

function memoryLimitBytes(settings: ConfigSettings): number | undefined {
  const megabytes = settings.maybeInt('tskeeper.memoryLimitInMb');
  return megabytes === undefined ? undefined : megabytes * 1024 ** 2;
}
