import { membersOf } from './config-text.ts';
import type { Recording } from './recording.ts';

/**
 * By the list of events in which they were found, valid until an event is added: checkers ask for
 * each session.
 */
const cache = new WeakMap<Recording['peerEvents'], { readonly events: number; readonly servers: ReadonlySet<string> }>();

/**
 * The servers that may have learned from a follower instead of the leader: the observers that do so
 * from the start, and each voter that a reconfiguration made an observer.
 */
export function observersOfFollowers({ ensemble, peerEvents }: Recording): ReadonlySet<string> {
  const known = cache.get(peerEvents);
  if (known?.events === peerEvents.length) return known.servers;
  const servers = new Set<string>();
  for (const [server, { observesFollowers }] of ensemble) if (observesFollowers === true) servers.add(server);
  for (const event of peerEvents) {
    if (event.kind !== 'config' || ensemble.get(event.server)?.isVoter !== true) continue;
    if (membersOf(event.text, undefined).get(event.server)?.isVoter === false) servers.add(event.server);
  }
  cache.set(peerEvents, { events: peerEvents.length, servers });
  return servers;
}
