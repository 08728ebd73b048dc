/**
 * Writes that are carried out once, though their answers may be lost.
 *
 * What is there afterwards does not tell. A guid in the name of an item, or a look at a queue, says nothing of a put or a take without an answer, since others may have taken
 * the item meanwhile; and a number that was 5 and is 6 says nothing of one's own 6, as all who count write that. So each write takes a mark along, an ephemeral of one's own
 * that nobody else writes to:
 *
 *     multi   what is to be done, setData mark (version n)
 *     no answer: the same again. Refused, and the mark is at n + 1: it was carried out the first time.
 *
 * The mark is made once and serves for one write at a time, so a write costs no more requests than it would without it.
 *
 * What the ensemble says of a mark tells the time as well: that of the leader, which all have in common.
 */
import { type Acl, type ClientView, KeeperError, op, type Stat, type WriteOp } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { RecipeError } from '../recipe-error.ts';
import { unlessAborted } from '../waiting/limit.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unsettled } from '../waiting/unanswered.ts';

/** What a write has done. `results` has an entry for each operation; it is undefined when the answer was lost. */
export interface Written {
  readonly results: readonly unknown[] | undefined;
}

/** How long what was heard of the leader's clock is believed. */
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
  /** The leader's time, less the time of the client's clock. */
  #offsetMs: number | undefined;
  /** By the client's clock. */
  #heardAtMs: number | undefined;

  constructor(zk: ClientView, parent: string, acl: readonly Acl[] | undefined) {
    this.#zk = zk;
    this.#parent = parent;
    this.#acl = acl;
  }

  /**
   * Carries out all of it, once. Rejects with what a server refuses it for, `failedIndex` counting as `ops` do, and with the end of the session, the outcome
   * being `unknown` when nobody can say. The signal ends it before it is asked, and nothing else does, so that whoever asks knows what has become of it.
   */
  async write(ops: readonly WriteOp[], signal?: AbortSignal): Promise<Written> {
    for (;;) {
      signal?.throwIfAborted();
      const mark = this.#free.pop() ?? (await this.#make(signal));
      const written = await this.#writeWith(mark, ops);
      if (written !== undefined) return written;
    }
  }

  /** undefined when somebody has laid hands on the mark, so that nothing was written. */
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
          // What is no request at all is found out ahead of the first attempt.
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

  /** What a refusal means behind an attempt that was not answered. */
  async #settle(mark: Mark, refusal: KeeperError, unanswered: unknown): Promise<Written> {
    const stat = await this.#zk.exists(mark.path, untilTheEnd).catch(() => null);
    // Taken away by somebody, or the session is over: nobody can say any more.
    if (stat === null) throw unsettled(unanswered);
    if (stat.version === mark.version) {
      this.#keep(mark);
      throw refusal;
    }
    this.#advance(mark);
    return { results: undefined };
  }

  /** What time it is for the leader, in ms since 1970; not later than that. Its clock may have been set since it was heard of, so it is asked after a minute. */
  async nowMs(signal: AbortSignal): Promise<number> {
    const { elapsedMs } = this.#zk.clock.now();
    if (this.#heardAtMs === undefined) this.#keep(await this.#make(signal));
    else if (elapsedMs - this.#heardAtMs > trustedMs) await unlessAborted(this.write([], signal), signal);
    return this.guessedMs!;
  }

  /** The same by what was heard of it last, however long ago; undefined ahead of the first time. */
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

  /** Takes the marks away; those that are in use when they are not any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#free.splice(0).map((mark) => this.#remove(mark)));
  }

  async #remove({ path }: Mark): Promise<void> {
    // It goes with the session in any case.
    await this.#zk.delete(path, { guaranteed: true }).catch(() => undefined);
  }
}
