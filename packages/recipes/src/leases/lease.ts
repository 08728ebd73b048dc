/**
 * Held for a stated time, independent of the session: kazoo's NonBlockingLease, with a fence.
 *
 *     /leases/cleanup
 *       ├─ lease_holder             {"version": 1, "holder": "host7", "end": "2026-11-22T21:15:00"}
 *       ├─ _c_2b7e...-lease-0000000004    of the holder: deleted before another holds the lease
 *       └─ _c_91aa...-waiting-0000000007  waits for the end, or for a change of lease_holder
 *
 *     1. the lock of the znode, in kazoo's queue (`__lock__`): one at a time reads and writes
 *     2. create guid-lease- (PERSISTENT, SEQUENTIAL): its ctime is the time, its czxid the token
 *     3. getData lease_holder: of another, and not over: delete our own znode again
 *     4. multi: delete the lease- of others, write lease_holder, if the lock and our own exist
 *     5. release the lock
 *
 * kazoo uses the clocks of its clients, which have to agree. Here the time is that of the
 * ensemble's leader, which writes it into each Stat. A holder counts from before it sent its
 * request, so its lease never ends later for itself than for the others. Remaining assumptions:
 * clocks run at the same rate; and the leader's clock does not jump forward, and the clock of the
 * next leader is not ahead of it, by more than the remaining time.
 */
import { type ClientView, KeeperError, op, type Stat, type WriteOp } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkArgumentCount, checkOptions, checkSourceAndPath, checkConstructorOptions, describeValue } from '../validation.ts';
import { acquire } from '../wait-queue/acquire.ts';
import { contendersIn } from '../wait-queue/contender.ts';
import { fencedMulti } from '../wait-queue/fenced-multi.ts';
import { nodeDeletedError, WaitQueue, type ContenderOptions, previousContender } from '../wait-queue/wait-queue.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { Deadline } from '../waiting/deadline.ts';
import { createOwnZnode, isUnanswered, retryForever } from '../waiting/own-znode.ts';
import { firstOf, pause } from '../waiting/promises.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { HeldLease } from './held-lease.ts';
import { type LeaseRecord, readRecord, formatRecord } from './lease-record.ts';

/** How a lease is kept. All contenders use the same options, except `holder` and `durationMs`. */
export interface LeaseOptions extends ContenderOptions {
  /** The duration in milliseconds, counted from the request. */
  readonly durationMs: number;
  /**
   * The name of the holder. A process with the same name takes the lease over at once, such as
   * after a restart. The previous process believes in its lease until it renews, writes, or the
   * lease expires; even if its successor has already released the lease, or held it for a shorter
   * time, and a third process has it now.
   */
  readonly holder: string;
}

/** Later ends are not valid dates. */
const durationMsMax = 100 * 365 * 86_400_000;

const leasePrefix = 'lease-';
const leaseWaitPrefix = 'waiting-';

/** Held for a stated time: kazoo's NonBlockingLease. */
export class Lease {
  /** The znode of the lease. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #options: LeaseOptions;
  readonly #lockQueue: WaitQueue;
  readonly #waitQueue: WaitQueue;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client,
   * `path` is not a path or `holder` is missing, and a RangeError for a duration that is not
   * positive, or longer than a hundred years.
   */
  constructor(source: SessionSource, path: string, options: LeaseOptions) {
    checkSourceAndPath(source, path);
    checkOptions(options, "{ durationMs: 60_000, holder: 'host7' }");
    checkConstructorOptions(options, 'Lease', arguments.length);
    const { durationMs, holder } = options;
    if (!(typeof durationMs === 'number' && durationMs > 0 && durationMs <= durationMsMax))
      throw new RangeError(`durationMs must be a positive number of milliseconds, up to a hundred years, not ${describeValue(durationMs)}`);
    if (typeof holder !== 'string' || holder === '')
      throw new TypeError(`the holder of a lease must be a string that no other holder has, not ${describeValue(holder)}`);
    this.path = path;
    this.#source = source;
    this.#options = options;
    this.#lockQueue = new WaitQueue(path, ['__lock__'], options);
    this.#waitQueue = new WaitQueue(path, [leaseWaitPrefix], options);
  }

  /**
   * The lease, if it is free; undefined otherwise. Rejects with a RecipeError: Mismatch, when its
   * znode is not a lease; TimedOut; Lost, when another client deletes the znode of the lock
   * meanwhile; with the signal's reason; with SessionExpired and the like; and with NoAuth. If
   * NoAuth concerns the deletion of its place in the queue, the lease may have been taken, and then
   * lasts until its end.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<HeldLease | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
    using deadline = new Deadline(this.#source, options, `a reply about lease ${this.path}`);
    const { signal } = deadline;
    const answer = await runAcrossSessions(this.#source, signal, (zk) => this.#tryInSession(zk, signal));
    return answer instanceof HeldLease ? answer : undefined;
  }

  /**
   * Waits until it is free or over, in the order of arrival, and resolves with it. Rejects as
   * `tryAcquire` does.
   */
  async acquire(options: WaitOptions = {}): Promise<HeldLease> {
    checkArgumentCount(arguments.length, 1, 'acquire(options)');
    const what = `lease ${this.path}`;
    using deadline = new Deadline(this.#source, options, what);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      return await this.#acquireInSession(zk, sessionDeadline);
    });
  }

  async #acquireInSession(zk: ClientView, deadline: Deadline): Promise<HeldLease> {
    const node = await this.#waitQueue.join(zk, leaseWaitPrefix, this.#options.holder, deadline.signal);
    try {
      await node.waitForTurn(previousContender, deadline);
      for (;;) {
        const answer = await this.#tryInSession(zk, deadline.signal);
        if (answer instanceof HeldLease) return answer;
        await firstOf<unknown>(deadline.signal, [
          (signal) => waitForEvent(zk, this.#holderPath, signal),
          (signal) => pause(zk.clock, Math.max(answer.remainingMs, 1), signal),
        ]);
      }
    } finally {
      await node.leave();
    }
  }

  get #holderPath(): string {
    return childPath(this.path, 'lease_holder');
  }

  async #tryInSession(zk: ClientView, signal: AbortSignal): Promise<HeldLease | { readonly remainingMs: number }> {
    const request = {
      queue: this.#lockQueue,
      prefix: '__lock__',
      data: this.#options.holder,
      findBlocker: previousContender,
      what: `the lock of lease ${this.path}`,
    };
    await using lock = await acquire(zk, request, { signal });
    try {
      return await this.#tryUnderLock(lock, signal);
    } catch (error) {
      // Their parent is gone, and so is the lock.
      throw KeeperError.is(error, 'NoNode') ? nodeDeletedError(lock.path) : error;
    }
  }

  async #tryUnderLock(lock: Hold, signal: AbortSignal): Promise<HeldLease | { readonly remainingMs: number }> {
    const { client } = lock;
    const { acl, durationMs, holder } = this.#options;
    const requestedAtMs = client.clock.now().elapsedMs;
    const own = await createOwnZnode(client, childPath(this.path, leasePrefix), holder, { mode: 'persistentSequential', acl, signal });
    let isAcquired = false;
    /** Of the record, if a write may have been applied whose outcome is unknown here. */
    let version: number | undefined;
    try {
      const nowMs = own.stat.ctime;
      const data = formatRecord({ holder, endMs: nowMs + durationMs });
      for (;;) {
        const now = await readRecord(client, this.#holderPath, signal);
        if (now !== undefined && now.holder !== holder && now.endMs > nowMs) return { remainingMs: now.endMs - nowMs };
        version = ((now?.version ?? 0) + 1) | 0;
        const record = await this.#tryWriteRecord(client, now, data, [lock.path, own.path], signal);
        if (record === 'refused') version = undefined;
        if (typeof record === 'string') continue;
        isAcquired = true;
        return new HeldLease({
          source: this.#source,
          path: own.path,
          holderPath: this.#holderPath,
          holder,
          durationMs,
          fencingToken: own.stat.czxid,
          record,
          requestedAtMs,
        });
      }
    } finally {
      if (!isAcquired) await this.#undo(client, own.path, version);
    }
  }

  /** If no server can be reached, a lease that was taken lasts until its end. */
  async #undo(zk: ClientView, own: string, version: number | undefined): Promise<void> {
    if (version !== undefined) {
      const both = [op.delete(own), op.delete(this.#holderPath, { version })];
      const areGone = await zk.multi(both).then(
        () => true,
        () => false,
      );
      if (areGone) return;
    }
    await zk.delete(own, { guaranteed: true }).catch(() => undefined);
  }

  /**
   * The Stat of the record as written; otherwise to be tried again, as something has changed or
   * there was no reply.
   */
  async #tryWriteRecord(
    zk: ClientView,
    now: LeaseRecord | undefined,
    data: string,
    [lock, own]: readonly [string, string],
    signal: AbortSignal,
  ): Promise<Stat | 'refused' | 'unanswered'> {
    const { children } = await zk.getChildren(this.path, { ...retryForever, signal });
    const others = contendersIn(this.path, children, [leasePrefix]).filter(({ path }) => path !== own);
    const { acl } = this.#options;
    // Created, and then written: kazoo creates its record with version 0, which distinguishes the
    // two.
    const making: WriteOp[] = now === undefined ? [op.create(this.#holderPath, '', { acl })] : [];
    const writing = op.setData(this.#holderPath, data, { version: now?.version ?? 0 });
    try {
      const results = await fencedMulti(zk, [...others.map(({ path }) => op.delete(path)), ...making, writing], [lock, own], {
        signal,
      });
      return (results.at(-1) as { readonly stat: Stat }).stat;
    } catch (error) {
      if (isUnanswered(error)) return 'unanswered';
      if (KeeperError.is(error, 'BadVersion', 'NoNode', 'NodeExists') || (KeeperError.is(error) && error.retryable)) return 'refused';
      throw error;
    }
  }
}
