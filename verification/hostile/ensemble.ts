/** The servers of one row: one, or an ensemble of three, ours or Java's. */
import { type EnsembleOptions, peersOf, ProcessEnsemble, type ServerKind } from '@tskeeper/harness';

export type Kind = Extract<ServerKind, 'ours' | 'java-3.9.5'>;

export interface RowOptions extends Pick<EnsembleOptions, 'config' | 'openFilesMax' | 'hasProxies' | 'diskFaults'> {
  readonly kind: Kind;
  readonly folder: string;
  readonly servers: 1 | 3;
  readonly tickMs: number;
  readonly initLimit?: number;
  readonly syncLimit?: number;
}

/** Starts the servers, and waits until each serves. */
export function startServers(options: RowOptions): Promise<ProcessEnsemble> {
  const { kind, servers, tickMs, initLimit = 10, syncLimit = 5, config, ...others } = options;
  return ProcessEnsemble.start(peersOf(kind, servers), {
    ...others,
    config: { tickTime: tickMs, maxClientCnxns: 60, initLimit, syncLimit, ...config },
    heap: '1g',
  });
}
