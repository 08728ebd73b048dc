/**
 * Reports the work of a client while it happens: each call from start to end, and each change of
 * the session. A tracer is injected like the clock; the default publishes on Node's diagnostics
 * channels (src/node), and first checks whether there are subscribers.
 *
 * Tracing does not affect the program: no promise settles a turn later because of it, and a tracer
 * cannot make a call fail.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { KeeperState, NodeEventType } from './watched-event.ts';
import type { Reread } from './watches/change-queue.ts';

/**
 * A call of the program, from `start` to `asyncEnd`. It is the same object all the time, and the
 * client fills in fields as they become known, so it can identify the call, for example as the key
 * of a WeakMap.
 */
export interface TracedCall {
  /** The method: `create`. */
  readonly op: string;
  /**
   * The path that the program passed, without the chroot; undefined for a call without exactly one
   * path.
   */
  readonly path: string | undefined;
  /**
   * The prefix that the client adds to `path`. Empty if there is no chroot, or if the call ignores
   * it (`getConfig`).
   */
  readonly chroot: string;
  /**
   * Whether the call consists of steps that are reported as calls too, as `deleteRecursive` does.
   * Such a call has no `xid`.
   */
  readonly isCompound: boolean;
  /** The session; 0n in a `connect` that has none yet. */
  sessionId: SessionId;
  /** The number of the attempt, from 1; above 1 only with `retry`. */
  attempt: number;
  /**
   * `host:port` of the server that received the request, as the list of servers names it; undefined
   * until it is known, and if the request was not sent.
   */
  server: string | undefined;
  /**
   * The xid of the request, or of the last one if there were several; undefined until the call
   * settles, and if no request was sent.
   */
  xid: number | undefined;
  /**
   * The zxid of the answer: that of the txn for a write, that of the last txn that the server had
   * applied for a read. undefined until there is an answer.
   */
  zxid: bigint | undefined;
  /** The result of the call, once it resolves: the same object that the program receives. */
  result?: unknown;
  /** The error of the call, once it rejects: a KeeperError, or the reason of a signal. */
  error?: unknown;
}

/** A change of a session. Paths are those of the server, including the chroot. */
export type SessionTraceDetail =
  /** The state has changed; `reason` is one clause. */
  | { readonly kind: 'state'; readonly state: KeeperState; readonly reason: string | undefined }
  /** A server could not be reached, or rejected the session; the client tries another one. */
  | { readonly kind: 'attemptFailed'; readonly reason: string }
  /** A server has reported a change. */
  | { readonly kind: 'watch'; readonly type: NodeEventType; readonly path: string; readonly zxid: bigint | undefined }
  /** A watch loop has received a `Reread`: changes may be missing. */
  | ({ readonly kind: 'reread'; readonly path: string } & Omit<Reread, 'type'>);

/** A change of a session, with the session and the server. */
export type TracedSessionEvent = SessionTraceDetail & {
  /** 0n until a server has opened the session. */
  readonly sessionId: SessionId;
  /**
   * The server concerned: the one that the client is connected to, tries, or used last; undefined
   * before the first.
   */
  readonly server: string | undefined;
};

/** Receives reports of a client's work. Its methods must not throw. */
export interface Tracer {
  /**
   * The client reads this before each call. If it is false, the call is not reported and has no
   * further cost.
   */
  readonly tracesCalls: boolean;
  /** The client reads this before each event of the session. */
  readonly tracesSession: boolean;
  /**
   * Reports the start of a call, runs its synchronous part, reports the end of that part, and
   * returns the same promise.
   */
  run<Result>(call: TracedCall, work: () => Promise<Result>): Promise<Result>;
  /** The call has its `result` or its `error`; the program receives it right after this. */
  callSettled(call: TracedCall): void;
  /** The session has changed. */
  sessionEvent(event: TracedSessionEvent): void;
}

/** A call at its start. */
export function newTracedCall(
  op: string,
  sessionId: SessionId,
  where: Partial<Pick<TracedCall, 'path' | 'chroot' | 'isCompound'>> = {},
): TracedCall {
  const { path, chroot = '', isCompound = false } = where;
  return { op, path, chroot, isCompound, sessionId, attempt: 1, server: undefined, xid: undefined, zxid: undefined };
}

/** Records the result of a call and reports it. */
export function traceSuccess(tracer: Tracer, call: TracedCall, result: unknown): void {
  call.result = result;
  tracer.callSettled(call);
}

/** Records the error of a call and reports it. */
export function traceFailure(tracer: Tracer, call: TracedCall, error: unknown): void {
  call.error = error;
  tracer.callSettled(call);
}
