/**
 * Several things at once, or none. As Curator's InterProcessMultiLock, but in one order, whatever order they are named in: by their paths. So two that want
 * the same things never each have what the other waits for.
 *
 *     1. acquire the first by its path, the second, and so on
 *     2. one is not to be had, or one that is had is lost meanwhile: release the others, the last first
 *     3. all are had: held together, until one is lost
 *
 * Whoever acquires something else while it holds some, outside of a MultiLock, is on its own.
 */
import { onAbort } from '@tskeeper/client/internal';
import { checkArray, checkCount, checkFunction, named } from '../given.ts';
import type { Held } from '../line/held.ts';
import { HeldTogether, releaseAll } from '../line/held-together.ts';
import { Limit } from '../waiting/limit.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** What a MultiLock can take: a Lock, a Semaphore, a side of a SharedLock. */
export interface Acquirable {
  /** Its znode, by which many are put in order. */
  readonly path: string;
  /** The client, or the Sessions, that it was made with. */
  readonly source: SessionSource;
  /** As `Lock.acquire`, and rejects as that does. */
  acquire(options?: WaitOptions): Promise<Held>;
  /** As `Lock.tryAcquire`, and rejects as that does. */
  tryAcquire(options?: WaitOptions): Promise<Held | undefined>;
}

/** Several things at once, or none, without deadlock among those who do likewise. */
export class MultiLock {
  /** What is acquired, in this order. */
  readonly parts: readonly Acquirable[];
  readonly #source: SessionSource;

  /**
   * Nothing is asked of a server yet. Throws a TypeError when there are none, when they are not all of one client (or view, or Sessions), and for two of one path, of which the second
   * would wait for the first.
   */
  constructor(parts: readonly Acquirable[]) {
    checkCount(arguments.length, 1, 'new MultiLock(parts)');
    checkArray(parts, 'the parts of a MultiLock are');
    for (const part of parts) {
      if (typeof (part as Partial<Acquirable> | undefined)?.tryAcquire !== 'function')
        throw new TypeError(`a part of a MultiLock is a lock, or what is acquired as one, not ${named(part)}`);
    }
    const [first] = parts;
    if (first === undefined) throw new TypeError('a MultiLock has at least one part');
    this.#source = first.source;
    this.parts = parts.toSorted((one, other) => (one.path < other.path ? -1 : 1));
    this.parts.forEach(({ path, source }, at) => {
      if (source !== first.source)
        throw new TypeError(`the parts of a MultiLock are of one client, or of one Sessions, but ${path} is of another than ${first.path}`);
      if (path === this.parts[at + 1]?.path)
        throw new TypeError(`${path} is named twice, and the second would wait for the first; leave one out`);
    });
  }

  /**
   * Waits for all of them, one after the other, and resolves when it has all. Rejects as `Lock.acquire` does for whichever is not to be had, or is lost before the
   * others are had; nothing is kept then.
   */
  async acquire(options: WaitOptions = {}): Promise<HeldTogether> {
    checkCount(arguments.length, 1, 'acquire(options)');
    return (await this.#all((part, signal) => part.acquire({ signal }), options))!;
  }

  /** All of them, if each can be had without waiting; undefined otherwise, and nothing is kept. Rejects as `acquire` does. */
  async tryAcquire(options: WaitOptions = {}): Promise<HeldTogether | undefined> {
    checkCount(arguments.length, 1, 'tryAcquire(options)');
    return await this.#all((part, signal) => part.tryAcquire({ signal }), options);
  }

  /** Calls `work` with all of them, and gives them back whatever comes of that. Resolves and rejects as `work` does, or as `acquire`. */
  async run<Result>(work: (held: HeldTogether) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using held = await this.acquire(options);
    return await work(held);
  }

  /** Should the session end while some are waited for, those that were had are lost, and all of them are acquired again in the next session. */
  async #all(
    acquire: (part: Acquirable, signal: AbortSignal) => Promise<Held | undefined>,
    options: WaitOptions,
  ): Promise<HeldTogether | undefined> {
    const what = `all of ${this.parts.map(({ path }) => path).join(', ')}`;
    using limit = new Limit(this.#source, options, what);
    const { signal } = limit;
    return await inSessions(this.#source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      return await this.#allIn(acquire, ofSession);
    });
  }

  async #allIn(
    acquire: (part: Acquirable, signal: AbortSignal) => Promise<Held | undefined>,
    limit: Limit,
  ): Promise<HeldTogether | undefined> {
    const holds: Held[] = [];
    const { signal } = limit;
    try {
      for (const part of this.parts) {
        const held = await acquire(part, signal);
        if (held === undefined) break;
        holds.push(held);
        if (held.signal.aborted) limit.end(held.signal.reason);
        else onAbort(held.signal, () => limit.end(held.signal.reason));
        signal.throwIfAborted();
      }
    } catch (error) {
      await releaseAll(holds);
      throw error;
    }
    if (holds.length === this.parts.length) return new HeldTogether(holds);
    await releaseAll(holds);
    return undefined;
  }
}
