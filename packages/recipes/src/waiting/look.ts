/**
 * A read of a znode with a watch: the current state, and the next event. For callers that act
 * between the two.
 */
import type { ClientView, KeeperState, WatchedEvent, WatchListener } from '@tskeeper/client';
import { unlessAborted } from './limit.ts';

export class Look<Answer> {
  readonly answer: Answer;
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #heard: Heard;

  private constructor(zk: ClientView, path: string, answer: Answer, heard: Heard) {
    this.#zk = zk;
    this.#path = path;
    this.answer = answer;
    this.#heard = heard;
  }

  /** `ask` reads the znode, and sets the watch that it receives. Rejects as `ask` does. */
  static async take<Answer>(zk: ClientView, path: string, ask: (watch: WatchListener) => Promise<Answer>): Promise<Look<Answer>> {
    const heard = new Heard();
    try {
      return new Look(zk, path, await ask(heard.listener), heard);
    } catch (error) {
      forget(zk, path, heard);
      throw error;
    }
  }

  /** Whether an event has arrived since. */
  get isOver(): boolean {
    return this.#heard.isOver;
  }

  /**
   * The type of the next event; `None` if the session has ended, which the next request reports.
   * Rejects with the signal's reason, and then removes the watch.
   */
  async next(signal: AbortSignal): Promise<WatchedEvent['type']> {
    try {
      return await unlessAborted(this.#heard.type, signal);
    } catch (reason) {
      this.forget();
      throw reason;
    }
  }

  /** Removes the watch: the caller does not wait for an event. */
  forget(): void {
    forget(this.#zk, this.#path, this.#heard);
  }
}

class Heard {
  readonly type: Promise<WatchedEvent['type']>;
  readonly listener: WatchListener;
  isOver = false;

  constructor() {
    let hear!: (type: WatchedEvent['type']) => void;
    this.type = new Promise((resolve) => (hear = resolve));
    this.listener = ({ type, state }) => {
      // The loss of a connection says nothing about the znode: after a reconnect the client sets
      // the watch again, and an event that was missed follows.
      if (type === 'None' && !isEnd(state)) return;
      this.isOver = true;
      hear(type);
    };
  }
}

function forget(zk: ClientView, path: string, { isOver, listener }: Heard): void {
  if (!isOver) void zk.removeWatches(path, { watch: listener, local: true }).catch(() => undefined);
}

/** Whether the session has ended. */
function isEnd(state: KeeperState): boolean {
  return state === 'Expired' || state === 'AuthFailed' || state === 'Closed';
}
