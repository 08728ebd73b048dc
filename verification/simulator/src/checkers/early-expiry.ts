import type { Checker } from './checker.ts';
import { cnxnsBySession, lastContactMs, roundingMs, timeoutAt } from './session-silence.ts';

export const earlyExpiry: Checker = {
  property: 'P21',
  promise:
    'No session expires before its timeout has passed since a server last received something from it, or since the server or leader that expires it started to serve, unless an operator ends it.',
  casesExercised: (_recording, { sessions }) => [...sessions.values()].filter(({ closedBy }) => closedBy === 'server').length,
  check(recording, { sessions }) {
    const violations: string[] = [];
    const cnxnsOf = cnxnsBySession(recording);
    for (const life of sessions.values()) {
      if (life.closedBy !== 'server' || recording.endedByOperator.has(life.id)) continue;
      const cnxns = cnxnsOf.get(life.id) ?? [];
      const lastContactAtMs = lastContactMs(recording, life, cnxns, life.closedMs, 'at least');
      const timeoutMs = timeoutAt(life, cnxns, life.closedMs);
      if (life.closedMs + roundingMs >= lastContactAtMs + timeoutMs) continue;
      violations.push(
        `session 0x${life.id.toString(16)} expired at ${life.closedMs}, though a server had received something from it at ${lastContactAtMs} and its timeout was ${timeoutMs} ms`,
      );
    }
    return violations;
  },
};
