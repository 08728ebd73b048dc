/**
 * One holder at a time. The lock of ZooKeeper's recipes page: a queue, whose first has the lock,
 * and each of the others watches the one before it.
 *
 *     /locks/report
 *       ├─ _c_2b7e...-lock-0000000007    has the lock
 *       ├─ _c_91aa...-lock-0000000008    watches 7
 *       └─ _c_4d0c...-lock-0000000011    watches 8
 */
import type { Data } from '@tskeeper/client';
import { checkArgumentCount, checkFunction, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import type { Contender } from '../wait-queue/contender.ts';
import { acquire, type AcquireOptions, type LockRequest, revoke, type RevokeOptions, tryAcquire } from '../wait-queue/acquire.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { WaitQueue, type ContenderOptions, previousContender } from '../wait-queue/wait-queue.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';

/** How a lock is kept. All contenders of a lock use the same options. */
export interface LockOptions extends ContenderOptions {
  /**
   * The part of the contenders' names between guid and number. Contenders with another name are not
   * in this queue. Default: `lock-`, as in ZooKeeper's recipe and in Curator's InterProcessMutex;
   * kazoo's Lock has `__lock__`.
   */
  readonly prefix?: string | undefined;
  /** Data of the contenders' znodes, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

/** One holder at a time: the lock of ZooKeeper's recipes. */
export class Lock {
  /** The znode below which contenders queue. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  readonly #request: LockRequest;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: LockOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Lock', arguments.length);
    const { prefix = 'lock-', data = null } = options;
    this.path = path;
    this.source = source;
    this.#request = {
      queue: new WaitQueue(path, [prefix], options),
      prefix: prefix,
      data,
      findBlocker: previousContender,
      what: `lock ${path}`,
    };
  }

  /**
   * Waits for its turn, in the order of arrival, and resolves with the lock. The wait survives lost
   * connections. Rejects with a RecipeError: TimedOut; Revoked; Lost, when another client deletes
   * the znode of the wait; with the signal's reason; with SessionExpired and the like; and with
   * NoAuth, InvalidACL or QuotaExceeded when the znode cannot be created. In each case the place is
   * given up; if the client may not delete its znode, it stays until the session ends, and this
   * rejects with NoAuth.
   */
  async acquire(options: AcquireOptions = {}): Promise<Hold> {
    checkArgumentCount(arguments.length, 1, 'acquire(options)');
    return await acquire(this.source, this.#request, options);
  }

  /**
   * The lock, if it has no holder and no waiter; undefined otherwise. Rejects as `acquire` does.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<Hold | undefined> {
    checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
    return await tryAcquire(this.source, this.#request, options);
  }

  /**
   * Calls `work` with the lock, and releases it afterwards, also when `work` fails. Resolves and
   * rejects as `work` does, or as `acquire`.
   */
  async run<Result>(work: (hold: Hold) => Promise<Result> | Result, options: AcquireOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using hold = await this.acquire(options);
    return await work(hold);
  }

  /**
   * The holder of the lock, and then the waiters in their order; none if the znode does not exist.
   * Deleting the znode of a contender takes the lock, or the place, away from it. Rejects as
   * `Client.getChildren` does, except with NoNode.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'contenders(options)');
    return await this.#request.queue.contenders(this.source, options);
  }

  /**
   * Revokes one of them by writing `unlock` to its znode, and resolves when it is gone. Rejects
   * with a RecipeError, TimedOut; the revocation remains in effect then.
   */
  async revoke(contender: Contender, options: RevokeOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'revoke(contender, options)');
    return await revoke(this.source, contender, options);
  }
}
