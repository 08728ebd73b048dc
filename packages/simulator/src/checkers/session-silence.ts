/**
 * How long a session was silent, as far as an outside observer can know. Both expiry checkers use
 * it.
 */
import { epochOf, type Millis } from '@tskeeper/protocol';
import { reignsOf, termsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import type { SessionLife } from '../replay/replay.ts';

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
export function lastHeard(
  recording: Recording,
  life: SessionLife,
  cnxns: readonly CnxnRecord[],
  untilMs: Millis,
  bound: 'at least' | 'at most',
): Millis {
  const { arrivals, fragments } = recording;
  let heardMs = life.openedMs;
  for (const { fromMs, servesMs } of beginnings(recording, life)) {
    if (fromMs > life.openedMs && servesMs <= untilMs) heardMs = Math.max(heardMs, bound === 'at least' ? fromMs : servesMs);
  }
  const passesOn = bound === 'at least' ? passingOn(recording, life, untilMs) : undefined;
  // A request for the session closes the connection that has it, even with a wrong password:
  // ZooKeeper closes it before it checks.
  const firstArrivals = cnxns.flatMap(({ key }) => arrivals.get(key)?.slice(0, 1) ?? []).toSorted((a, b) => a - b);
  for (const { key, session, garbledMs, shakenMs, server } of cnxns) {
    // A connection refused for a wrong password says nothing about the session; one that never got
    // a reply may.
    if (session === undefined ? bound === 'at least' : session === 0n) continue;
    const times = arrivals.get(key) ?? [];
    const cutMs = firstArrivals.find((atMs) => atMs > (times[0] ?? 0)) ?? Infinity;
    const overMs = bound === 'at least' ? Math.min(cutMs, garbledMs ?? Infinity) : Infinity;
    for (const atMs of times) {
      if (atMs <= untilMs && atMs < overMs && atMs > heardMs && passesOn?.(server, times[0]!, atMs) !== false) heardMs = atMs;
    }
    if (bound === 'at least') continue;
    // A part of a frame also shows that the client lives, and the handshake of a resumed session
    // may wait for the leader.
    for (const atMs of [...(fragments.get(key) ?? []), shakenMs]) if (atMs <= untilMs) heardMs = Math.max(heardMs, atMs);
  }
  return heardMs;
}

/**
 * The times from which each server, or each leader, counts the silence of the sessions it found.
 */
function beginnings(recording: Recording, { closedZxid }: SessionLife): { readonly fromMs: Millis; readonly servesMs: Millis }[] {
  if (recording.ensemble.size > 0) {
    const reigns = reignsOf(recording);
    const last = reigns.find(({ epoch }) => closedZxid !== Infinity && epoch === epochOf(closedZxid));
    // A leader of an earlier epoch that begins to serve after a later one neither expires nor
    // extends sessions.
    const counts = reigns.filter(({ epoch, fromMs }) => last === undefined || epoch >= last.epoch || fromMs < last.fromMs);
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
function passingOn(recording: Recording, life: SessionLife, untilMs: Millis): (server: string, sinceMs: Millis, atMs: Millis) => boolean {
  if (recording.ensemble.size === 0) return () => true;
  const epoch = epochOf(life.closedZxid);
  const reign = reignsOf(recording).find((each) => each.epoch === epoch);
  const terms = termsOf(recording);
  // A learner reports the sessions it heard from with each PING it answers, and the leader asks
  // when a session is due. A leader that was paused asks before it expires; a learner that is
  // paused or gone when its leader wakes may not be asked.
  const passingMs = recording.limits.tickMs;
  const wokenMs = (leader: string, atMs: Millis): Millis =>
    recording.pauses.reduce(
      (ms, each) => (each.server === leader && each.fromMs <= ms + passingMs && each.toMs > ms ? each.toMs : ms),
      atMs,
    );
  return (server, sinceMs, atMs) => {
    if (reign === undefined || sinceMs < reign.fromMs) return false;
    if (reign.server === server) return true;
    const thenMs = atMs + passingMs;
    const toldMs = wokenMs(reign.server, atMs) + passingMs;
    if (closesBefore(recording, server, atMs, toldMs)) return false;
    const isWith = terms.some((term) => term.server === server && term.epoch === epoch && term.fromMs <= sinceMs && term.toMs >= toldMs);
    return isWith && thenMs <= untilMs && isCalm(recording, [server, reign.server], [server], atMs, thenMs);
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
function isCalm(
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
    if (cnxn.timeoutMs === 0 || cnxn.shakenMs > untilMs || cnxn.shakenMs < latestMs) continue;
    latestMs = cnxn.shakenMs;
    timeoutMs = cnxn.timeoutMs;
  }
  return timeoutMs;
}

/** Txns carry whole milliseconds. */
export const roundingMs = 1;
