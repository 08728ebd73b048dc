/**
 * What a recipe works with: one client, or `Sessions`, which are one client after another.
 *
 * Everything that a recipe keeps in the ensemble on its own behalf (a place in a line, a claim, a mark) belongs to one session and ends with it. So a recipe keeps nothing
 * across sessions but its settings, and each call begins with the client of now:
 *
 *     inSessions   the client that lives ──work──> result
 *                    ^                     │ its session ended meanwhile, and the work may be done again
 *                    └──the next client────┘
 */
import { type CallOptions, type ClientView, KeeperError, type WatchLoopEvent } from '@tskeeper/client';
import { onAbort, Refusal } from '@tskeeper/client/internal';
import { isRecipeError, RecipeError } from '../recipe-error.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { isUnsettled, lossCodes } from '../waiting/unanswered.ts';
import type { Sessions } from './sessions.ts';
import { hasSessionsBrand } from './sessions-brand.ts';

/** A client: what is kept on it ends with its session. Or clients, one after another: it goes on with the next. */
export type SessionSource = ClientView | Sessions;

export function isSessions(source: SessionSource): source is Sessions {
  return hasSessionsBrand(source);
}

export interface SessionUser {
  /** A session to work in. What is asked of it fails when it is over. */
  begin(zk: ClientView): void;
  /** There is no other. */
  ended(reason: unknown): void;
}

/** The client to ask now. */
export function clientOf(source: SessionSource): ClientView {
  return isSessions(source) ? source.client : source;
}

/** Tells at once, and then of each session; returns a function that ends it. */
export function eachSession(source: SessionSource, user: SessionUser): () => void {
  if (!isSessions(source)) return oneSession(source, user);
  if (source.signal.aborted) {
    user.ended(source.signal.reason);
    return () => undefined;
  }
  const forget = onAbort(source.signal, () => user.ended(source.signal.reason));
  const end = source.each((zk) => user.begin(zk));
  return () => {
    forget();
    end();
  };
}

function oneSession(zk: ClientView, user: SessionUser): () => void {
  const look = () => {
    if (zk.closedBecause === undefined) return;
    unlisten();
    const isClosed = zk.closedBecause === 'closed';
    user.ended(
      new RecipeError(isClosed ? 'Closed' : 'Lost', isClosed ? 'the client was closed' : `the session is over: ${zk.closedBecause}`),
    );
  };
  const unlisten = zk.on('state', look);
  if (zk.closedBecause === undefined) user.begin(zk);
  look();
  return unlisten;
}

/** The client that lives, and each one that follows; ends when there is none to follow, or throws what speaks against it. */
export async function* sessionsOf(source: SessionSource, signal: AbortSignal | undefined): AsyncGenerator<ClientView, void, undefined> {
  if (!isSessions(source)) {
    yield source;
    return;
  }
  let last: ClientView | undefined;
  for (;;) {
    let next: ClientView;
    try {
      next = await following(source, last, signal);
    } catch (error) {
      if (error === source.signal.reason && isRecipeError(error)) return;
      throw error;
    }
    yield next;
    last = next;
  }
}

/** The client that lives, and is not this one, as soon as there is one. Rejects with the signal's reason, and with that of the end of the Sessions. */
function following(source: Sessions, last: ClientView | undefined, signal: AbortSignal | undefined): Promise<ClientView> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const endings: (() => void)[] = [];
    let isOver = false;
    const over = () => {
      isOver = true;
      for (const end of endings.splice(0)) end();
    };
    const user: SessionUser = {
      begin: (zk) => {
        if (zk === last) return;
        over();
        resolve(zk);
      },
      ended: (reason) => {
        over();
        reject(reason);
      },
    };
    if (signal !== undefined) endings.push(onAbort(signal, () => (over(), reject(signal.reason))));
    endings.push(eachSession(source, user));
    // `begin` may have been called before there was a way to end it.
    if (isOver) over();
  });
}

/**
 * Calls `work` with the client that lives, and again with the next one when that session ends before the work does. Resolves and rejects as `work` does otherwise; with
 * the signal's reason while it waits for a client; and with what ended the Sessions when there will be no other client. With a single client `work` is called once, and the
 * end of the session is its failure.
 *
 * @param isFinal whether the work must not be done again after it has failed so, as it may have been carried out. Default: it may always be done again.
 */
export async function inSessions<Result>(
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
    const zk = await following(source, last, signal);
    try {
      return await work(zk);
    } catch (error) {
      if (signal.aborted || isFinal(error) || !(await hasEnded(zk, error, signal))) throw error;
      last = zk;
    }
  }
}

/**
 * The same for a call with the options of a client's calls. With a single client these are passed on as they are; with `Sessions` `timeoutMs` and `signal` bound all of it, the
 * wait for the next client too, and it rejects with a RecipeError, TimedOut. `what` was waited for: `an answer about /a`.
 */
export async function callIn<Options extends Pick<CallOptions, 'signal' | 'timeoutMs'>, Result>(
  source: SessionSource,
  what: string,
  options: Options,
  work: (zk: ClientView, options: Options) => Promise<Result>,
  isFinal?: (error: unknown) => boolean,
): Promise<Result> {
  if (!isSessions(source)) return await inSessions(source, neverAborted, (zk) => work(zk, options));
  const { signal, timeoutMs } = options;
  using limit = new Limit(source, { signal, timeoutMs }, what);
  const within = { ...options, signal: limit.signal, timeoutMs: undefined };
  return await inSessions(source, limit.signal, (zk) => work(zk, within), isFinal);
}

const neverAborted = new AbortController().signal;

/** What a call fails with that may have been carried out: the session ended before its answer came. */
export function mayBeDone(error: unknown): boolean {
  return KeeperError.is(error) && error.outcome === 'unknown';
}

/** Whether the work failed because its session is over: it expired, or the client was closed. */
async function hasEnded(zk: ClientView, error: unknown, signal: AbortSignal): Promise<boolean> {
  if (KeeperError.is(error, 'SessionExpired')) return true;
  const isLost = error instanceof RecipeError && error.code === 'Lost';
  if (!isLost && !KeeperError.is(error, ...lossCodes)) return false;
  if (zk.closedBecause !== undefined) return zk.closedBecause === 'expired' || zk.closedBecause === 'closed';
  // The ensemble deletes ephemerals as it ends a session, and a client that is still connected may learn of the deletion first. Any answer tells the two apart.
  return isLost && (await isExpired(zk, signal));
}

async function isExpired(zk: ClientView, signal: AbortSignal): Promise<boolean> {
  try {
    await zk.exists('/', { ...untilTheEnd, signal });
    return false;
  } catch (error) {
    return KeeperError.is(error, 'SessionExpired');
  }
}

/** Says what to do about the end of the session of a single client. */
function withRemedy(zk: ClientView, error: unknown): unknown {
  if (zk.closedBecause !== 'expired' || !KeeperError.is(error, 'SessionExpired') || isUnsettled(error)) return error;
  const { op, path, errno, outcome } = error;
  const reason = 'the session of this client has expired; give the recipe Sessions instead of a client, and it goes on in the next session';
  return new KeeperError(op, path, new Refusal(errno, outcome, reason, { cause: error }));
}

/** What a recipe keeps for one session at a time. */
export class PerSession<Own> {
  readonly #make: (zk: ClientView) => Own;
  #latest: { readonly zk: ClientView; readonly own: Own } | undefined;

  constructor(make: (zk: ClientView) => Own) {
    this.#make = make;
  }

  /** What belongs to the session of this client: made when it is asked for first, and forgotten with the next session. */
  of(zk: ClientView): Own {
    if (this.#latest?.zk !== zk) this.#latest = { zk, own: this.#make(zk) };
    return this.#latest.own;
  }

  /** What belongs to the session that was asked for last; undefined when none was. */
  get latest(): Own | undefined {
    return this.#latest?.own;
  }
}

/**
 * As `Client.watch` of one znode: with `Sessions` the loop goes on with the next client, and begins there with a Reread as every loop does. Ends and throws as that loop
 * does otherwise, and throws what ended the Sessions.
 */
export async function* watchOf(
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

/** Whether it was the end of the session that made a call fail. */
export function isEndOfSession(error: unknown): boolean {
  return KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed');
}
