import type { Millis, SessionId, Zxid } from '@tskeeper/protocol';
import type { CnxnContext } from './cnxn/cnxn-context.ts';
import type { CloseReason, CnxnId } from './out.ts';

/** What an operator should hear of, once, in words. The runtime logs it. */
export type Notice =
  | {
      readonly kind: 'quotaSoftLimit';
      readonly path: string;
      readonly what: 'count' | 'bytes';
      readonly usage: number;
      readonly limit: number;
    }
  | { readonly kind: 'digestMismatch'; readonly zxid: Zxid }
  | { readonly kind: 'containerSwept'; readonly path: string };

/**
 * Hears what happens, in order, and may neither answer nor throw. Metrics, the audit log, the slow log and traces hang on it, so that
 * no decision is mixed with its bookkeeping. Calls are made on the request path: an implementation counts and returns.
 */
export interface Observer {
  cnxnOpened(cnxn: CnxnId, context: CnxnContext): void;
  /** `reason` is undefined when the other side went away by itself. */
  cnxnClosed(cnxn: CnxnId, reason: CloseReason | undefined): void;
  /** A provider has judged credentials. `id` is what would stand in an ACL, empty when refused. */
  authenticated(cnxn: CnxnId, scheme: string, id: string, accepted: boolean): void;
  /** A request has been decoded and its session touched. `frameBytes` includes the length prefix. */
  admitted(cnxn: CnxnId, opCode: number, frameBytes: number): void;
  /** A request was turned away before it was judged: throttled, oversized, stale, or on a session that is gone. */
  refused(cnxn: CnxnId, opCode: number, errorCode: number): void;
  /** A write has its zxid and goes to the log. `bytes` is the size of the log entry's txn bytes. */
  proposed(zxid: Zxid, txnType: number, bytes: number): void;
  /** A txn has changed the tree, or an error txn has taken its turn. `errorCode` is 0 for a change. */
  applied(zxid: Zxid, txnType: number, errorCode: number): void;
  /** A reply has been written. `latencyMs` runs from the request's arrival. `write` tells updates from reads. */
  replied(cnxn: CnxnId, opCode: number, errorCode: number, latencyMs: Millis, bytes: number, write: boolean): void;
  /** One change has fired `count` watches. */
  watchesFired(eventType: number, count: number): void;
  sessionOpened(session: SessionId, timeoutMs: Millis): void;
  sessionClosed(session: SessionId, expired: boolean): void;
  /** A session was taken up again by a new connection, or refused to it. */
  sessionRevalidated(session: SessionId, accepted: boolean): void;
  roleChanged(role: 'standalone' | 'leader' | 'follower' | 'observer' | 'looking' | 'read-only'): void;
  notice(notice: Notice): void;
}

/** The default: nobody listens. */
export const silentObserver: Observer = {
  cnxnOpened() {},
  cnxnClosed() {},
  authenticated() {},
  admitted() {},
  refused() {},
  proposed() {},
  applied() {},
  replied() {},
  watchesFired() {},
  sessionOpened() {},
  sessionClosed() {},
  sessionRevalidated() {},
  roleChanged() {},
  notice() {},
};
