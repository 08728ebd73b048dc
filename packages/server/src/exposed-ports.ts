/**
 * Quorum and election ports believe whoever reaches them: the id that it gives, what it says it has accepted, the requests that it passes on for
 * clients, whoever those say they are. TLS and SASL between servers are not built, so who can reach these ports is for the operator to see to.
 */
import { formatHostPort } from '@tskeeper/protocol';
import type { MemberOptions } from '@tskeeper/runtime';
import { isLoopback } from './config/loopback.ts';

/** Addresses of ports for other servers that other machines may reach. */
export function exposedPorts({
  quorumAddresses,
  electionAddresses,
}: Pick<MemberOptions, 'quorumAddresses' | 'electionAddresses'>): string[] {
  return [...quorumAddresses, ...electionAddresses].filter(({ host }) => !isLoopback(host)).map(formatHostPort);
}

/** One sentence of what is wrong, one of what to do. */
export function exposedSentence(addresses: readonly string[]): string {
  return (
    `The ports for other servers (${addresses.join(', ')}) are open to other machines and believe whoever reaches them, as they have neither TLS nor SASL. ` +
    `Let a firewall admit nobody but the servers of the ensemble, or name an address of a private network in the server lines and leave quorumListenOnAllIPs off.`
  );
}
