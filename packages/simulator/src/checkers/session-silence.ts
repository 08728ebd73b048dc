/** How long a session was silent, as far as anyone can know from outside: what both checkers of expiry go by. */
import type { Millis } from '@tskeeper/protocol';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import type { SessionLife } from '../replay/replay.ts';

/** Connections by session. A handshake counts also when its answer never arrived. */
export function cnxnsBySession({ cnxns }: Recording): Map<bigint, CnxnRecord[]> {
  const found = new Map<bigint, CnxnRecord[]>();
  for (const cnxn of cnxns) {
    const session = cnxn.session ?? cnxn.handshake?.sessionId ?? 0n;
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
  // One that came with a wrong password has not spoken for the session; one that was never answered may have.
  const lines = cnxns
    .filter(({ session }) => (session === undefined ? bound === 'at most' : session !== 0n))
    .map(({ key, garbledMs }) => ({ times: arrivals.get(key) ?? [], garbledMs }))
    .filter(({ times }) => times.length > 0);
  lines.sort((a, b) => a.times[0]! - b.times[0]!);
  for (const [index, { times, garbledMs }] of lines.entries()) {
    const overMs = bound === 'at least' ? Math.min(lines[index + 1]?.times[0] ?? Infinity, garbledMs ?? Infinity) : Infinity;
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
