/**
 * Watches a znode of one's own: whether somebody deletes it, and, where that matters, what somebody writes to it.
 *
 * The first look is answered before any later one, so that whoever finds its znode first in line has learnt by then that it belongs to this very session
 * (`ephemeralOwner`). A znode of a session of the past, which will go at any moment, is nobody's hold: Curator had two leaders by that (CURATOR-498, 620,
 * 644, 696).
 */
import { type ClientView, KeeperError, type Stat, type WatchedEvent, type WatchListener } from '@tskeeper/client';
import { untilTheEnd } from '../waiting/next-event.ts';

export interface OwnWatchListener {
  /** Somebody has deleted it, or it is of another session. */
  deleted(): void;
  /** It cannot be watched: its own ACL does not let this client READ it, and servers tell such a one of nothing. */
  unreadable(error: KeeperError): void;
  /** Its data as they are, and after each change; where this is not defined they are not read. */
  readonly data: ((data: Uint8Array | null) => void) | undefined;
}

export class OwnWatch {
  readonly #zk: ClientView;
  readonly #path: string;
  #listener: OwnWatchListener | undefined;

  constructor(zk: ClientView, path: string, listener: OwnWatchListener) {
    this.#zk = zk;
    this.#path = path;
    this.#listener = listener;
    void this.#look();
  }

  /** Nothing is told any more. The watch goes with the znode, whose time is over. */
  end(): void {
    this.#listener = undefined;
  }

  async #look(): Promise<void> {
    const options = { ...untilTheEnd, watch: this.#onEvent };
    try {
      if (this.#listener?.data === undefined) {
        this.#judge(await this.#zk.exists(this.#path, options));
        return;
      }
      const { data, stat } = await this.#zk.getData(this.#path, options);
      this.#judge(stat);
      this.#listener?.data?.(data);
    } catch (error) {
      // The end of the session is heard elsewhere.
      if (KeeperError.is(error, 'NoNode')) this.#gone();
      else if (KeeperError.is(error, 'NoAuth')) this.#unreadable(error);
    }
  }

  readonly #onEvent: WatchListener = (event: WatchedEvent) => {
    if (this.#listener === undefined || event.type === 'None') return;
    if (event.type === 'NodeDeleted') this.#gone();
    else void this.#look();
  };

  #judge(stat: Stat | null): void {
    if (stat !== null && stat.ephemeralOwner === this.#zk.sessionId) return;
    // Nobody makes it again, so the watch would stay.
    void this.#zk.removeWatches(this.#path, { watch: this.#onEvent, local: true }).catch(() => undefined);
    this.#gone();
  }

  #gone(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.deleted();
  }

  #unreadable(error: KeeperError): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.unreadable(error);
  }
}
