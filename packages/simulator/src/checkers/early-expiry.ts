import type { Checker } from './checker.ts';
import { cnxnsBySession, lastHeard, roundingMs, timeoutAt } from './session-silence.ts';

export const earlyExpiry: Checker = {
  property: 'P21',
  promise: 'No session ends before its timeout has passed since it was last heard of, or since the server it speaks to has begun.',
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
        `session 0x${life.id.toString(16)} was ended at ${life.closedMs}, though it had been heard of at ${heardMs} and had ${timeoutMs} ms`,
      );
    }
    return faults;
  },
};
