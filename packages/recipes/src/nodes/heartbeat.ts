/**
 * Keeps a znode with a TTL alive by writing to a child of it twice per TTL. The znode itself is not
 * written to, so its watches do not fire.
 */
import { type Acl, type ClientView, KeeperError, type Millis, type TimerHandle } from '@tskeeper/client';
import { isEndOfSession } from '../sessions/session-source.ts';

export interface HeartbeatSettings {
  readonly ttlMs?: Millis | undefined;
  readonly acl?: readonly Acl[] | undefined;
}

export class Heartbeat implements Disposable {
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #ttlMs: Millis;
  readonly #acl: readonly Acl[] | undefined;
  readonly #onError: (error: unknown) => void;
  #timer: TimerHandle | undefined;

  constructor(zk: ClientView, path: string, { ttlMs = 0, acl }: HeartbeatSettings, onError: (error: unknown) => void) {
    this.#zk = zk;
    this.#path = path;
    this.#ttlMs = ttlMs;
    this.#acl = acl;
    this.#onError = onError;
    this.#scheduleBeat();
  }

  [Symbol.dispose](): void {
    if (this.#timer !== undefined) this.#zk.clock.cancel(this.#timer);
    this.#timer = undefined;
  }

  #scheduleBeat(): void {
    this.#timer = this.#zk.clock.after(this.#ttlMs / 2, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    this.#scheduleBeat();
    try {
      await this.#zk.setData(this.#path, null);
    } catch (error) {
      await this.#createOrFail(error);
    }
  }

  /** Creates the child if it does not exist; after other errors the next beat comes in time. */
  async #createOrFail(error: unknown): Promise<void> {
    try {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      await this.#zk.create(this.#path, null, { mode: 'persistentWithTtl', ttlMs: this.#ttlMs, acl: this.#acl });
    } catch (failure) {
      // NoNode: the znode itself is gone, which its PersistentNode notices.
      if (KeeperError.is(failure, 'NodeExists', 'NoNode') || (KeeperError.is(failure) && failure.retryable)) return;
      if (!isEndOfSession(failure) && this.#timer !== undefined) this.#onError(failure);
    }
  }
}
