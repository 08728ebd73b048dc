import type { Checker } from './checker.ts';
import { cnxnsBySession, lastHeard, roundingMs, timeoutAt } from './session-silence.ts';

export const earlyExpiry: Checker = {
  property: 'P21',
  promise:
    'No session expires before its timeout has passed since a server last received something from it, or since the server or leader that expires it started to serve.',
  judged: (_recording, { sessions }) => [...sessions.values()].filter(({ closedBy }) => closedBy === 'server').length,
  check(recording, { sessions }) {
    const faults: string[] = [];
    const cnxnsOf = cnxnsBySession(recording);
    for (const life of sessions.values()) {
      if (life.closedBy !== 'server') continue;
      const cnxns = cnxnsOf.get(life.id) ?? [];
      const heardMs = lastHeard(recording, life, cnxns, life.closedMs, 'at least');
      const timeoutMs = timeoutAt(life, cnxns, life.closedMs);
      if (life.closedMs + roundingMs >= heardMs + timeoutMs) continue;
      faults.push(
        `session 0x${life.id.toString(16)} expired at ${life.closedMs}, though a server had received something from it at ${heardMs} and its timeout was ${timeoutMs} ms`,
      );
    }
    return faults;
  },
};
