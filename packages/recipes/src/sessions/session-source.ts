/** What keeps something for the length of a client, or for that of many. */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';
import { RecipeError } from '../recipe-error.ts';
import { Sessions } from './sessions.ts';

/** A client: what is kept on it ends with its session. Or clients, one after another: it goes on with the next. */
export type SessionSource = ClientView | Sessions;

export interface SessionUser {
  /** A session to work in. What is asked of it fails when it is over. */
  begin(zk: ClientView): void;
  /** There is no other. */
  ended(reason: unknown): void;
}

/** The client to ask now. */
export function clientOf(source: SessionSource): ClientView {
  return source instanceof Sessions ? source.client : source;
}

/** Tells at once, and then of each session; returns a function that ends it. */
export function eachSession(source: SessionSource, user: SessionUser): () => void {
  if (!(source instanceof Sessions)) return oneSession(source, user);
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
  if (!(source instanceof Sessions)) {
    yield source;
    return;
  }
  let last: ClientView | undefined;
  for (;;) {
    const next = await follower(source, last, signal);
    if (next === undefined) return;
    yield next;
    last = next;
  }
}

function follower(source: Sessions, last: ClientView | undefined, signal: AbortSignal | undefined): Promise<ClientView | undefined> {
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
        if (reason instanceof RecipeError) resolve(undefined);
        else reject(reason);
      },
    };
    if (signal !== undefined) endings.push(onAbort(signal, () => (over(), reject(signal.reason))));
    endings.push(eachSession(source, user));
    // Told at once, ahead of knowing how to end it.
    if (isOver) over();
  });
}

/** Whether it was the end of the session that made a call fail. */
export function isEndOfSession(error: unknown): boolean {
  return KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed');
}
