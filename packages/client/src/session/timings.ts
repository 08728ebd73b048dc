/**
 * The times of a session, all of which follow from its time-out T as negotiated, by the rules of ZooKeeper's own client: servers and
 * operators count on them.
 */
import type { Millis } from '@tskeeper/protocol';
import { type Random, uniform } from '../clock.ts';

const paceMsMax = 600_000;

/**
 * The T that a client goes by: as granted, but no longer than it has asked for, or ten minutes if that is more. An absurd grant would else keep it for weeks with servers that have
 * fallen silent. A shorter T does no harm to the session, as it is pinged the more often.
 */
export function paceMs(grantedMs: Millis, askedMs: Millis): Millis {
  return Math.min(grantedMs, Math.max(askedMs, paceMsMax));
}

/** Nothing heard for so long: the server is given up, and a third of T is left to find another. */
export function readTimeoutMs(sessionTimeoutMs: Millis): Millis {
  return Math.floor((sessionTimeoutMs * 2) / 3);
}

/** A ping is never further away than this, so that a dead connection shows early even in long sessions. */
const pingIntervalMsMax = 10_000;
/** Taken off a long interval, so that the ping's answer still arrives before the read time-out. */
const pingMarginMs = 1000;

/** Nothing sent for so long: time for a ping. About a third of T. */
export function pingAfterMs(sessionTimeoutMs: Millis): Millis {
  const half = Math.floor(readTimeoutMs(sessionTimeoutMs) / 2);
  return half <= pingMarginMs ? Math.max(1, half) : Math.min(Math.max(half - pingMarginMs, pingMarginMs), pingIntervalMsMax);
}

/** Whatever T a server has granted, an attempt at the next one has a chance: else one absurd grant would lock the client out for good. */
const connectTimeoutMsMin = 250;

/**
 * For one attempt, from dialling to the end of the handshake: after T every server has had its chance. Addresses of one name share the
 * time of its server. Counts are at least 1.
 */
export function connectTimeoutMs(sessionTimeoutMs: Millis, serverCount: number, addressCount: number): Millis {
  return Math.max(connectTimeoutMsMin, Math.floor(sessionTimeoutMs / (serverCount * addressCount)));
}

/** Without a word from any server for so long, no ensemble can still know the session (ZOOKEEPER-4508). */
export function silenceMsMax(sessionTimeoutMs: Millis): Millis {
  return Math.floor((sessionTimeoutMs * 4) / 3);
}

const backoffMsFirst = 250;
const backoffMsMax = 1000;
/** However short T is, a server that fails at once is not tried again at once. */
const backoffMsMin = 50;

/**
 * The pause before the next attempt, random, so that the clients of a server that has died do not all knock at the next one in the same
 * instant. It doubles with each failure up to a second, and never takes more than a quarter of T.
 */
export function backoffMs(random: Random, failures: number, sessionTimeoutMs: Millis): Millis {
  const most = Math.min(backoffMsMax, backoffMsFirst * 2 ** Math.min(failures, 10), Math.max(backoffMsMin, sessionTimeoutMs / 4));
  return uniform(random, most);
}

/** A connection that held for so long was a good one; what ended it counts as a first failure again. */
export const steadyMs = 1000;

/** A wake that comes so much too late says that the process stood still, not that the server was silent. */
export const lateMs = 250;
/** How long input that waits then has to be seen: timers run ahead of it. */
export const graceMs = 500;

/**
 * A client that leaves a good connection for another server waits so long for the answers that are still to come. What a server that works has in
 * hand is answered by then; one that does not may be the very one that is taken out of the list.
 */
export const leaveMsMax = 1000;
