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
import { checkCount, checkFunction, checkOptions, checkPlace, checkSettings } from '../given.ts';
import { acquire, type AcquireOptions, type Claim, revoke, type RevokeOptions, tryAcquire } from '../line/acquire.ts';
import type { Contender } from '../line/contender.ts';
import type { Held } from '../line/held.ts';
import { type Ahead, Line, type LineOptions, nextAhead } from '../line/line.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** How a shared lock is kept. All contenders of a lock use the same options. */
export interface SharedLockOptions extends LineOptions {
  /**
   * The part of the contenders' names between guid and number. Default: `read-` and `write-`, as in
   * ZooKeeper's recipe; Curator's InterProcessReadWriteLock has `__READ__` and `__WRIT__`, kazoo's
   * locks `__rlock__` and `__lock__`.
   */
  readonly names?: { readonly read: string; readonly write: string } | undefined;
  /** Data of the contenders' znodes, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

/** One side of a shared lock, for reading or for writing. */
export interface LockSide {
  /** As `SharedLock.path`. */
  readonly path: string;
  /** As `SharedLock.source`. */
  readonly source: SessionSource;
  /** As `Lock.acquire`, and rejects as that does. */
  acquire(options?: AcquireOptions): Promise<Held>;
  /** As `Lock.tryAcquire`, and rejects as that does: undefined if a contender has to go first. */
  tryAcquire(options?: WaitOptions): Promise<Held | undefined>;
  /** As `Lock.run`, and rejects as that does. */
  run<Result>(work: (held: Held) => Promise<Result> | Result, options?: AcquireOptions): Promise<Result>;
}

/** Many readers or one writer: the shared lock of ZooKeeper's recipes. */
export class SharedLock {
  /** The znode below which contenders queue. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  /** For reading, shared with other readers. */
  readonly reading: LockSide;
  /** For writing, exclusive. */
  readonly writing: LockSide;
  readonly #line: Line;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: SharedLockOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'SharedLock', arguments.length);
    const { names = { read: 'read-', write: 'write-' }, data = null } = options;
    checkOptions(names, "{ read: 'read-', write: 'write-' }", 'names are');
    const line = new Line(path, [names.read, names.write], options);
    if (names.read.endsWith(names.write) || names.write.endsWith(names.read))
      throw new TypeError(
        `these names do not distinguish readers (${names.read}) from writers (${names.write}); neither may be the end of the other`,
      );
    const writerAhead: Ahead = (all, own) => all.slice(0, own).findLast(({ kind }) => kind === names.write);
    this.path = path;
    this.source = source;
    this.#line = line;
    this.reading = side(source, { line, kind: names.read, data, ahead: writerAhead, what: `shared lock ${path} for reading` });
    this.writing = side(source, { line, kind: names.write, data, ahead: nextAhead, what: `shared lock ${path} for writing` });
  }

  /**
   * The holders and the waiters, in the order of arrival; `kind` says for what. Rejects as
   * `Lock.contenders` does.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'contenders(options)');
    return await this.#line.contenders(this.source, options);
  }

  /** As `Lock.revoke`, and rejects as that does. */
  async revoke(contender: Contender, options: RevokeOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'revoke(contender, options)');
    return await revoke(this.source, contender, options);
  }
}

function side(source: SessionSource, claim: Claim): LockSide {
  return {
    source,
    path: claim.line.path,
    // Not arrow functions, which have no `arguments` of their own.
    async acquire(options = {}) {
      checkCount(arguments.length, 1, 'acquire(options)');
      return await acquire(source, claim, options);
    },
    async tryAcquire(options = {}) {
      checkCount(arguments.length, 1, 'tryAcquire(options)');
      return await tryAcquire(source, claim, options);
    },
    async run(work, options = {}) {
      checkCount(arguments.length, 2, 'run(work, options)');
      checkFunction(work, 'work');
      await using held = await acquire(source, claim, options);
      return await work(held);
    },
  };
}
