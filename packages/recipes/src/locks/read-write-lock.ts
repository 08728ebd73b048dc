/**
 * Many readers or one writer. The shared lock of ZooKeeper's recipes page: both are in one queue; a
 * reader waits for the writers before it, a writer for all before it.
 *
 *     /locks/catalogue
 *       ├─ _c_2b7e...-read-0000000003     reads
 *       ├─ _c_91aa...-read-0000000004     reads
 *       ├─ _c_4d0c...-write-0000000005    watches 4, then 3
 *       └─ _c_77f1...-read-0000000006     watches 5
 *
 * The page has `guid-/read-` for the name, which cannot be one znode, as it has a slash. When a
 * writer leaves, all readers that waited for it wake together: all of them may proceed.
 */
import type { Data } from '@tskeeper/client';
import { checkArgumentCount, checkFunction, checkOptions, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { acquire, type AcquireOptions, type LockRequest, revoke, type RevokeOptions, tryAcquire } from '../wait-queue/acquire.ts';
import type { Contender } from '../wait-queue/contender.ts';
import type { Hold } from '../wait-queue/hold.ts';
import { type FindBlocker, WaitQueue, type ContenderOptions, previousContender } from '../wait-queue/wait-queue.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';

/** How a shared lock is kept. All contenders of a lock use the same options. */
export interface ReadWriteLockOptions extends ContenderOptions {
  /**
   * The part of the contenders' names between guid and number. Default: `read-` and `write-`, as in
   * ZooKeeper's recipe; Curator's InterProcessReadWriteLock has `__READ__` and `__WRIT__`, kazoo's
   * locks `__rlock__` and `__lock__`.
   */
  readonly prefixes?: { readonly read: string; readonly write: string } | undefined;
  /** Data of the contenders' znodes, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

/** One side of a shared lock, for reading or for writing. */
export interface LockHandle {
  /** As `ReadWriteLock.path`. */
  readonly path: string;
  /** As `ReadWriteLock.source`. */
  readonly source: SessionSource;
  /** As `Lock.acquire`, and rejects as that does. */
  acquire(options?: AcquireOptions): Promise<Hold>;
  /** As `Lock.tryAcquire`, and rejects as that does: undefined if a contender has to go first. */
  tryAcquire(options?: WaitOptions): Promise<Hold | undefined>;
  /** As `Lock.run`, and rejects as that does. */
  run<Result>(work: (hold: Hold) => Promise<Result> | Result, options?: AcquireOptions): Promise<Result>;
}

/** Many readers or one writer: the shared lock of ZooKeeper's recipes. */
export class ReadWriteLock {
  /** The znode below which contenders queue. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  /** For reading, shared with other readers. */
  readonly readLock: LockHandle;
  /** For writing, exclusive. */
  readonly writeLock: LockHandle;
  readonly #queue: WaitQueue;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: ReadWriteLockOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'ReadWriteLock', arguments.length);
    const { prefixes = { read: 'read-', write: 'write-' }, data = null } = options;
    checkOptions(prefixes, "{ read: 'read-', write: 'write-' }", 'names');
    const queue = new WaitQueue(path, [prefixes.read, prefixes.write], options);
    if (prefixes.read.endsWith(prefixes.write) || prefixes.write.endsWith(prefixes.read))
      throw new TypeError(
        `these names do not distinguish readers (${prefixes.read}) from writers (${prefixes.write}); neither may be the end of the other`,
      );
    const findWriterAhead: FindBlocker = (all, own) => all.slice(0, own).findLast(({ prefix }) => prefix === prefixes.write);
    this.path = path;
    this.source = source;
    this.#queue = queue;
    this.readLock = createLockHandle(source, {
      queue,
      prefix: prefixes.read,
      data,
      findBlocker: findWriterAhead,
      what: `shared lock ${path} for reading`,
    });
    this.writeLock = createLockHandle(source, {
      queue,
      prefix: prefixes.write,
      data,
      findBlocker: previousContender,
      what: `shared lock ${path} for writing`,
    });
  }

  /**
   * The holders and the waiters, in the order of arrival; `kind` says for what. Rejects as
   * `Lock.contenders` does.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkArgumentCount(arguments.length, 1, 'contenders(options)');
    return await this.#queue.contenders(this.source, options);
  }

  /** As `Lock.revoke`, and rejects as that does. */
  async revoke(contender: Contender, options: RevokeOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'revoke(contender, options)');
    return await revoke(this.source, contender, options);
  }
}

function createLockHandle(source: SessionSource, request: LockRequest): LockHandle {
  return {
    source,
    path: request.queue.path,
    // Not arrow functions, which have no `arguments` of their own.
    async acquire(options = {}) {
      checkArgumentCount(arguments.length, 1, 'acquire(options)');
      return await acquire(source, request, options);
    },
    async tryAcquire(options = {}) {
      checkArgumentCount(arguments.length, 1, 'tryAcquire(options)');
      return await tryAcquire(source, request, options);
    },
    async run(work, options = {}) {
      checkArgumentCount(arguments.length, 2, 'run(work, options)');
      checkFunction(work, 'work');
      await using hold = await acquire(source, request, options);
      return await work(hold);
    },
  };
}
