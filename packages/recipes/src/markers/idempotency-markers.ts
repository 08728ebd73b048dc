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
import { unlessAborted } from '../waiting/deadline.ts';
import { createOwnZnode, markUnsettled, retryForever } from '../waiting/own-znode.ts';

/**
 * The result of a write. `results` has an entry for each operation; it is undefined if the reply
 * was lost.
 */
export interface MarkedWrite {
  readonly results: readonly unknown[] | undefined;
}

/** How long the leader's time, once received, is trusted. */
const clockTrustMs = 60_000;

interface Marker {
  readonly path: string;
  version: number;
}

export class IdempotencyMarkers {
  readonly #zk: ClientView;
  readonly #parent: string;
  readonly #acl: readonly Acl[] | undefined;
  readonly #freeMarkers: Marker[] = [];
  #isClosed = false;
  /** The leader's time, minus the time of the client's clock. */
  #leaderOffsetMs: number | undefined;
  /** By the client's clock. */
  #offsetReadAtMs: number | undefined;

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
  async write(ops: readonly WriteOp[], signal?: AbortSignal): Promise<MarkedWrite> {
    for (;;) {
      signal?.throwIfAborted();
      const marker = this.#freeMarkers.pop() ?? (await this.#createMarker(signal));
      const written = await this.#writeWithMarker(marker, ops);
      if (written !== undefined) return written;
    }
  }

  /** undefined if another client has touched the mark, so that nothing was written. */
  async #writeWithMarker(marker: Marker, ops: readonly WriteOp[]): Promise<MarkedWrite | undefined> {
    let unanswered: unknown;
    for (;;) {
      try {
        const results: readonly unknown[] = await this.#zk.multi(
          [...ops, op.setData(marker.path, null, { version: marker.version })],
          retryForever,
        );
        this.#recordLeaderTime((results[ops.length] as { readonly stat: Stat }).stat);
        this.#advance(marker);
        return { results: results.slice(0, ops.length) };
      } catch (error) {
        if (!KeeperError.is(error)) {
          // An invalid request is detected before the first attempt.
          this.#recycle(marker);
          throw error;
        }
        if (error.outcome === 'unknown') {
          if (this.#zk.endReason !== undefined) throw markUnsettled(error);
          unanswered = error;
          continue;
        }
        if (unanswered !== undefined) return await this.#resolveRejection(marker, error, unanswered);
        if (error.failedIndex === ops.length && KeeperError.is(error, 'NoNode', 'BadVersion')) return undefined;
        this.#recycle(marker);
        throw error;
      }
    }
  }

  /** What a rejection means after an attempt without a reply. */
  async #resolveRejection(marker: Marker, refusal: KeeperError, unanswered: unknown): Promise<MarkedWrite> {
    const stat = await this.#zk.exists(marker.path, retryForever).catch(() => null);
    // The mark was deleted by another client, or the session is over: the outcome cannot be
    // determined.
    if (stat === null) throw markUnsettled(unanswered);
    if (stat.version === marker.version) {
      this.#recycle(marker);
      throw refusal;
    }
    this.#advance(marker);
    return { results: undefined };
  }

  /**
   * The leader's time, in ms since 1970, or earlier. Its clock may have been set since it was last
   * read, so it is read again after a minute.
   */
  async leaderNowMs(signal: AbortSignal): Promise<number> {
    const { elapsedMs } = this.#zk.clock.now();
    if (this.#offsetReadAtMs === undefined) this.#recycle(await this.#createMarker(signal));
    else if (elapsedMs - this.#offsetReadAtMs > clockTrustMs) await unlessAborted(this.write([], signal), signal);
    return this.estimatedLeaderNowMs!;
  }

  /** The same as last received, however long ago; undefined before the first time. */
  get estimatedLeaderNowMs(): number | undefined {
    return this.#leaderOffsetMs === undefined ? undefined : this.#zk.clock.now().elapsedMs + this.#leaderOffsetMs;
  }

  #recordLeaderTime({ mtime }: Stat): void {
    this.#offsetReadAtMs = this.#zk.clock.now().elapsedMs;
    this.#leaderOffsetMs = mtime - this.#offsetReadAtMs;
  }

  async #createMarker(signal: AbortSignal | undefined): Promise<Marker> {
    const settings = { mode: 'ephemeralSequential', parents: 'container', acl: this.#acl, signal } as const;
    for (;;) {
      try {
        const { path, stat } = await createOwnZnode(this.#zk, childPath(this.#parent, 'mark-'), null, settings);
        this.#recordLeaderTime(stat);
        return { path, version: stat.version };
      } catch (error) {
        if (!(error instanceof RecipeError && error.code === 'Lost')) throw error;
      }
    }
  }

  #advance(marker: Marker): void {
    marker.version = (marker.version + 1) | 0;
    this.#recycle(marker);
  }

  #recycle(marker: Marker): void {
    if (this.#isClosed) void this.#deleteMarker(marker);
    else this.#freeMarkers.push(marker);
  }

  /** Deletes the marks; those in use, when their writes are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#freeMarkers.splice(0).map((marker) => this.#deleteMarker(marker)));
  }

  async #deleteMarker({ path }: Marker): Promise<void> {
    // It ends with the session in any case.
    await this.#zk.delete(path, { guaranteed: true }).catch(() => undefined);
  }
}
