/** Waits for the next change of a znode, from the read that has set the watch on. */
import type { ClientView, WatchedEvent, WatchListener } from '@tskeeper/client';
import { unlessAborted } from '../waiting/limit.ts';

export class ChangeWatch implements Disposable {
  /** To be given to the reads. */
  readonly listener: WatchListener;
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #heard: Promise<WatchedEvent>;

  constructor(zk: ClientView, path: string) {
    this.#zk = zk;
    this.#path = path;
    let hear!: (event: WatchedEvent) => void;
    this.#heard = new Promise((resolve) => (hear = resolve));
    this.listener = (event) => {
      // A lost connection says nothing of the znode, and what happens meanwhile is told by the next one. The end of the session is told by the next read.
      if (event.type !== 'None' || zk.closedBecause !== undefined) hear(event);
    };
  }

  /** Resolves with the first thing that has happened since. Rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<WatchedEvent> {
    return unlessAborted(this.#heard, signal);
  }

  /** Leaves no watch behind. */
  [Symbol.dispose](): void {
    void this.#zk.removeWatches(this.#path, { watch: this.listener, local: true }).catch(() => undefined);
  }
}
