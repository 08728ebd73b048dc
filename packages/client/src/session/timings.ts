/**
 * The times of a session. All follow from its negotiated time-out T, by the rules of ZooKeeper's
 * own client, which servers and operators rely on.
 */
import type { Millis } from '@tskeeper/protocol';
import { type Random, uniform } from '../clock.ts';

const effectiveTimeoutMsMax = 600_000;

/**
 * The T that the client uses: the granted one, but at most what it asked for, or ten minutes if
 * that is more. Otherwise an absurd grant would keep it for weeks with servers that have fallen
 * silent. A shorter T does not harm the session, as the client then pings more often.
 */
export function effectiveTimeoutMs(grantedMs: Millis, askedMs: Millis): Millis {
  return Math.min(grantedMs, Math.max(askedMs, effectiveTimeoutMsMax));
}

/**
 * After this time without input the client leaves the server; a third of T remains to find another.
 */
export function readTimeoutMs(sessionTimeoutMs: Millis): Millis {
  return Math.floor((sessionTimeoutMs * 2) / 3);
}

/**
 * Maximum interval between pings, so that a dead connection is detected early even in long
 * sessions.
 */
const pingIntervalMsMax = 10_000;
/** Subtracted from a long interval, so that the ping is answered before the read time-out. */
const pingMarginMs = 1000;

/** After this time without output the client sends a ping. About a third of T. */
export function pingAfterMs(sessionTimeoutMs: Millis): Millis {
  const half = Math.floor(readTimeoutMs(sessionTimeoutMs) / 2);
  return half <= pingMarginMs ? Math.max(1, half) : Math.min(Math.max(half - pingMarginMs, pingMarginMs), pingIntervalMsMax);
}

/**
 * Minimum time of an attempt, whatever T a server has granted: otherwise one absurd grant would
 * lock the client out for good.
 */
const connectTimeoutMsMin = 250;

/**
 * The time for one attempt, from dialling to the end of the handshake: within T every server gets
 * an attempt. The addresses of one name share the time of their server. Counts are at least 1.
 */
export function connectTimeoutMs(sessionTimeoutMs: Millis, serverCount: number, addressCount: number): Millis {
  return Math.max(connectTimeoutMsMin, Math.floor(sessionTimeoutMs / (serverCount * addressCount)));
}

/**
 * After this time without contact to any server, no ensemble can still know the session
 * (ZOOKEEPER-4508).
 */
export function localExpiryMs(sessionTimeoutMs: Millis): Millis {
  return Math.floor((sessionTimeoutMs * 4) / 3);
}

const backoffMsFirst = 250;
const backoffMsMax = 1000;
/** However short T is, a server that fails at once is not tried again at once. */
const backoffMsMin = 50;

/**
 * The pause before the next attempt. It is random, so that the clients of a dead server do not all
 * connect to the next one at the same moment. It doubles with each failure up to a second, and is
 * at most a quarter of T.
 */
export function backoffMs(random: Random, failures: number, sessionTimeoutMs: Millis): Millis {
  const most = Math.min(backoffMsMax, backoffMsFirst * 2 ** Math.min(failures, 10), Math.max(backoffMsMin, sessionTimeoutMs / 4));
  return uniform(random, most);
}

/** A connection that lasted this long was good; its loss counts as a first failure again. */
export const stableMs = 1000;

/** A wake that is this late means that the process was paused, not that the server was silent. */
export const lateWakeMs = 250;
/** Time to read waiting input after such a pause: timers run before input. */
export const lateWakeGraceMs = 500;

/**
 * How long a client that leaves a good connection for another server waits for pending answers. A
 * working server has answered by then; one that has not may be the very server that was removed
 * from the list.
 */
export const drainMsMax = 1000;
