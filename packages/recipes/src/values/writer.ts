/**
 * Writes a znode so that what became of each write is known in the end, whatever is lost on the way.
 *
 * A version alone does not tell: when the answer to a write is lost and the znode has the next version with the same data, it was this write, or
 * another's who wrote the same, as all do who count from 5 to 6. So each write is a `multi` with a znode of the writer's own:
 *
 *     /number                       multi: setData /number, if it has the version that was read
 *       └─ _c_2b7e...-writer               setData writer, whose version counts the writes that were carried out
 *
 * If the answer is lost, the version of the writer's own znode says whether it was. It is looked at behind a `sync`, behind which nothing of the lost
 * connection can come late.
 */
import { type Acl, type ClientView, KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { untilTheEnd } from '../waiting/next-event.ts';

interface Own {
  readonly path: string;
  /** How often it was written. undefined: the last write was given up before it was known, so look. */
  version: number | undefined;
}

export class Writer {
  readonly #zk: ClientView;
  readonly #path: string;
  readonly #acl: readonly Acl[] | undefined;
  #own: Own | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(zk: ClientView, path: string, acl: readonly Acl[] | undefined) {
    this.#zk = zk;
    this.#path = path;
    this.#acl = acl;
  }

  /** One step after the other: while one is under way no other write of this writer is. */
  inTurn<Result>(step: () => Promise<Result>): Promise<Result> {
    const turn = this.#follow(this.#last, step);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #follow<Result>(last: Promise<unknown>, step: () => Promise<Result>): Promise<Result> {
    await last;
    return step();
  }

  /**
   * Whether it was written: not if the znode had another version by then, or was gone. Rejects as `Client.multi` does, and with the signal's reason; whether it was
   * written is known then for a refusal only.
   */
  async write(data: Uint8Array, version: number, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      const own = await this.#ownZnode(signal);
      const before = own.version ?? (await this.#versionOf(own, signal));
      if (before === undefined) continue;
      const after = (before + 1) | 0;
      own.version = undefined;
      try {
        await this.#zk.multi([op.setData(this.#path, data, { version }), op.setData(own.path, null)], { ...untilTheEnd, signal });
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        if (error.outcome === 'unknown') own.version = await this.#whatBecame(own, error, signal);
        else own.version = before;
        if (error.failedIndex === 0 && KeeperError.is(error, 'BadVersion', 'NoNode')) return false;
        if (own.version === after) return true;
        if (error.outcome === 'unknown') continue;
        if (error.failedIndex !== 1 || error.code !== 'NoNode') throw error;
        // Somebody has deleted the writer's own.
        this.#own = undefined;
        continue;
      }
      own.version = after;
      return true;
    }
  }

  async #ownZnode(signal: AbortSignal): Promise<Own> {
    if (this.#own === undefined) {
      const { path } = await this.#zk.create(childPath(this.#path, 'writer'), null, {
        mode: 'ephemeral',
        protection: true,
        acl: this.#acl,
        ...untilTheEnd,
        signal,
      });
      this.#own = { path, version: 0 };
    }
    return this.#own;
  }

  /** undefined when it is gone: then another is to be made. */
  async #versionOf(own: Own, signal: AbortSignal): Promise<number | undefined> {
    const stat = await this.#zk.exists(own.path, { ...untilTheEnd, linearizable: true, signal });
    if (stat === null) this.#own = undefined;
    return stat?.version;
  }

  /** Rejects with `unanswered` when there is nothing left to tell by. */
  async #whatBecame(own: Own, unanswered: KeeperError, signal: AbortSignal): Promise<number> {
    const version = await this.#versionOf(own, signal);
    if (version === undefined) throw unanswered;
    return version;
  }
}
