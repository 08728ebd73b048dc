/** How long a session was silent, as far as anyone can know from outside: what both checkers of expiry go by. */
import type { Millis } from '@tskeeper/protocol';
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
 * between its start and its first service; and a frame of a connection that another one has taken over may count or not.
 */
export function lastHeard(
  { processes, arrivals }: Recording,
  life: SessionLife,
  cnxns: readonly CnxnRecord[],
  untilMs: Millis,
  bound: 'at least' | 'at most',
): Millis {
  let heardMs = life.openedMs;
  for (const { startedMs, servingMs } of processes) {
    if (startedMs > life.openedMs && servingMs !== undefined && servingMs <= untilMs) {
      heardMs = Math.max(heardMs, bound === 'at least' ? startedMs : servingMs);
    }
  }
  // Whoever asks for the session cuts the connection that has it, a wrong password or not: ZooKeeper does so before it looks.
  const firstArrivals = cnxns.flatMap(({ key }) => arrivals.get(key)?.slice(0, 1) ?? []).toSorted((a, b) => a - b);
  for (const { key, session, garbledMs } of cnxns) {
    // One that came with a wrong password has not spoken for the session; one that was never answered may have.
    if (session === undefined ? bound === 'at least' : session === 0n) continue;
    const times = arrivals.get(key) ?? [];
    const cutMs = firstArrivals.find((atMs) => atMs > (times[0] ?? 0)) ?? Infinity;
    const overMs = bound === 'at least' ? Math.min(cutMs, garbledMs ?? Infinity) : Infinity;
    for (const atMs of times) if (atMs <= untilMs && atMs < overMs && atMs > heardMs) heardMs = atMs;
  }
  return heardMs;
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
