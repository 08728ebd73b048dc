/**
 * A bounded number of holders. A semaphore as Curator's InterProcessSemaphoreV2 keeps it:
 * contenders queue, and only the first in the queue reads the leases, so that a returned lease
 * wakes one contender.
 *
 *     /semaphores/mail                        "2", the size
 *       ├─ leases
 *       │   ├─ _c_2b7e...-lease-0000000004    has a lease
 *       │   ├─ _c_77f1...-lease-0000000006    has a lease
 *       │   └─ _c_91aa...-lease-0000000007    the next to have one
 *       └─ locks
 *           ├─ _c_03bd...-lock-0000000011     has created lease 7, and watches `leases`
 *           └─ _c_4d0c...-lock-0000000012     watches 11
 *
 *     1. a place in the queue of `locks`, as for a Lock, until it is the first
 *     2. create leases/guid-lease- (EPHEMERAL, SEQUENTIAL), as many as are wanted
 *     3. getChildren of leases, no watch: the first `size` are held, whatever came later
 *     4. otherwise getChildren with a watch, wait for the event, and 3. again
 *     5. delete the place in the queue: the next one's turn
 *
 * Curator counts all leases; here their order decides, so the queue only keeps the others from
 * reading. If an operator breaks into it by hand, there are never more holders than leases, nor two
 * that wait for each other.
 */
import { type ClientView, type Data, type GetChildrenResult, KeeperError, type ReadOptions } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkArgumentCount, checkFunction, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { type Contender, contendersIn } from '../wait-queue/contender.ts';
import { Hold } from '../wait-queue/hold.ts';
import { HoldSet, releaseAll } from '../wait-queue/hold-set.ts';
import { nodeDeletedError, WaitQueue, type ContenderOptions, previousContender, type QueueNode } from '../wait-queue/wait-queue.ts';
import { Deadline } from '../waiting/deadline.ts';
import { firstOf } from '../waiting/promises.ts';
import { waitForEventUnless } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { checkSemaphoreSize, SemaphoreSize } from './semaphore-size.ts';

/** How a semaphore is kept. All contenders of a semaphore use the same options, except `data`. */
export interface SemaphoreOptions extends ContenderOptions {
  /**
   * How many leases there are. It is written to the znode at `path`; a contender with another size
   * is rejected. Default: the number in the znode, which `resize` writes and may change at any
   * time.
   */
  readonly size?: number | undefined;
  /** Data of the znodes of leases and waiters, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

const lockPrefix = 'lock-';
const semaphoreLeasePrefix = 'lease-';

/**
 * A bounded number of holders, in the order of arrival: leases, as in Curator's
 * InterProcessSemaphoreV2.
 */
export class Semaphore {
  /** The znode of the semaphore. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  readonly #waitQueue: WaitQueue;
  readonly #leaseQueue: WaitQueue;
  readonly #data: Data;
  readonly #size: SemaphoreSize;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path, and a RangeError for a size that is not a positive integer.
   */
  constructor(source: SessionSource, path: string, options: SemaphoreOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Semaphore', arguments.length);
    const { size, data = null, acl } = options;
    this.source = source;
    this.path = path;
    this.#waitQueue = new WaitQueue(childPath(path, 'locks'), [lockPrefix], options);
    this.#leaseQueue = new WaitQueue(childPath(path, 'leases'), [semaphoreLeasePrefix], options);
    this.#data = data;
    this.#size = new SemaphoreSize(path, size, acl);
  }

  /**
   * Waits for a lease, in the order of arrival, and resolves with it. Rejects as `Lock.acquire`
   * does, except with Revoked; and with a RecipeError, Mismatch, when the semaphore has another
   * size, or no size yet.
   */
  async acquire(options: WaitOptions = {}): Promise<Hold> {
    checkArgumentCount(arguments.length, 1, 'acquire(options)');
    const [hold] = await this.#acquireLeases(1, options);
    return hold!;
  }

  /**
   * Waits for several leases at once, and resolves when it has all of them. Meanwhile no other
   * contender gets one, so two that want many never wait for each other. Rejects as `acquire` does,
   * and with a RangeError for more leases than the option `size`; if the znode has the size, there
   * may be as many later.
   */
  async acquireMany(count: number, options: WaitOptions = {}): Promise<HoldSet> {
    checkArgumentCount(arguments.length, 2, 'acquireMany(count, options)');
    checkSemaphoreSize(count, 'the number of leases');
    const { fixed } = this.#size;
    if (fixed !== undefined && count > fixed)
      throw new RangeError(`semaphore ${this.path} has ${fixed} leases, so ${count} cannot be held at once`);
    return new HoldSet(await this.#acquireLeases(count, options));
  }

  /**
   * A lease, if one is free and no contender waits for it; undefined otherwise. Rejects as
   * `acquire` does.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<Hold | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
    const taken = await this.#withDeadline(options, async (zk, deadline) => {
      const size = await this.#size.agreeOnSize(zk, deadline.signal);
      const node = await this.#waitQueue.join(zk, lockPrefix, this.#data, deadline.signal);
      return await node.leaveWithResult(
        async () => {
          if ((await node.currentBlocker(previousContender, deadline.signal)) !== undefined) return [];
          return await this.#createLeases(zk, 1, deadline, (lease) => this.#isAmongFirst(lease, size, deadline.signal));
        },
        (holds) => releaseAll(holds),
      );
    });
    return taken[0];
  }

  /**
   * Calls `work` with a lease, and releases it afterwards, also when `work` fails. Resolves and
   * rejects as `work` does, or as `acquire`.
   */
  async run<Result>(work: (hold: Hold) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using hold = await this.acquire(options);
    return await work(hold);
  }

  /**
   * The holders of leases, and then the contender that is about to have one, in the order of
   * arrival. Deleting the znode of a lease takes it away from its holder. Rejects as
   * `Lock.contenders` does.
   */
  async leases(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'leases(options)');
    return await this.#leaseQueue.contenders(this.source, options);
  }

  /**
   * The waiters, in the order of arrival. Deleting the znode of a waiter takes its place away.
   * Rejects as `Lock.contenders` does.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'contenders(options)');
    return await this.#waitQueue.contenders(this.source, options);
  }

  /**
   * Sets the number of leases from now on, for all that use the semaphore without the option
   * `size`. If there are fewer than before, no holder loses its lease: no contender gets one until
   * enough have been released. Rejects as `Client.setData` does; throws a RangeError, and a
   * TypeError if the constructor received a size.
   */
  async resize(size: number, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'resize(size, options)');
    await this.#size.set(this.source, size, options);
  }

  /**
   * `work` in the current session, and again in the next one if that ends. Its limit is that of one
   * session.
   */
  async #withDeadline<Result>(options: WaitOptions, work: (zk: ClientView, deadline: Deadline) => Promise<Result>): Promise<Result> {
    const what = `a lease of semaphore ${this.path}`;
    using deadline = new Deadline(this.source, options, what);
    const { signal } = deadline;
    return await runAcrossSessions(this.source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      return await work(zk, sessionDeadline);
    });
  }

  #acquireLeases(count: number, options: WaitOptions): Promise<readonly Hold[]> {
    return this.#withDeadline(options, async (zk, deadline) => {
      const size = await this.#size.agreeOnSize(zk, deadline.signal);
      const node = await this.#waitQueue.join(zk, lockPrefix, this.#data, deadline.signal);
      return await node.leaveWithResult(
        async () => {
          await node.waitForTurn(previousContender, deadline);
          return await this.#createLeases(zk, count, deadline, async (last) => {
            await this.#waitUntilAmongFirst(last, size, deadline.signal);
            return true;
          });
        },
        (holds) => releaseAll(holds),
      );
    });
  }

  /**
   * Creates leases, and returns their holds if `waitUntilGranted` says that the last one is held,
   * and so the earlier ones too; otherwise it leaves none.
   */
  async #createLeases(
    zk: ClientView,
    count: number,
    deadline: Deadline,
    waitUntilGranted: (last: QueueNode) => Promise<boolean>,
  ): Promise<readonly Hold[]> {
    const places: QueueNode[] = [];
    let areGranted = false;
    try {
      while (places.length < count) {
        const node = await this.#leaseQueue.join(zk, semaphoreLeasePrefix, this.#data, deadline.signal);
        places.push(node);
        node.onGone((reason) => deadline.abort(reason));
      }
      areGranted = await waitUntilGranted(places.at(-1)!);
    } finally {
      if (!areGranted) await Promise.all(places.map((node) => node.leave()));
    }
    return areGranted ? places.map((node) => new Hold(node)) : [];
  }

  async #waitUntilAmongFirst(lease: QueueNode, sizeBefore: number, signal: AbortSignal): Promise<void> {
    for (let size = sizeBefore; !(await this.#isAmongFirst(lease, size, signal));) {
      const leaseReleased = (within: AbortSignal) => this.#waitForLeaseChange(lease, size, within);
      if (this.#size.fixed === undefined) {
        await firstOf(signal, [leaseReleased, (within) => this.#size.waitForChange(lease.zk, size, within)]);
        size = await this.#size.agreeOnSize(lease.zk, signal);
      } else await leaseReleased(signal);
    }
  }

  async #isAmongFirst(lease: QueueNode, size: number, signal: AbortSignal): Promise<boolean> {
    return isAmongFirst(size, lease, await this.#leaseQueue.contenders(lease.zk, { signal }));
  }

  async #waitForLeaseChange(lease: QueueNode, size: number, signal: AbortSignal): Promise<void> {
    const { zk } = lease;
    const { path } = this.#leaseQueue;
    const read = (options: ReadOptions) => zk.getChildren(path, options);
    const isGranted = ({ children }: GetChildrenResult) => isAmongFirst(size, lease, contendersIn(path, children, [semaphoreLeasePrefix]));
    try {
      await waitForEventUnless(zk, path, read, isGranted, signal);
    } catch (error) {
      // Deleted together with its parent.
      throw KeeperError.is(error, 'NoNode') ? nodeDeletedError(lease.path) : error;
    }
  }
}

function isAmongFirst(size: number, lease: QueueNode, leases: readonly Contender[]): boolean {
  const at = leases.findIndex(({ path }) => path === lease.path);
  if (at === -1) throw nodeDeletedError(lease.path);
  return at < size;
}
