/**
 * Writes that are applied once, though their replies may be lost.
 *
 * The state after a lost reply does not show the outcome. Neither a guid in the name of an item nor
 * a read of the queue shows whether a put or a take was applied, since other clients may have taken
 * the item meanwhile; and a number that was 5 and is 6 may be the work of any client that counts.
 * So each write includes a mark, an ephemeral of this client that no other one writes to:
 *
 *     multi   the write itself, setData mark (version n)
 *     no reply: the same again
 *     rejected, and the mark has version n + 1: the first attempt was applied
 *
 * A mark is created once and serves one write at a time, so a write costs no more requests than
 * without it.
 *
 * The Stat of a mark also shows the time: that of the leader, which all clients share.
 */
import { type Acl, type ClientView, KeeperError, op, type Stat, type WriteOp } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { RecipeError } from '../recipe-error.ts';
import { unlessAborted } from '../waiting/limit.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unsettled } from '../waiting/unanswered.ts';

/**
 * The result of a write. `results` has an entry for each operation; it is undefined if the reply
 * was lost.
 */
export interface Written {
  readonly results: readonly unknown[] | undefined;
}

/** How long the leader's time, once received, is trusted. */
const trustedMs = 60_000;

interface Mark {
  readonly path: string;
  version: number;
}

export class Marks {
  readonly #zk: ClientView;
  readonly #parent: string;
  readonly #acl: readonly Acl[] | undefined;
  readonly #free: Mark[] = [];
  #isClosed = false;
  /** The leader's time, minus the time of the client's clock. */
  #offsetMs: number | undefined;
  /** By the client's clock. */
  #heardAtMs: number | undefined;

  constructor(zk: ClientView, parent: string, acl: readonly Acl[] | undefined) {
    this.#zk = zk;
    this.#parent = parent;
    this.#acl = acl;
  }

  /**
   * Applies all operations, once. Rejects with a server's rejection, with `failedIndex` counted in
   * `ops`, and with the end of the session, with the outcome `unknown` if it cannot be determined.
   * The signal ends it only before the request is sent, so that the caller always learns the
   * outcome.
   */
  async write(ops: readonly WriteOp[], signal?: AbortSignal): Promise<Written> {
    for (;;) {
      signal?.throwIfAborted();
      const mark = this.#free.pop() ?? (await this.#make(signal));
      const written = await this.#writeWith(mark, ops);
      if (written !== undefined) return written;
    }
  }

  /** undefined if another client has touched the mark, so that nothing was written. */
  async #writeWith(mark: Mark, ops: readonly WriteOp[]): Promise<Written | undefined> {
    let unanswered: unknown;
    for (;;) {
      try {
        const results: readonly unknown[] = await this.#zk.multi(
          [...ops, op.setData(mark.path, null, { version: mark.version })],
          untilTheEnd,
        );
        this.#heard((results[ops.length] as { readonly stat: Stat }).stat);
        this.#advance(mark);
        return { results: results.slice(0, ops.length) };
      } catch (error) {
        if (!KeeperError.is(error)) {
          // An invalid request is detected before the first attempt.
          this.#keep(mark);
          throw error;
        }
        if (error.outcome === 'unknown') {
          if (this.#zk.closedBecause !== undefined) throw unsettled(error);
          unanswered = error;
          continue;
        }
        if (unanswered !== undefined) return await this.#settle(mark, error, unanswered);
        if (error.failedIndex === ops.length && KeeperError.is(error, 'NoNode', 'BadVersion')) return undefined;
        this.#keep(mark);
        throw error;
      }
    }
  }

  /** What a rejection means after an attempt without a reply. */
  async #settle(mark: Mark, refusal: KeeperError, unanswered: unknown): Promise<Written> {
    const stat = await this.#zk.exists(mark.path, untilTheEnd).catch(() => null);
    // The mark was deleted by another client, or the session is over: the outcome cannot be
    // determined.
    if (stat === null) throw unsettled(unanswered);
    if (stat.version === mark.version) {
      this.#keep(mark);
      throw refusal;
    }
    this.#advance(mark);
    return { results: undefined };
  }

  /**
   * The leader's time, in ms since 1970, or earlier. Its clock may have been set since it was last
   * read, so it is read again after a minute.
   */
  async nowMs(signal: AbortSignal): Promise<number> {
    const { elapsedMs } = this.#zk.clock.now();
    if (this.#heardAtMs === undefined) this.#keep(await this.#make(signal));
    else if (elapsedMs - this.#heardAtMs > trustedMs) await unlessAborted(this.write([], signal), signal);
    return this.guessedMs!;
  }

  /** The same as last received, however long ago; undefined before the first time. */
  get guessedMs(): number | undefined {
    return this.#offsetMs === undefined ? undefined : this.#zk.clock.now().elapsedMs + this.#offsetMs;
  }

  #heard({ mtime }: Stat): void {
    this.#heardAtMs = this.#zk.clock.now().elapsedMs;
    this.#offsetMs = mtime - this.#heardAtMs;
  }

  async #make(signal: AbortSignal | undefined): Promise<Mark> {
    const settings = { mode: 'ephemeralSequential', parents: 'container', acl: this.#acl, signal } as const;
    for (;;) {
      try {
        const { path, stat } = await makeOwn(this.#zk, childPath(this.#parent, 'mark-'), null, settings);
        this.#heard(stat);
        return { path, version: stat.version };
      } catch (error) {
        if (!(error instanceof RecipeError && error.code === 'Lost')) throw error;
      }
    }
  }

  #advance(mark: Mark): void {
    mark.version = (mark.version + 1) | 0;
    this.#keep(mark);
  }

  #keep(mark: Mark): void {
    if (this.#isClosed) void this.#remove(mark);
    else this.#free.push(mark);
  }

  /** Deletes the marks; those in use, when their writes are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#free.splice(0).map((mark) => this.#remove(mark)));
  }

  async #remove({ path }: Mark): Promise<void> {
    // It ends with the session in any case.
    await this.#zk.delete(path, { guaranteed: true }).catch(() => undefined);
  }
}
