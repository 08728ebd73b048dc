/**
 * Which servers run without a log: observers with syncEnabled=false. What such a process receives is
 * in memory only, whatever the server reports of its log. A reconfiguration may give the server a
 * vote, and its next process keeps a log.
 */
import type { PeerEvent } from './peer-event.ts';
import type { Recording } from './recording.ts';

export class ServersWithoutLog {
  readonly #servers = new Set<string>();

  onEvent({ kind, server }: PeerEvent): void {
    if (kind === 'keepsNoLog') this.#servers.add(server);
    else if (kind === 'processGone') this.#servers.delete(server);
  }

  /** Whether the process that runs at this event keeps no log. */
  has(server: string): boolean {
    return this.#servers.has(server);
  }
}

/** Whether any process of the server kept no log: its folder may then lack what came after. */
export function everKeptNoLog({ peerEvents }: Pick<Recording, 'peerEvents'>, server: string): boolean {
  return peerEvents.some((event) => event.kind === 'keepsNoLog' && event.server === server);
}
