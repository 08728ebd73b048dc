/** The addresses for clients in the configuration of an ensemble. */
import { isWildcardHost, parseQuorumConfig, QuorumConfigError } from '@tskeeper/protocol';
import { isHost } from '../connect-string.ts';
import type { ServerAddress } from '../transport.ts';

/**
 * The client address of each server, as written; undefined if the text cannot be read or some
 * server has no address.
 *
 * A list without some servers would send every client to the others, so all are required. A
 * `clientPort` that a server has only in its own zoo.cfg is not published: an ensemble configured
 * that way publishes no client addresses, and one in transition publishes some.
 *
 * If a server accepts clients at any of its addresses (`0.0.0.0`, or only a port), clients use the
 * address of the other servers: the first host of its own line.
 */
export function clientAddressesOf(config: string): readonly ServerAddress[] | undefined {
  const addresses: ServerAddress[] = [];
  try {
    for (const { clientAddress, addresses: own } of parseQuorumConfig(config).servers.values()) {
      if (clientAddress === undefined || clientAddress.port === 0) return undefined;
      const host = isWildcardHost(clientAddress.host) ? own[0]!.host : clientAddress.host;
      if (!isHost(host)) return undefined;
      addresses.push({ host, port: clientAddress.port });
    }
  } catch (error) {
    if (!(error instanceof QuorumConfigError)) throw error;
    return undefined;
  }
  return addresses.length === 0 ? undefined : addresses;
}
