import { saslEndMs } from '../record/request-kinds.ts';
import type { Checker } from './checker.ts';

/**
 * The client pings after a third of the timeout, in long sessions a second earlier. The rest allows
 * for the granularity of timers.
 */
const silentShareMax = 0.4;

export const clientPings: Checker = {
  property: 'P22',
  promise:
    'An idle client pings in time: it sends something within a third of its session timeout, and of the end of its SASL exchange, during which it sends tokens only.',
  check({ libraryClients, limits, ...recording }) {
    const cnxns = [...recording.cnxns, ...recording.readOnlyCnxns];
    if (limits.isRealTime === true) return [];
    const violations: string[] = [];
    for (const { client, key, session, handshakeMs, timeoutMs, requests } of cnxns) {
      if (!libraryClients.has(client) || session === undefined || session === 0n) continue;
      let lastMs = Math.max(handshakeMs, saslEndMs(requests));
      // After its last request the client may have given the connection up, which the recording
      // does not show.
      for (const { sentMs: atMs } of requests) {
        if (atMs - lastMs > timeoutMs * silentShareMax) {
          violations.push(`${client} at ${key} sent nothing from ${lastMs} to ${atMs}, with a session timeout of ${timeoutMs} ms`);
        }
        lastMs = Math.max(lastMs, atMs);
      }
    }
    return violations;
  },
};
