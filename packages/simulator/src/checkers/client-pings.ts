import type { Checker } from './checker.ts';

/** A third of the time-out is the rule, less a second in long sessions; what is allowed here leaves room for the grain of timers. */
const shareMax = 0.4;

export const clientPings: Checker = {
  property: 'P22',
  promise: 'A client that has nothing to ask pings in time: within a third of its time-out it has sent something.',
  check({ cnxns, libraryClients, limits }) {
    if (limits.clientsMayBeLate === true) return [];
    const faults: string[] = [];
    for (const { client, key, session, shakenMs, timeoutMs, requests } of cnxns) {
      if (!libraryClients.has(client) || session === undefined || session === 0n) continue;
      let lastMs = shakenMs;
      // Behind the last of them it may have given the connection up, which nobody sees.
      for (const { sentMs: atMs } of requests) {
        if (atMs - lastMs > timeoutMs * shareMax) {
          faults.push(`${client} at ${key} was silent from ${lastMs} to ${atMs}, in a session of ${timeoutMs} ms`);
        }
        lastMs = Math.max(lastMs, atMs);
      }
    }
    return faults;
  },
};
