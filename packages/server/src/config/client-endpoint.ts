/**
 * Where the server listens for clients. Three places may say it: the command line, the server's own
 * line in the list of servers, and the keys clientPort and clientPortAddress.
 */
import { isIP } from 'node:net';
import type { HostPort, QuorumServer } from '@tskeeper/protocol';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import type { ConfigSources } from './config-sources.ts';

export interface ClientEndpoint {
  readonly clientPort: number;
  /** Undefined: every address of the machine. */
  readonly clientPortAddress: string | undefined;
}

/** The server's line may hold the client port as well. */
export function readClientEndpoint(sources: ConfigSources, server: QuorumServer | undefined, settings: ConfigSettings): ClientEndpoint {
  const line = server?.clientAddress;
  const clientPort = sources.clientPort ?? line?.port ?? settings.maybeInt('clientPort');
  if (clientPort === undefined) {
    throw new ConfigError(`${settings.configFile}: clientPort is not set. Add the line clientPort=2181, or pass --client-port.`);
  }
  const written = settings.text('clientPortAddress');
  if (server !== undefined && line !== undefined) compareWithLine(server.sid, line, written, settings);
  const address = sources.clientAddress ?? line?.host ?? written;
  // Java's "every address" includes IPv6 where the machine has it.
  return { clientPort, clientPortAddress: isEveryAddress(address) ? undefined : withoutBrackets(address) };
}

/**
 * When two settings of the same thing differ, neither may silently override the other. Two names
 * may mean the same address, so only numeric addresses are compared.
 */
function compareWithLine(sid: number, line: HostPort, writtenAddress: string, settings: ConfigSettings): void {
  const where = settings.quorumLines.get(`server.${sid}`)?.where ?? `server.${sid}`;
  const port = settings.maybeInt('clientPort');
  if (port !== undefined && line.port !== port) {
    throw new ConfigError(`${settings.where('clientPort')}: clientPort is ${port} and ${where} says ${line.port}. Keep one of them.`);
  }
  const address = withoutBrackets(writtenAddress);
  if (isEveryAddress(address) || isIP(address) === 0 || isIP(line.host) === 0 || address === line.host) return;
  throw new ConfigError(
    `${settings.where('clientPortAddress')}: clientPortAddress is ${address} and ${where} says ${line.host}. Keep one of them.`,
  );
}

function isEveryAddress(address: string): boolean {
  return ['', '0.0.0.0', '::', '[::]'].includes(address);
}

function withoutBrackets(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1');
}
