import type { Checker } from './checker.ts';

export const negotiation: Checker = {
  property: 'P24',
  promise: 'The timeout granted is the one asked for, as near as the limits allow; and the log keeps the same.',
  check({ cnxns, limits }, { sessions }) {
    const faults: string[] = [];
    for (const { handshake, session, timeoutMs, key } of cnxns) {
      if (handshake === undefined || session === undefined || session === 0n) continue;
      const expected = Math.max(limits.minSessionTimeoutMs, Math.min(limits.maxSessionTimeoutMs, handshake.timeOut));
      if (timeoutMs !== expected) faults.push(`${key} asked for ${handshake.timeOut} ms and was granted ${timeoutMs}, not ${expected}`);
      const logged = sessions.get(session)?.timeoutMs;
      if (handshake.sessionId === 0n && logged !== undefined && logged !== timeoutMs) {
        faults.push(`${key} was granted ${timeoutMs} ms, and the log has ${logged}`);
      }
    }
    return faults;
  },
};
