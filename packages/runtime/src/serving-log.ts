/**
 * The log line of a start that has succeeded: which server of how many this is, where it listens,
 * and from which state it continues. Operators search for it after a restart.
 */
import { formatHostPort, formatZxid, isParticipant, type Zxid } from '@tskeeper/protocol';
import type { EnsembleOptions } from './ensemble-options.ts';
import type { Logger } from './logger.ts';
import type { Endpoint } from './network.ts';
import { ownAddresses } from './own-addresses.ts';
import type { RecoveryResult } from './storage/recovery.ts';

export interface ServingFacts {
  readonly clientEndpoint: Endpoint;
  /** Undefined for a standalone server. */
  readonly ensembleOptions: EnsembleOptions | undefined;
  readonly lastZxid: Zxid;
  readonly recovered: RecoveryResult;
  /** Active settings that give up a guarantee. */
  readonly unsafe: readonly string[];
}

export function logServing(logger: Logger, { clientEndpoint, ensembleOptions, lastZxid, recovered, unsafe }: ServingFacts): void {
  const address = formatHostPort({ host: clientEndpoint.address, port: clientEndpoint.port });
  const what = ensembleOptions === undefined ? 'serving' : `${nameOf(ensembleOptions)}, listening for`;
  const votes = ensembleOptions === undefined ? '' : ` and for votes on ${electionAddressesOf(ensembleOptions).join(', ')}`;
  const zxid = formatZxid(lastZxid);
  const durationMs = Math.round(recovered.loadSnapshotMs + recovered.replayMs);
  logger.info(
    `${what} clients on ${address}${votes}, from zxid ${zxid} (${recovered.txnCount} txns replayed, loaded in ${durationMs} ms)`,
    {
      event: 'server.serving',
      address,
      ...(ensembleOptions === undefined ? {} : ensembleFields(ensembleOptions)),
      zxid,
      count: recovered.txnCount,
      durationMs,
    },
  );
  if (unsafe.length > 0) {
    logger.warn(`serving UNSAFELY, with ${unsafe.join(', ')}; srvr and mntr show it for as long as this server runs`, {
      event: 'server.unsafe',
      reason: unsafe.join(', '),
    });
  }
}

/** How many servers of the ensemble vote, and how many observe. */
function countServers({ quorum }: EnsembleOptions): { readonly voters: number; readonly observers: number } {
  const servers = [...quorum.servers.values()];
  const voters = servers.filter(isParticipant).length;
  return { voters, observers: servers.length - voters };
}

function electionAddressesOf({ quorum, zab, listensOnAllIps }: EnsembleOptions): string[] {
  return (ownAddresses(quorum, zab.sid, listensOnAllIps)?.election ?? []).map(formatHostPort);
}

/** The fields of `server.serving` that only an ensemble has. */
function ensembleFields(options: EnsembleOptions) {
  return { electionAddresses: electionAddressesOf(options), ...countServers(options) };
}

/** "server 2 of 3 voters and 1 observer" */
function nameOf(options: EnsembleOptions): string {
  const { voters, observers } = countServers(options);
  const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return `server ${options.zab.sid} of ${counted(voters, 'voter')}${observers === 0 ? '' : ` and ${counted(observers, 'observer')}`}`;
}
