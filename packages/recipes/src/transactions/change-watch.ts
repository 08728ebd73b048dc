/** Waits for the next event of a watch, from the read that sets it. */
import type { ClientView, WatchedEvent, WatchListener } from '@tskeeper/client';
import { unlessAborted } from '../waiting/deadline.ts';

export class ChangeWatch implements Disposable {
  /** The listener to pass to the reads. */
  readonly listener: WatchListener;
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #changed: Promise<WatchedEvent>;

  constructor(zk: ClientView, path: string) {
    this.#zk = zk;
    this.#path = path;
    let resolveChanged!: (event: WatchedEvent) => void;
    this.#changed = new Promise((resolve) => (resolveChanged = resolve));
    this.listener = (event) => {
      // The loss of a connection says nothing about the znode: after a reconnect the client sets
      // the watch again, and an event that was missed follows. The next read reports the end of the
      // session.
      if (event.type !== 'None' || zk.endReason !== undefined) resolveChanged(event);
    };
  }

  /** Resolves with the first event since. Rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<WatchedEvent> {
    return unlessAborted(this.#changed, signal);
  }

  /** Removes the watch. */
  [Symbol.dispose](): void {
    void this.#zk.removeWatches(this.#path, { watch: this.listener, local: true }).catch(() => undefined);
  }
}
