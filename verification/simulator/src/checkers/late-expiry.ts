import type { Millis } from '@tskeeper/protocol';
import { leaderEpochsOf } from '../record/committed-history.ts';
import { observersOfFollowers } from '../record/observers-of-followers.ts';
import type { Recording } from '../record/recording.ts';
import type { SessionLife } from '../replay/replay-result.ts';
import type { Checker } from './checker.ts';
import { cnxnsBySession, lastContactMs, roundingMs, timeoutAt } from './session-silence.ts';

export const lateExpiry: Checker = {
  property: 'P22',
  promise: 'A dead session ends within its timeout plus two ticks while a server serves.',
  casesExercised: (recording, { sessions }) => silences(recording, sessions.values()).length,
  check(recording, { sessions }) {
    const violations: string[] = [];
    const { limits } = recording;
    for (const { life, silentMs, endMs, timeoutMs } of silences(recording, sessions.values())) {
      // A session cannot end while the server is paused, nor before news of the session or of its
      // silence arrives through delayed links.
      const lateMs = 2 * limits.tickMs + excusedMs(recording, silentMs, endMs) + roundingMs;
      if (endMs <= silentMs + timeoutMs + lateMs) continue;
      violations.push(
        `session 0x${life.id.toString(16)} sent nothing since ${silentMs} and had a timeout of ${timeoutMs} ms, but lived until ${endMs}`,
      );
    }
    return violations;
  },
};

/**
 * Sessions that their clients did not close and whose last silence one server, or one leader,
 * observed from beginning to end.
 */
function silences(recording: Recording, lives: Iterable<SessionLife>) {
  const cnxnsOf = cnxnsBySession(recording);
  return [...lives].flatMap((life) => {
    if (life.closedBy === 'client') return [];
    const cnxns = cnxnsOf.get(life.id) ?? [];
    const endMs = Math.min(life.closedMs, recording.endedMs);
    const silentMs = lastContactMs(recording, life, cnxns, endMs, 'at most');
    const timeoutMs = timeoutAt(life, cnxns, endMs);
    return servedThroughout(recording, silentMs, endMs) ? [{ life, silentMs, endMs, timeoutMs }] : [];
  });
}

/** How long the end may be delayed: only what overlaps with the silence counts. */
function excusedMs(recording: Recording, fromMs: Millis, toMs: Millis): Millis {
  const { disturbances, jobs, pauses, processes, ensemble, limits } = recording;
  const overlapMs = (each: { readonly fromMs: Millis; readonly toMs: Millis }) =>
    Math.max(0, Math.min(each.toMs, toMs) - Math.max(each.fromMs, fromMs));
  let totalMs = pauses.reduce((sum, each) => sum + overlapMs(each), 0);
  // A session that is due ends when the job in progress is done, before the next one starts.
  totalMs += jobs.reduce((longest, each) => Math.max(longest, overlapMs(each)), 0);
  if (ensemble.size === 0) return totalMs;
  // Learners report the sessions from which they received something with the next PING. The leader
  // waits up to syncLimit for a server that vanished.
  const silenceMaxMs = ((limits.syncLimitTicks ?? 0) + 1) * limits.tickMs;
  // Observers of followers report to those first.
  const hops = observersOfFollowers(recording).size > 0 ? 2 : 1;
  totalMs += hops * (limits.tickMs + recording.linkDistanceMs) + disturbances.reduce((sum, each) => sum + overlapMs(each), 0);
  const hasServerGone = processes.some(({ endedMs = Infinity }) => endedMs >= fromMs - silenceMaxMs && endedMs <= toMs);
  return hasServerGone ? totalMs + hops * silenceMaxMs : totalMs;
}

function servedThroughout(recording: Recording, fromMs: Millis, toMs: Millis): boolean {
  if (recording.ensemble.size > 0)
    return leaderEpochsOf(recording).some((leaderEpoch) => leaderEpoch.fromMs <= fromMs && leaderEpoch.toMs >= toMs);
  return recording.processes.some(({ startedMs, servingMs, closingMs, failedMs, endedMs }) => {
    const overMs = Math.min(closingMs ?? Infinity, failedMs ?? Infinity, endedMs ?? Infinity);
    return servingMs !== undefined && startedMs <= fromMs && overMs >= toMs;
  });
}
