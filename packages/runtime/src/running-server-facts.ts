/**
 * The facts about a running server that four letter words and metrics show, and that neither the
 * core nor the ports know: its configuration, the sizes of its folders, and the machine.
 */
import type { CoreOptions } from '@tskeeper/core';
import type { ConnectionThrottle } from '@tskeeper/core/internal';
import type { Millis, QuorumConfig } from '@tskeeper/protocol';
import type { EnsembleOptions } from './ensemble-options.ts';
import type { FolderSizes } from './folder-sizes.ts';
import type { RuntimeOptions } from './options.ts';
import type { EnsembleConf, ServerConf, ServerFacts } from './ports/server-facts.ts';
import type { ServerParts } from './server-parts.ts';
import type { Storage } from './storage/storage.ts';
import type { HostFacts } from './world.ts';

export interface RunningServerFactsDependencies {
  readonly core: CoreOptions;
  readonly options: RuntimeOptions;
  readonly ensembleOptions: EnsembleOptions | undefined;
  readonly parts: Pick<ServerParts, 'ensemble'>;
  readonly storage: Storage;
  readonly sizes: FolderSizes;
  readonly throttle: ConnectionThrottle | undefined;
  readonly host: HostFacts;
}

export class RunningServerFacts implements ServerFacts {
  readonly #dependencies: RunningServerFactsDependencies;
  /** The actual port, once the server listens: port 0 may have been requested. */
  clientPort: number;
  startedMs: Millis = 0;

  constructor(dependencies: RunningServerFactsDependencies) {
    this.#dependencies = dependencies;
    this.clientPort = dependencies.options.clientPort;
  }

  get version(): string {
    return this.#dependencies.host.version;
  }

  get unsafe(): readonly string[] {
    return this.#dependencies.options.unsafe;
  }

  get conf(): ServerConf {
    const { core, options, ensembleOptions, parts, storage } = this.#dependencies;
    return {
      clientPort: this.clientPort,
      secureClientPort: -1,
      dataDir: storage.snapshotFolder,
      dataLogDir: storage.logFolder,
      tickTimeMs: core.tickTimeMs,
      maxClientCnxns: options.maxClientCnxns,
      minSessionTimeoutMs: core.minSessionTimeoutMs,
      maxSessionTimeoutMs: core.maxSessionTimeoutMs,
      clientPortListenBacklog: options.clientPortListenBacklog ?? -1,
      serverId: ensembleOptions?.zab.sid ?? 0,
      ensemble:
        ensembleOptions === undefined ? undefined : ensembleConf(ensembleOptions, parts.ensemble?.members ?? ensembleOptions.quorum),
    };
  }

  dataDirBytes(): number {
    return this.#dependencies.sizes.latest.dataDirBytes;
  }

  logDirBytes(): number {
    return this.#dependencies.sizes.latest.logDirBytes;
  }

  openFileDescriptors(): number | undefined {
    return this.#dependencies.host.openFileDescriptors();
  }

  maxFileDescriptors(): number | undefined {
    return this.#dependencies.host.maxFileDescriptors();
  }

  connectionDropChance(): number {
    return this.#dependencies.throttle?.dropChance ?? 0;
  }

  environment(): Iterable<readonly [name: string, value: string]> {
    return this.#dependencies.host.environment();
  }
}

/** With the ports that other servers use; none if the configuration does not name this server. */
function ensembleConf({ zab }: EnsembleOptions, members: QuorumConfig): EnsembleConf {
  const { addresses = [], role = 'participant' } = members.servers.get(zab.sid) ?? {};
  return {
    initLimitTicks: zab.initLimitTicks,
    syncLimitTicks: zab.syncLimitTicks,
    electionPorts: [...new Set(addresses.map(({ electionPort }) => electionPort))],
    quorumPorts: [...new Set(addresses.map(({ quorumPort }) => quorumPort))],
    role,
  };
}
