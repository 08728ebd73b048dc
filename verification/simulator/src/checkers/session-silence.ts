/**
 * How long a session was silent, as far as an outside observer can know. Both expiry checkers use
 * it.
 */
import { epochOf, type Millis } from '@tskeeper/protocol';
import { leaderEpochsOf, servingPeriodsOf } from '../record/committed-history.ts';
import { observersOfFollowers } from '../record/observers-of-followers.ts';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import type { SessionLife } from '../replay/replay-result.ts';

/** Connections by the session that they had or requested. */
export function cnxnsBySession({ cnxns }: Recording): Map<bigint, CnxnRecord[]> {
  const found = new Map<bigint, CnxnRecord[]>();
  for (const cnxn of cnxns) {
    const had = cnxn.session ?? 0n;
    const session = had === 0n ? (cnxn.handshake?.sessionId ?? 0n) : had;
    if (session === 0n) continue;
    const known = found.get(session);
    if (known === undefined) found.set(session, [cnxn]);
    else known.push(cnxn);
  }
  return found;
}

/**
 * When the server last had a reason to regard the session as alive: a frame from it, or the
 * server's own start. The start counts somewhere between the process's start and its first service,
 * and a frame of a connection that another one took over may count or not; `bound` chooses. In an
 * ensemble the server is the leader, and a frame that reaches another server counts when the leader
 * learns of it.
 */
export function lastContactMs(
  recording: Recording,
  life: SessionLife,
  cnxns: readonly CnxnRecord[],
  untilMs: Millis,
  bound: 'at least' | 'at most',
): Millis {
  const { frameArrivals, partialArrivals } = recording;
  let contactMs = life.openedMs;
  for (const { fromMs, servesMs } of countingStarts(recording, life)) {
    if (fromMs > life.openedMs && servesMs <= untilMs) contactMs = Math.max(contactMs, bound === 'at least' ? fromMs : servesMs);
  }
  const reachesLeader = bound === 'at least' ? reachesLeaderInTime(recording, life, untilMs) : undefined;
  // A request for the session closes the connection that has it, even with a wrong password:
  // ZooKeeper closes it before it checks.
  const firstArrivals = cnxns.flatMap(({ key }) => frameArrivals.get(key)?.slice(0, 1) ?? []).toSorted((a, b) => a - b);
  for (const { key, session, malformedMs, handshakeMs, server } of cnxns) {
    // A connection refused for a wrong password says nothing about the session; one that never got
    // a reply may.
    if (session === undefined ? bound === 'at least' : session === 0n) continue;
    const times = frameArrivals.get(key) ?? [];
    const takenOverMs = firstArrivals.find((atMs) => atMs > (times[0] ?? 0)) ?? Infinity;
    const overMs = bound === 'at least' ? Math.min(takenOverMs, malformedMs ?? Infinity) : Infinity;
    for (const atMs of times) {
      if (atMs <= untilMs && atMs < overMs && atMs > contactMs && reachesLeader?.(server, times[0]!, atMs) !== false) contactMs = atMs;
    }
    if (bound === 'at least') continue;
    // A part of a frame also shows that the client lives, and the handshake of a resumed session
    // may wait for the leader.
    for (const atMs of [...(partialArrivals.get(key) ?? []), handshakeMs]) if (atMs <= untilMs) contactMs = Math.max(contactMs, atMs);
  }
  return contactMs;
}

/**
 * The times from which each server, or each leader, counts the silence of the sessions it found.
 */
function countingStarts(recording: Recording, { closedZxid }: SessionLife): { readonly fromMs: Millis; readonly servesMs: Millis }[] {
  if (recording.ensemble.size > 0) {
    const leaderEpochs = leaderEpochsOf(recording);
    const last = leaderEpochs.find(({ epoch }) => closedZxid !== Infinity && epoch === epochOf(closedZxid));
    // A leader of an earlier epoch that begins to serve after a later one neither expires nor
    // extends sessions.
    const counts = leaderEpochs.filter(({ epoch, fromMs }) => last === undefined || epoch >= last.epoch || fromMs < last.fromMs);
    return counts.map(({ fromMs }) => ({ fromMs, servesMs: fromMs }));
  }
  return recording.processes.flatMap(({ startedMs, servingMs }) =>
    servingMs === undefined ? [] : [{ fromMs: startedMs, servesMs: servingMs }],
  );
}

/**
 * Whether the leader that expired the session surely learned of a frame on a server before it did
 * so. Frames over a connection that began, at `sinceMs`, before its server joined that leader do
 * not count: the server closed it, and its client may not know.
 */
function reachesLeaderInTime(
  recording: Recording,
  life: SessionLife,
  untilMs: Millis,
): (server: string, sinceMs: Millis, atMs: Millis) => boolean {
  if (recording.ensemble.size === 0) return () => true;
  const epoch = epochOf(life.closedZxid);
  const leaderEpoch = leaderEpochsOf(recording).find((each) => each.epoch === epoch);
  const servingPeriods = servingPeriodsOf(recording);
  const far = observersOfFollowers(recording);
  // A learner reports the active sessions with each PING it answers, and the leader asks when a
  // session is due. A leader that was paused asks before it expires; a learner that is paused or
  // gone when its leader wakes may not be asked.
  const tickMs = recording.limits.tickMs;
  const resumedMs = (leader: string, atMs: Millis): Millis =>
    recording.pauses.reduce((ms, each) => (each.server === leader && each.fromMs <= ms + tickMs && each.toMs > ms ? each.toMs : ms), atMs);
  return (server, sinceMs, atMs) => {
    if (leaderEpoch === undefined || sinceMs < leaderEpoch.fromMs) return false;
    if (leaderEpoch.server === server) return true;
    // An observer of a follower reports to it, and the follower to the leader. Which follower that
    // is does not matter here, since none may be disturbed.
    const isFar = far.has(server);
    const pingIntervalMs = isFar ? 2 * tickMs : tickMs;
    const between = isFar ? [...recording.ensemble.keys()] : [server];
    const thenMs = atMs + pingIntervalMs;
    const toldMs = resumedMs(leaderEpoch.server, atMs) + pingIntervalMs;
    if (closesBefore(recording, server, atMs, toldMs)) return false;
    const isLearnerOfLeader = servingPeriods.some(
      (servingPeriod) =>
        servingPeriod.server === server && servingPeriod.epoch === epoch && servingPeriod.fromMs <= sinceMs && servingPeriod.toMs >= toldMs,
    );
    return isLearnerOfLeader && thenMs <= untilMs && isUndisturbed(recording, [...between, leaderEpoch.server], between, atMs, toldMs);
  };
}

/**
 * Whether a process that ran at `atMs` was asked to close by `untilMs`: after that it reads nothing
 * from clients or its leader.
 */
function closesBefore({ processes }: Recording, server: string, atMs: Millis, untilMs: Millis): boolean {
  return processes.some((process) => {
    const { startedMs, closingMs = Infinity, endedMs = Infinity } = process;
    return process.server === server && startedMs <= atMs && endedMs >= atMs && closingMs <= untilMs;
  });
}

/** Whether the links of these machines were undisturbed and none of those `awake` was paused. */
function isUndisturbed(
  { disturbances, pauses }: Recording,
  servers: readonly string[],
  awake: readonly string[],
  fromMs: Millis,
  toMs: Millis,
): boolean {
  const isMeanwhile = (each: { readonly fromMs: Millis; readonly toMs: Millis }) => each.fromMs <= toMs && each.toMs >= fromMs;
  return (
    !disturbances.some((each) => isMeanwhile(each) && servers.some((server) => each.machines.includes(server))) &&
    !pauses.some((each) => isMeanwhile(each) && awake.includes(each.server))
  );
}

/** The timeout in force is that of the last handshake. */
export function timeoutAt(life: SessionLife, cnxns: readonly CnxnRecord[], untilMs: Millis): Millis {
  let { timeoutMs } = life;
  let latestMs = -1;
  for (const cnxn of cnxns) {
    if (cnxn.timeoutMs === 0 || cnxn.handshakeMs > untilMs || cnxn.handshakeMs < latestMs) continue;
    latestMs = cnxn.handshakeMs;
    timeoutMs = cnxn.timeoutMs;
  }
  return timeoutMs;
}

/** Txns carry whole milliseconds. */
export const roundingMs = 1;
