/** How long a session was silent, as far as anyone can know from outside: what both checkers of expiry go by. */
import { epochOf, type Millis } from '@tskeeper/protocol';
import { reignsOf, termsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import type { SessionLife } from '../replay/replay.ts';

/** Connections by the session they had, or asked for. */
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
 * When the server last had reason to think that the session lives: a frame of it, or the server's own beginning. That lies somewhere
 * between its start and its first service; and a frame of a connection that another one has taken over may count or not. In an ensemble the
 * server is the leader: a frame that reaches another server counts when word of it has been passed on.
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
  // Whoever asks for the session cuts the connection that has it, a wrong password or not: ZooKeeper does so before it looks.
  const firstArrivals = cnxns.flatMap(({ key }) => arrivals.get(key)?.slice(0, 1) ?? []).toSorted((a, b) => a - b);
  for (const { key, session, garbledMs, shakenMs, server } of cnxns) {
    // One that came with a wrong password has not spoken for the session; one that was never answered may have.
    if (session === undefined ? bound === 'at least' : session === 0n) continue;
    const times = arrivals.get(key) ?? [];
    const cutMs = firstArrivals.find((atMs) => atMs > (times[0] ?? 0)) ?? Infinity;
    const overMs = bound === 'at least' ? Math.min(cutMs, garbledMs ?? Infinity) : Infinity;
    for (const atMs of times) {
      if (atMs <= untilMs && atMs < overMs && atMs > heardMs && passesOn?.(server, times[0]!, atMs) !== false) heardMs = atMs;
    }
    if (bound === 'at least') continue;
    // A part of a frame shows that its client lives, too; and one that comes back may have to wait for the word of a leader.
    for (const atMs of [...(fragments.get(key) ?? []), shakenMs]) if (atMs <= untilMs) heardMs = Math.max(heardMs, atMs);
  }
  return heardMs;
}

/** From when on each server, or each leader, has counted the silence of the sessions that it found. */
function beginnings(recording: Recording, { closedZxid }: SessionLife): { readonly fromMs: Millis; readonly servesMs: Millis }[] {
  if (recording.ensemble.size > 0) {
    const reigns = reignsOf(recording);
    const last = reigns.find(({ epoch }) => closedZxid !== Infinity && epoch === epochOf(closedZxid));
    // A leader of an earlier epoch that comes to serve when a later one does already ends nothing, and grants nothing.
    const counts = reigns.filter(({ epoch, fromMs }) => last === undefined || epoch >= last.epoch || fromMs < last.fromMs);
    return counts.map(({ fromMs }) => ({ fromMs, servesMs: fromMs }));
  }
  return recording.processes.flatMap(({ startedMs, servingMs }) =>
    servingMs === undefined ? [] : [{ fromMs: startedMs, servesMs: servingMs }],
  );
}

/**
 * Whether word of a frame that reached a server has surely reached the leader who ended the session, before it did. Over a connection that
 * began, at `sinceMs`, before its server was with that leader, nothing is heard any more: it is closed, and its client may not know.
 */
function passingOn(recording: Recording, life: SessionLife, untilMs: Millis): (server: string, sinceMs: Millis, atMs: Millis) => boolean {
  if (recording.ensemble.size === 0) return () => true;
  const epoch = epochOf(life.closedZxid);
  const reign = reignsOf(recording).find((each) => each.epoch === epoch);
  const terms = termsOf(recording);
  // With each PING that it answers a learner tells of whom it has heard, and its leader asks when a session is due. However long the leader stands
  // still, it asks before it ends one; a learner that stands still, or is gone when its leader wakes, may be asked no more.
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

/** Whether a process that ran at `atMs` was told to close by `untilMs`: from then on it reads nothing, neither from clients nor from its leader. */
function closesBefore({ processes }: Recording, server: string, atMs: Millis, untilMs: Millis): boolean {
  return processes.some((process) => {
    const { startedMs, closingMs = Infinity, endedMs = Infinity } = process;
    return process.server === server && startedMs <= atMs && endedMs >= atMs && closingMs <= untilMs;
  });
}

/** Nothing was wrong between these machines or between them and others, and none of those `awake` stood still. */
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

/** The timeout that holds is that of the last handshake. */
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
