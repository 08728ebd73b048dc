/** What the configuration of an ensemble says about where its clients connect. */
import { isWildcardHost, parseQuorumConfig, QuorumConfigError } from '@tskeeper/protocol';
import { isHost } from '../connect-string.ts';
import type { ServerAddress } from '../transport.ts';

/**
 * The client address of each server, as written; undefined if the text does not say all of them, or is none that can be read.
 *
 * All, since a list that lacks some would send every client to the others. What a server has in its own zoo.cfg as `clientPort` alone is not
 * published: an ensemble that is set up so says of no server where its clients connect, and one that is being changed to say it, of some.
 *
 * A server whose clients may come to any of its addresses (`0.0.0.0`, or a port alone) is reached where the other servers reach it: at the
 * first host of its own line.
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
