/**
 * Quorum and election ports trust every connection: its sid, the txns it claims to have accepted,
 * and the identities of the clients whose requests it forwards. TLS and SASL between servers are
 * not supported, so the operator must limit who can reach these ports.
 */
import { formatHostPort } from '@tskeeper/protocol';
import type { OwnAddresses } from '@tskeeper/runtime';
import { isLoopback } from './config/loopback.ts';

/** Addresses of ports for other servers that other machines may reach. */
export function exposedPorts({ quorum, election, observerMaster }: OwnAddresses): string[] {
  return [...quorum, ...election, ...observerMaster].filter(({ host }) => !isLoopback(host)).map(formatHostPort);
}

/** One sentence with the problem, one with the remedy. */
export function exposedSentence(addresses: readonly string[]): string {
  return (
    `The ports for other servers (${addresses.join(', ')}) are open to other machines and trust every connection, because they have neither TLS nor SASL. ` +
    `Let a firewall admit only the servers of the ensemble, or name an address of a private network in the server lines and leave quorumListenOnAllIPs off.`
  );
}
