import type { Millis } from '@tskeeper/protocol';
import { reignsOf } from '../record/committed-history.ts';
import type { Recording } from '../record/recording.ts';
import type { Checker } from './checker.ts';
import { cnxnsBySession, lastHeard, roundingMs, timeoutAt } from './session-silence.ts';

export const lateExpiry: Checker = {
  property: 'P22',
  promise: 'No session outlives its timeout by more than two ticks while a server is at work.',
  check(recording, { sessions }) {
    const faults: string[] = [];
    const { limits, pauses } = recording;
    const pausedMs = pauses.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    // Word of a session comes to a leader with the next PING, or when what held it back is over.
    const passingMs = recording.ensemble.size === 0 ? 0 : limits.tickMs + disturbedMs(recording);
    if (limits.holdsRequests || limits.stopsReading) return faults;
    const cnxnsOf = cnxnsBySession(recording);
    for (const life of sessions.values()) {
      if (life.closedBy === 'client') continue;
      const cnxns = cnxnsOf.get(life.id) ?? [];
      const endMs = Math.min(life.closedMs, recording.endedMs);
      const silentMs = lastHeard(recording, life, cnxns, endMs, 'at most');
      const timeoutMs = timeoutAt(life, cnxns, endMs);
      // It cannot be ended while the server is down or stands still.
      if (endMs <= silentMs + timeoutMs + 2 * limits.tickMs + pausedMs + passingMs + roundingMs) continue;
      if (!servedThroughout(recording, silentMs, endMs)) continue;
      faults.push(`session 0x${life.id.toString(16)} had been silent since ${silentMs} and had ${timeoutMs} ms, and lived on to ${endMs}`);
    }
    return faults;
  },
};

function disturbedMs({ disturbances }: Recording): Millis {
  return disturbances.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
}

function servedThroughout(recording: Recording, fromMs: Millis, toMs: Millis): boolean {
  if (recording.ensemble.size > 0) return reignsOf(recording).some((reign) => reign.fromMs <= fromMs && reign.toMs >= toMs);
  return recording.processes.some(({ startedMs, servingMs, closingMs, failedMs, endedMs }) => {
    const overMs = Math.min(closingMs ?? Infinity, failedMs ?? Infinity, endedMs ?? Infinity);
    return servingMs !== undefined && startedMs <= fromMs && overMs >= toMs;
  });
}
