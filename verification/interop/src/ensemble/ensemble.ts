/** Ensembles of servers of any kind, ours beside Apache's, with the settings of interop. */
import type { Sid } from '@tskeeper/protocol';
import { type EnsembleOptions, type PeerSpec, ProcessEnsemble, type Settings } from '@tskeeper/harness';
import { noContainerChecks, superDigestProperty } from '../settings.ts';

export interface InteropOptions {
  /** Keys of zoo.cfg, in addition to those of all ensembles. */
  readonly config?: Settings;
  /** Java system properties; our server takes them as well. */
  readonly properties?: Settings;
  /** See `EnsembleOptions.firstMembers`. */
  readonly firstMembers?: readonly Sid[];
  /** See `EnsembleOptions.hasOwnHosts`. */
  readonly hasOwnHosts?: boolean;
}

/** Writes the folders. Does not start any server. */
export function createEnsemble(
  specs: readonly PeerSpec[],
  { config, properties, firstMembers, hasOwnHosts = false }: InteropOptions = {},
): Promise<ProcessEnsemble> {
  const options: EnsembleOptions = {
    config: {
      tickTime: 500,
      initLimit: 20,
      syncLimit: 10,
      extendedTypesEnabled: true,
      maxSessionTimeout: 1_200_000,
      ...config,
    },
    properties: {
      ...superDigestProperty,
      ...noContainerChecks,
      'log.level': 'INFO',
      'zookeeper.admin.enableServer': false,
      ...properties,
    },
    ...(firstMembers !== undefined && { firstMembers }),
    hasOwnHosts,
    heap: '256m',
    // What makes a JVM run fast does not help one that lives for seconds, and costs more than its
    // work.
    jvmArguments: ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
  };
  return ProcessEnsemble.create(specs, options);
}
