/**
 * Reads of a znode that may not exist, and waits for its next event. A read with a watch gives the
 * current state and the next event, for callers that act between the two.
 */
import { type ClientView, KeeperError, type KeeperState, type ReadOptions, type WatchedEvent, type WatchListener } from '@tskeeper/client';
import { unlessAborted } from './deadline.ts';
import { retryForever } from './own-znode.ts';

/**
 * The result of the read, or undefined if the znode does not exist. Rejects as the read does
 * otherwise.
 */
export async function undefinedIfNoNode<Found>(found: Promise<Found>): Promise<Found | undefined> {
  try {
    return await found;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

/**
 * Resolves with true after any event of the znode, or after the end of the session, which the next
 * request reports; with false at once if the znode does not exist. Rejects as `exists` does, and
 * with the signal's reason. Leaves no watch behind.
 */
export function waitForEvent(zk: ClientView, path: string, signal: AbortSignal): Promise<boolean> {
  return waitForEventUnless(
    zk,
    path,
    (options) => zk.exists(path, options),
    (stat) => stat === null,
    signal,
  );
}

/**
 * Reads once, with a watch on `path`. Resolves with false at once if the result is enough;
 * otherwise with true, after an event of the watch, or after the end of the session, which the next
 * request reports. Rejects as `read` does, and with the signal's reason. Leaves no watch behind.
 */
export async function waitForEventUnless<Answer>(
  zk: ClientView,
  path: string,
  read: (options: ReadOptions) => Promise<Answer>,
  isEnough: (answer: Answer) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const watchedRead = await WatchedRead.start(zk, path, (watch) => read({ ...retryForever, watch, signal }));
  if (isEnough(watchedRead.result)) {
    watchedRead.cancel();
    return false;
  }
  await watchedRead.nextEvent(signal);
  return true;
}

/** A read of a znode with a watch: the current state, and the next event. */
export class WatchedRead<Answer> {
  readonly result: Answer;
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #waiter: EventWaiter;

  private constructor(zk: ClientView, path: string, result: Answer, waiter: EventWaiter) {
    this.#zk = zk;
    this.#path = path;
    this.result = result;
    this.#waiter = waiter;
  }

  /** `read` reads the znode, and sets the watch that it receives. Rejects as `read` does. */
  static async start<Answer>(zk: ClientView, path: string, read: (watch: WatchListener) => Promise<Answer>): Promise<WatchedRead<Answer>> {
    const waiter = new EventWaiter();
    try {
      return new WatchedRead(zk, path, await read(waiter.listener), waiter);
    } catch (error) {
      removeWatch(zk, path, waiter);
      throw error;
    }
  }

  /** Whether an event has arrived since. */
  get hasFired(): boolean {
    return this.#waiter.hasFired;
  }

  /**
   * The type of the next event; `None` if the session has ended, which the next request reports.
   * Rejects with the signal's reason, and then removes the watch.
   */
  async nextEvent(signal: AbortSignal): Promise<WatchedEvent['type']> {
    try {
      return await unlessAborted(this.#waiter.eventType, signal);
    } catch (reason) {
      this.cancel();
      throw reason;
    }
  }

  /** Removes the watch: the caller does not wait for an event. */
  cancel(): void {
    removeWatch(this.#zk, this.#path, this.#waiter);
  }
}

class EventWaiter {
  readonly eventType: Promise<WatchedEvent['type']>;
  readonly listener: WatchListener;
  hasFired = false;

  constructor() {
    let resolveType!: (type: WatchedEvent['type']) => void;
    this.eventType = new Promise((resolve) => (resolveType = resolve));
    this.listener = ({ type, state }) => {
      // The loss of a connection says nothing about the znode: after a reconnect the client sets
      // the watch again, and an event that was missed follows.
      if (type === 'None' && !isEndState(state)) return;
      this.hasFired = true;
      resolveType(type);
    };
  }
}

function removeWatch(zk: ClientView, path: string, { hasFired, listener }: EventWaiter): void {
  if (!hasFired) void zk.removeWatches(path, { watch: listener, local: true }).catch(() => undefined);
}

/** Whether the session has ended. */
function isEndState(state: KeeperState): boolean {
  return state === 'Expired' || state === 'AuthFailed' || state === 'Closed';
}
