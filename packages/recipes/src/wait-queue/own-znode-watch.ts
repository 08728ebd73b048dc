/**
 * Watches a znode of this client: whether another client deletes it, and, where that matters, what
 * another client writes to it.
 *
 * The reply to the first read arrives before that of any later one. So a contender that finds its
 * znode first in the queue already knows that it belongs to this very session (`ephemeralOwner`). A
 * znode of an earlier session, which may be deleted at any moment, is not a hold: by such znodes
 * Curator had two leaders (CURATOR-498, 620, 644, 696).
 */
import { type ClientView, KeeperError, type Stat, type WatchedEvent, type WatchListener } from '@tskeeper/client';
import { retryForever } from '../waiting/own-znode.ts';

export interface OwnZnodeListener {
  /** Another client has deleted it, or it belongs to another session. */
  onDeleted(): void;
  /**
   * It cannot be watched: its own ACL does not allow this client to READ it, and servers send no
   * events to such a client.
   */
  onUnreadable(error: KeeperError): void;
  /** Receives its data now, and after each change. If it is not defined, data are not read. */
  readonly onData: ((data: Uint8Array | null) => void) | undefined;
}

export class OwnZnodeWatch {
  readonly #zk: ClientView;
  readonly #path: string;
  #listener: OwnZnodeListener | undefined;

  constructor(zk: ClientView, path: string, listener: OwnZnodeListener) {
    this.#zk = zk;
    this.#path = path;
    this.#listener = listener;
    void this.#read();
  }

  /** No more callbacks. The watch goes with the znode, which is about to be deleted. */
  end(): void {
    this.#listener = undefined;
  }

  async #read(): Promise<void> {
    const options = { ...retryForever, watch: this.#onEvent };
    try {
      if (this.#listener?.onData === undefined) {
        this.#checkOwner(await this.#zk.exists(this.#path, options));
        return;
      }
      const { data, stat } = await this.#zk.getData(this.#path, options);
      this.#checkOwner(stat);
      this.#listener?.onData?.(data);
    } catch (error) {
      // The end of the session is reported elsewhere.
      if (KeeperError.is(error, 'NoNode')) this.#reportDeleted();
      else if (KeeperError.is(error, 'NoAuth')) this.#reportUnreadable(error);
    }
  }

  readonly #onEvent: WatchListener = (event: WatchedEvent) => {
    if (this.#listener === undefined || event.type === 'None') return;
    if (event.type === 'NodeDeleted') this.#reportDeleted();
    else void this.#read();
  };

  #checkOwner(stat: Stat | null): void {
    if (stat !== null && stat.ephemeralOwner === this.#zk.sessionId) return;
    // The same name is not created again, so the watch would stay.
    void this.#zk.removeWatches(this.#path, { watch: this.#onEvent, local: true }).catch(() => undefined);
    this.#reportDeleted();
  }

  #reportDeleted(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onDeleted();
  }

  #reportUnreadable(error: KeeperError): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onUnreadable(error);
  }
}
