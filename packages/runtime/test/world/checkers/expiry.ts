/**
 * No session ends before its timeout has passed since it was last heard of, or since the server it may have spoken to has begun; and none
 * outlives it by more than two ticks while a server is at work.
 */
import type { Millis } from '@tskeeper/protocol';
import type { CnxnRecord, Recording } from '../recording.ts';
import type { Replay, SessionLife } from '../replay.ts';

/** Txns carry whole milliseconds. */
const roundingMs = 1;

export function expiry(recording: Recording, { sessions }: Replay): string[] {
  const faults: string[] = [];
  const cnxnsOf = new Map<bigint, CnxnRecord[]>();
  for (const cnxn of recording.cnxns) {
    // A handshake counts also when its answer never arrived.
    const session = cnxn.session ?? cnxn.asked;
    if (session === 0n) continue;
    const known = cnxnsOf.get(session);
    if (known === undefined) cnxnsOf.set(session, [cnxn]);
    else known.push(cnxn);
  }
  for (const life of sessions.values()) {
    if (life.closedBy === 'client') continue;
    const cnxns = cnxnsOf.get(life.id) ?? [];
    const name = `session 0x${life.id.toString(16)}`;
    const endMs = Math.min(life.closedMs, recording.endedMs);
    const heardMs = lastHeard(recording, life, cnxns, endMs, 'at least');
    const silentMs = lastHeard(recording, life, cnxns, endMs, 'at most');
    // The timeout that holds is that of the last handshake.
    const timeoutMs = timeoutAt(life, cnxns, endMs);
    if (!recording.stopsReading && life.closedBy === 'server' && life.closedMs + roundingMs < heardMs + timeoutMs) {
      faults.push(`${name} was ended at ${life.closedMs}, though it had been heard of at ${heardMs} and had ${timeoutMs} ms`);
    }
    // It cannot be ended while the server is down or stands still.
    if (
      !recording.holdsRequests &&
      !recording.stopsReading &&
      endMs > silentMs + timeoutMs + 2 * recording.tickMs + recording.pausedMs + roundingMs &&
      servedThroughout(recording, silentMs, endMs)
    ) {
      faults.push(`${name} had been silent since ${silentMs} and had ${timeoutMs} ms, and lived on to ${endMs}`);
    }
  }
  return faults;
}

/**
 * When the server last had reason to think that the session lives: a frame of it, or the server's own beginning. That lies somewhere
 * between its start and its first service; and a frame of a connection that another one has taken over may count or not.
 */
function lastHeard(
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
  const frames = cnxns.map(({ key }) => arrivals.get(key) ?? []).filter(({ length }) => length > 0);
  frames.sort((a, b) => a[0]! - b[0]!);
  for (const [index, times] of frames.entries()) {
    const overMs = bound === 'at least' ? (frames[index + 1]?.[0] ?? Infinity) : Infinity;
    for (const atMs of times) if (atMs <= untilMs && atMs < overMs && atMs > heardMs) heardMs = atMs;
  }
  return heardMs;
}

function timeoutAt(life: SessionLife, cnxns: readonly CnxnRecord[], untilMs: Millis): Millis {
  let { timeoutMs } = life;
  let latestMs = -1;
  for (const cnxn of cnxns) {
    if (cnxn.timeoutMs === 0 || cnxn.shakenMs > untilMs || cnxn.shakenMs < latestMs) continue;
    latestMs = cnxn.shakenMs;
    timeoutMs = cnxn.timeoutMs;
  }
  return timeoutMs;
}

function servedThroughout({ processes }: Recording, fromMs: Millis, toMs: Millis): boolean {
  return processes.some(({ startedMs, servingMs, closingMs, failedMs, endedMs }) => {
    const overMs = Math.min(closingMs ?? Infinity, failedMs ?? Infinity, endedMs ?? Infinity);
    return servingMs !== undefined && startedMs <= fromMs && overMs >= toMs;
  });
}
