/** A look at a znode with a watch: what is so now, and what happens to it next, for whoever has something to do in between. */
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

  /** `ask` reads the znode, and leaves the watch that it is given. Rejects as that does. */
  static async take<Answer>(zk: ClientView, path: string, ask: (watch: WatchListener) => Promise<Answer>): Promise<Look<Answer>> {
    const heard = new Heard();
    try {
      return new Look(zk, path, await ask(heard.listener), heard);
    } catch (error) {
      forget(zk, path, heard);
      throw error;
    }
  }

  /** Whether something has happened since. */
  get isOver(): boolean {
    return this.#heard.isOver;
  }

  /** What happens next; `None` when the session has ended, which the next request tells. Rejects with the signal's reason. Leaves no watch behind. */
  async next(signal: AbortSignal): Promise<WatchedEvent['type']> {
    try {
      return await unlessAborted(this.#heard.type, signal);
    } catch (reason) {
      this.forget();
      throw reason;
    }
  }

  /** Nobody waits for what happens next. */
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
      // The loss of a connection says nothing of the znode: what is missed by it is told by the next one.
      if (type === 'None' && !isEnd(state)) return;
      this.isOver = true;
      hear(type);
    };
  }
}

function forget(zk: ClientView, path: string, { isOver, listener }: Heard): void {
  if (!isOver) void zk.removeWatches(path, { watch: listener, local: true }).catch(() => undefined);
}

/** Of the session. */
function isEnd(state: KeeperState): boolean {
  return state === 'Expired' || state === 'AuthFailed' || state === 'Closed';
}
