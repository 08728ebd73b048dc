/**
 * Several locks at once, or none: as Curator's InterProcessMultiLock, but always in the order of
 * their paths, however they are listed. So two that want the same locks never each hold what the
 * other waits for.
 *
 *     1. acquire the first by its path, the second, and so on
 *     2. one cannot be acquired, or one is lost meanwhile: release the others, the last first
 *     3. all are acquired: held together, until one is lost
 *
 * A program that holds some and acquires another lock outside of the MultiLock can still deadlock.
 */
import { onAbort } from '@tskeeper/client/internal';
import { checkArray, checkArgumentCount, checkFunction, describeValue } from '../validation.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { HoldSet, releaseAll } from '../wait-queue/hold-set.ts';
import { Deadline } from '../waiting/deadline.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';

/** A part of a MultiLock: a Lock, a Semaphore, a side of a ReadWriteLock. */
export interface Acquirable {
  /** Its znode, by which parts are sorted. */
  readonly path: string;
  /** The client, or the Sessions, that it was created with. */
  readonly source: SessionSource;
  /** As `Lock.acquire`, and rejects as that does. */
  acquire(options?: WaitOptions): Promise<Hold>;
  /** As `Lock.tryAcquire`, and rejects as that does. */
  tryAcquire(options?: WaitOptions): Promise<Hold | undefined>;
}

/** Several locks at once, or none, without deadlock among programs that do the same. */
export class MultiLock {
  /** The parts, in the order of acquisition. */
  readonly locks: readonly Acquirable[];
  readonly #source: SessionSource;

  /**
   * Sends no request. Throws a TypeError when there are no parts, when they do not all have the
   * same client, view or Sessions, and when two have the same path, as the second would wait for
   * the first.
   */
  constructor(locks: readonly Acquirable[]) {
    checkArgumentCount(arguments.length, 1, 'new MultiLock(locks)');
    checkArray(locks, 'the parts of a MultiLock');
    for (const part of locks) {
      if (typeof (part as Partial<Acquirable> | undefined)?.tryAcquire !== 'function')
        throw new TypeError(`a part of a MultiLock must be a lock, a semaphore or a side of a shared lock, not ${describeValue(part)}`);
    }
    const [first] = locks;
    if (first === undefined) throw new TypeError('a MultiLock must have at least one part');
    this.#source = first.source;
    this.locks = locks.toSorted((one, other) => (one.path < other.path ? -1 : 1));
    this.locks.forEach(({ path, source }, at) => {
      if (source !== first.source)
        throw new TypeError(
          `the parts of a MultiLock must have the same client or Sessions, but ${path} has another one than ${first.path}`,
        );
      if (path === this.locks[at + 1]?.path)
        throw new TypeError(`${path} is listed twice, and the second would wait for the first; leave one out`);
    });
  }

  /**
   * Acquires all of them, one after the other, and resolves when it holds all. Rejects as
   * `Lock.acquire` does for a part that cannot be acquired, or is lost before all are; it then
   * holds none.
   */
  async acquire(options: WaitOptions = {}): Promise<HoldSet> {
    checkArgumentCount(arguments.length, 1, 'acquire(options)');
    return (await this.#acquireAll((part, signal) => part.acquire({ signal }), options))!;
  }

  /**
   * All of them, if each can be acquired without waiting; undefined otherwise, and it then holds
   * none. Rejects as `acquire` does.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<HoldSet | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
    return await this.#acquireAll((part, signal) => part.tryAcquire({ signal }), options);
  }

  /**
   * Calls `work` with all of them, and releases them afterwards, also when `work` fails. Resolves
   * and rejects as `work` does, or as `acquire`.
   */
  async run<Result>(work: (hold: HoldSet) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using hold = await this.acquire(options);
    return await work(hold);
  }

  /**
   * If the session ends while some are waited for, the acquired ones are lost, and all are acquired
   * again in the next session.
   */
  async #acquireAll(
    acquire: (part: Acquirable, signal: AbortSignal) => Promise<Hold | undefined>,
    options: WaitOptions,
  ): Promise<HoldSet | undefined> {
    const what = `all of ${this.locks.map(({ path }) => path).join(', ')}`;
    using deadline = new Deadline(this.#source, options, what);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      return await this.#acquireAllInSession(acquire, sessionDeadline);
    });
  }

  async #acquireAllInSession(
    acquire: (part: Acquirable, signal: AbortSignal) => Promise<Hold | undefined>,
    deadline: Deadline,
  ): Promise<HoldSet | undefined> {
    const holds: Hold[] = [];
    const { signal } = deadline;
    try {
      for (const part of this.locks) {
        const hold = await acquire(part, signal);
        if (hold === undefined) break;
        holds.push(hold);
        if (hold.signal.aborted) deadline.abort(hold.signal.reason);
        else onAbort(hold.signal, () => deadline.abort(hold.signal.reason));
        signal.throwIfAborted();
      }
    } catch (error) {
      await releaseAll(holds);
      throw error;
    }
    if (holds.length === this.locks.length) return new HoldSet(holds);
    await releaseAll(holds);
    return undefined;
  }
}
