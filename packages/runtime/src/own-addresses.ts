/** The addresses at which a server of an ensemble listens for the others. */
import type { HostPort, QuorumConfig, QuorumServer, Sid } from '@tskeeper/protocol';

export interface OwnAddresses {
  readonly election: readonly HostPort[];
  readonly quorum: readonly HostPort[];
  /** For observers; empty without observerMasterPort. */
  readonly observerMaster: readonly HostPort[];
}

/**
 * Those of the server's line in the configuration. With `listensOnAllIps` (quorumListenOnAllIPs) a
 * host is a wildcard; two addresses with the same port are one then. undefined if the configuration
 * does not name the server: its ports stay as they are.
 */
export function ownAddresses(
  config: QuorumConfig,
  sid: Sid,
  listensOnAllIps: boolean,
  observerMasterPort?: number,
): OwnAddresses | undefined {
  const server = config.servers.get(sid);
  if (server === undefined) return undefined;
  const hostPorts = (portOf: (address: QuorumServer['addresses'][number]) => number): HostPort[] => {
    const all = server.addresses.map((address) => ({ host: listensOnAllIps ? '0.0.0.0' : address.host, port: portOf(address) }));
    return all.filter(({ host, port }, index) => all.findIndex((other) => other.host === host && other.port === port) === index);
  };
  return {
    election: hostPorts(({ electionPort }) => electionPort),
    quorum: hostPorts(({ quorumPort }) => quorumPort),
    observerMaster: observerMasterPort === undefined ? [] : hostPorts(() => observerMasterPort),
  };
}
