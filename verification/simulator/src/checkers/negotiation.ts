import type { Checker } from './checker.ts';

export const negotiation: Checker = {
  property: 'P24',
  promise: 'The granted timeout is the requested one, clamped to the configured limits, and the log records the granted one.',
  check({ cnxns, limits }, { sessions }) {
    const violations: string[] = [];
    for (const { handshake, session, timeoutMs, key } of cnxns) {
      if (handshake === undefined || session === undefined || session === 0n) continue;
      const expected = Math.max(limits.minSessionTimeoutMs, Math.min(limits.maxSessionTimeoutMs, handshake.timeOut));
      if (timeoutMs !== expected)
        violations.push(`${key} requested ${handshake.timeOut} ms and was granted ${timeoutMs}, expected ${expected}`);
      const logged = sessions.get(session)?.timeoutMs;
      if (handshake.sessionId === 0n && logged !== undefined && logged !== timeoutMs) {
        violations.push(`${key} was granted ${timeoutMs} ms, but the log has ${logged}`);
      }
    }
    return violations;
  },
};
