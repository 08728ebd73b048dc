/**
 * What a client tells of its work while it works: each call from beginning to end, and what becomes of the session. A tracer is handed in like
 * the clock; the default publishes on Node's diagnostics channels (src/node), and asks first whether anybody listens.
 *
 * Being traced changes nothing for the program: no promise is settled a turn later for it, and nothing a tracer is told can fail a call.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { KeeperState, NodeEventType } from './watched-event.ts';
import type { Reread } from './watches/change-queue.ts';

/**
 * A call of the program, from `start` to `asyncEnd`. It is one object all the while, and what is not known at first is filled in on the way: so it
 * can stand for the call, as the key of a WeakMap.
 */
export interface TracedCall {
  /** The method: `create`. */
  readonly op: string;
  /** As the program gave it, without the chroot; undefined for a call without one path. */
  readonly path: string | undefined;
  /** What stands in front of `path` for the servers. Empty where there is no chroot, or where the call does not heed it (`getConfig`). */
  readonly chroot: string;
  /** Whether it consists of steps that are told as calls of their own, as `deleteRecursive` does. Then it has no `xid` itself. */
  readonly isCompound: boolean;
  /** The session; 0n in a `connect` that has none yet. */
  sessionId: SessionId;
  /** Which time the request is being made, from 1; more only with `retry`. */
  attempt: number;
  /** `host:port` of the server that was asked, as the list of servers names it; undefined until it is known, and for what was not sent. */
  server: string | undefined;
  /** The number of the request on the wire, the last one if there were several; undefined until it is settled, and for what was not sent. */
  xid: number | undefined;
  /** The zxid of the answer: of the txn for a write, the last one the server had applied for a read. undefined as long as there is none. */
  zxid: bigint | undefined;
  /** What the call resolves with, once it does; the very object that the program gets. */
  result?: unknown;
  /** What the call rejects with, once it does: a KeeperError, or the reason of a signal. */
  error?: unknown;
}

/** What can become of a session. Paths are those the servers know, with the chroot. */
export type SessionNews =
  /** The state has changed, with one clause that says why. */
  | { readonly kind: 'state'; readonly state: KeeperState; readonly reason: string | undefined }
  /** A server could not be reached, or would not have the session; another one is tried. */
  | { readonly kind: 'attemptFailed'; readonly reason: string }
  /** A server has told of a change. */
  | { readonly kind: 'watch'; readonly type: NodeEventType; readonly path: string; readonly zxid: bigint | undefined }
  /** A loop over the path was told that changes may be missing. */
  | ({ readonly kind: 'reread'; readonly path: string } & Omit<Reread, 'type'>);

/** What has become of which session. */
export type TracedSessionEvent = SessionNews & {
  /** 0n as long as no server has opened it. */
  readonly sessionId: SessionId;
  /** The server it is about: the one that is connected or tried, or was last; undefined before the first. */
  readonly server: string | undefined;
};

/** Hears what a client does. It must not throw. */
export interface Tracer {
  /** Asked ahead of each call: one that begins while nobody listens is not told, and costs no more than this. */
  readonly hearsCalls: boolean;
  /** Asked ahead of each event of the session. */
  readonly hearsSession: boolean;
  /** Tells the start of a call, does the part of it that is done at once, tells the end of that part, and returns the very promise. */
  run<Result>(call: TracedCall, work: () => Promise<Result>): Promise<Result>;
  /** The call has its `result` or its `error`; the program is told right behind. */
  settled(call: TracedCall): void;
  /** Something has become of the session. */
  session(event: TracedSessionEvent): void;
}

/** A call at its beginning. */
export function tracedCall(
  op: string,
  sessionId: SessionId,
  where: Partial<Pick<TracedCall, 'path' | 'chroot' | 'isCompound'>> = {},
): TracedCall {
  const { path, chroot = '', isCompound = false } = where;
  return { op, path, chroot, isCompound, sessionId, attempt: 1, server: undefined, xid: undefined, zxid: undefined };
}

/** Notes down how a call has ended, and tells it. */
export function succeeded(tracer: Tracer, call: TracedCall, result: unknown): void {
  call.result = result;
  tracer.settled(call);
}

/** The same for one that has failed. */
export function failed(tracer: Tracer, call: TracedCall, error: unknown): void {
  call.error = error;
  tracer.settled(call);
}
