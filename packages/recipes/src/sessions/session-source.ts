/**
 * What a recipe works with: one client, or `Sessions`, which are one client after another.
 *
 * All znodes of a recipe that serve itself (a place in a queue, a claim, a mark) belong to one
 * session and end with it. So a recipe keeps only its settings across sessions, and each call
 * begins with the current client:
 *
 *     runAcrossSessions   the current client ──work──> result
 *                    ^                     │ its session has ended, and the work may be repeated
 *                    └──the next client────┘
 */
import { type CallOptions, type ClientView, KeeperError, type WatchLoopEvent } from '@tskeeper/client';
import { onAbort, RequestFailure } from '@tskeeper/client/internal';
import { isRecipeError, RecipeError } from '../recipe-error.ts';
import { Deadline } from '../waiting/deadline.ts';
import { connectionLossCodes, isUnsettled, retryForever } from '../waiting/own-znode.ts';
import type { Sessions } from './sessions.ts';
import { hasSessionsBrand } from '../sessions-brand.ts';

/**
 * A client, with whose session everything ends; or clients, one after another, and then it
 * continues with the next.
 */
export type SessionSource = ClientView | Sessions;

export function isSessions(source: SessionSource): source is Sessions {
  return hasSessionsBrand(source);
}

export interface SessionListener {
  /** A session to work in. Requests fail after its end. */
  onSession(zk: ClientView): void;
  /** There is no further session. */
  onEnd(reason: unknown): void;
}

/** The client to use now. */
export function currentClient(source: SessionSource): ClientView {
  return isSessions(source) ? source.client : source;
}

/** Calls `onSession` at once, and for each later session; returns a function that ends it. */
export function followSessions(source: SessionSource, user: SessionListener): () => void {
  if (!isSessions(source)) return followOneSession(source, user);
  if (source.signal.aborted) {
    user.onEnd(source.signal.reason);
    return () => undefined;
  }
  const forget = onAbort(source.signal, () => user.onEnd(source.signal.reason));
  const end = source.onSession((zk) => user.onSession(zk));
  return () => {
    forget();
    end();
  };
}

function followOneSession(zk: ClientView, user: SessionListener): () => void {
  const checkEnd = () => {
    if (zk.endReason === undefined) return;
    unlisten();
    const isClosed = zk.endReason === 'closed';
    user.onEnd(new RecipeError(isClosed ? 'Closed' : 'Lost', isClosed ? 'the client was closed' : `the session is over: ${zk.endReason}`));
  };
  const unlisten = zk.on('state', checkEnd);
  if (zk.endReason === undefined) user.onSession(zk);
  checkEnd();
  return unlisten;
}

/**
 * The current client, and each one that follows; ends when there is no further one, or throws the
 * reason.
 */
export async function* sessionsOf(source: SessionSource, signal: AbortSignal | undefined): AsyncGenerator<ClientView, void, undefined> {
  if (!isSessions(source)) {
    yield source;
    return;
  }
  let last: ClientView | undefined;
  for (;;) {
    let next: ClientView;
    try {
      next = await nextClient(source, last, signal);
    } catch (error) {
      if (error === source.signal.reason && isRecipeError(error)) return;
      throw error;
    }
    yield next;
    last = next;
  }
}

/**
 * A live client other than `last`, as soon as there is one. Rejects with the signal's reason, and
 * with the reason of the end of the Sessions.
 */
function nextClient(source: Sessions, last: ClientView | undefined, signal: AbortSignal | undefined): Promise<ClientView> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const cleanups: (() => void)[] = [];
    let isOver = false;
    const cleanUp = () => {
      isOver = true;
      for (const end of cleanups.splice(0)) end();
    };
    const user: SessionListener = {
      onSession: (zk) => {
        if (zk === last) return;
        cleanUp();
        resolve(zk);
      },
      onEnd: (reason) => {
        cleanUp();
        reject(reason);
      },
    };
    if (signal !== undefined) cleanups.push(onAbort(signal, () => (cleanUp(), reject(signal.reason))));
    cleanups.push(followSessions(source, user));
    // `onSession` may have been called before the function that ends it was known.
    if (isOver) cleanUp();
  });
}

/**
 * Calls `work` with the current client, and again with the next one if the session ends before the
 * work does. Otherwise resolves and rejects as `work` does; with the signal's reason while it waits
 * for a client; and with the reason of the end of the Sessions when there is no further client.
 * With a single client it calls `work` once, and rejects when the session ends.
 *
 * @param isFinal whether the work must not be repeated after this error, as it may have been
 * applied. Default: it may always be repeated.
 */
export async function runAcrossSessions<Result>(
  source: SessionSource,
  signal: AbortSignal,
  work: (zk: ClientView) => Promise<Result>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<Result> {
  if (!isSessions(source)) {
    try {
      return await work(source);
    } catch (error) {
      throw withRemedy(source, error);
    }
  }
  let last: ClientView | undefined;
  for (;;) {
    const zk = await nextClient(source, last, signal);
    try {
      return await work(zk);
    } catch (error) {
      if (signal.aborted || isFinal(error) || !(await hasEnded(zk, error, signal))) throw error;
      last = zk;
    }
  }
}

/**
 * The same for a call with the options of a client's calls. A single client receives them as they
 * are. With `Sessions`, `timeoutMs` and `signal` limit the whole call, including the wait for the
 * next client, and it rejects with a RecipeError, TimedOut. `what` completes "timed out waiting
 * for": `a reply about /a`.
 */
export async function callAcrossSessions<Options extends Pick<CallOptions, 'signal' | 'timeoutMs'>, Result>(
  source: SessionSource,
  what: string,
  options: Options,
  work: (zk: ClientView, options: Options) => Promise<Result>,
  isFinal?: (error: unknown) => boolean,
): Promise<Result> {
  if (!isSessions(source)) return await runAcrossSessions(source, neverAborted, (zk) => work(zk, options));
  const { signal, timeoutMs } = options;
  using deadline = new Deadline(source, { signal, timeoutMs }, what);
  const within = { ...options, signal: deadline.signal, timeoutMs: undefined };
  return await runAcrossSessions(source, deadline.signal, (zk) => work(zk, within), isFinal);
}

const neverAborted = new AbortController().signal;

/** Whether a call that failed may have been applied: the session ended before its reply. */
export function mayHaveBeenApplied(error: unknown): boolean {
  return KeeperError.is(error) && error.outcome === 'unknown';
}

/** Whether the work failed because its session is over: it expired, or the client was closed. */
async function hasEnded(zk: ClientView, error: unknown, signal: AbortSignal): Promise<boolean> {
  if (KeeperError.is(error, 'SessionExpired')) return true;
  const isLost = error instanceof RecipeError && error.code === 'Lost';
  if (!isLost && !KeeperError.is(error, ...connectionLossCodes)) return false;
  if (zk.endReason !== undefined) return zk.endReason === 'expired' || zk.endReason === 'closed';
  // The ensemble deletes ephemerals when it ends a session, and a client that is still connected
  // may learn of the deletion first. Any reply distinguishes the two.
  return isLost && (await isExpired(zk, signal));
}

async function isExpired(zk: ClientView, signal: AbortSignal): Promise<boolean> {
  try {
    await zk.exists('/', { ...retryForever, signal });
    return false;
  } catch (error) {
    return KeeperError.is(error, 'SessionExpired');
  }
}

/** Adds the remedy for the end of the session of a single client. */
function withRemedy(zk: ClientView, error: unknown): unknown {
  if (zk.endReason !== 'expired' || !KeeperError.is(error, 'SessionExpired') || isUnsettled(error)) return error;
  const { op, path, errno, outcome } = error;
  const reason = 'the session of this client has expired; use Sessions instead of a client, and the recipe continues in the next session';
  return new KeeperError(op, path, new RequestFailure(errno, outcome, reason, { cause: error }));
}

/** What a recipe keeps for one session at a time. */
export class PerSession<Own> {
  readonly #make: (zk: ClientView) => Own;
  #latest: { readonly zk: ClientView; readonly own: Own } | undefined;

  constructor(make: (zk: ClientView) => Own) {
    this.#make = make;
  }

  /**
   * The object of this client's session: made at the first call, and dropped with the next session.
   */
  get(zk: ClientView): Own {
    if (this.#latest?.zk !== zk) this.#latest = { zk, own: this.#make(zk) };
    return this.#latest.own;
  }

  /** The object of the latest session; undefined if there was none. */
  get latest(): Own | undefined {
    return this.#latest?.own;
  }
}

/**
 * As `Client.watch` of one znode. With `Sessions` the loop continues with the next client, and
 * begins there with a Reread as every loop does. Otherwise ends and throws as that loop does, and
 * throws the reason of the end of the Sessions.
 */
export async function* watchAcrossSessions(
  source: SessionSource,
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly zk: ClientView; readonly event: WatchLoopEvent }, void, undefined> {
  for await (const zk of sessionsOf(source, signal)) {
    try {
      for await (const event of zk.watch(path, { signal })) yield { zk, event };
      return;
    } catch (error) {
      if (!isSessions(source) || !KeeperError.is(error, 'SessionExpired')) throw withRemedy(zk, error);
    }
  }
}

/** Whether a call failed because its session has ended. */
export function isEndOfSession(error: unknown): boolean {
  return KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed');
}
