import { type SessionId, sessionHigh, sessionIdOf, sessionLow } from '@tskeeper/protocol';

/**
 * A session, by the two int32 halves of its id. A connection has these two fields, made once at its
 * handshake, and so has every request, sync and answer that concerns a session: each of them is
 * handed over as the session itself, and nothing is allocated to name one. Tables are keyed by the
 * halves (docs/decisions/session-halves.md).
 */
export interface SessionRef {
  readonly sessionHigh: number;
  readonly sessionLow: number;
}

export function sessionRefOf(id: SessionId): SessionRef {
  return { sessionHigh: sessionHigh(id), sessionLow: sessionLow(id) };
}

/** A bigint, as observers and operators get it; not for the path of each request. */
export function idOfSession({ sessionHigh: high, sessionLow: low }: SessionRef): SessionId {
  return sessionIdOf(high, low);
}
