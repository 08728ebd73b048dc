/**
 * One at a time. The lock of ZooKeeper's recipes page: a line, whose first has the lock, and each of the others waits for the one ahead of it.
 *
 *     /locks/report
 *       ├─ _c_2b7e...-lock-0000000007    has the lock
 *       ├─ _c_91aa...-lock-0000000008    watches 7
 *       └─ _c_4d0c...-lock-0000000011    watches 8
 */
import type { Data } from '@tskeeper/client';
import { checkCount, checkFunction, checkPlace, checkSettings } from '../given.ts';
import type { Contender } from '../line/contender.ts';
import { acquire, type AcquireOptions, type Claim, revoke, type RevokeOptions, tryAcquire } from '../line/acquire.ts';
import type { Held } from '../line/held.ts';
import { Line, type LineOptions, nextAhead } from '../line/line.ts';
import type { SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** How a lock is kept. All who contend for one have the same. */
export interface LockOptions extends LineOptions {
  /**
   * What stands in the names of contenders between guid and number. Those with another are not in this line. Default: `lock-`, as in ZooKeeper's recipe and in
   * Curator's InterProcessMutex; kazoo's Lock has `__lock__`.
   */
  readonly name?: string | undefined;
  /** Data of the contenders' znodes, by which people tell who they are. Default: none. */
  readonly data?: Data | undefined;
}

/** One at a time: the lock of ZooKeeper's recipes. */
export class Lock {
  /** The znode below which contenders stand. */
  readonly path: string;
  /** The client, or the Sessions, that it was made with. */
  readonly source: SessionSource;
  readonly #claim: Claim;

  /** Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path. */
  constructor(source: SessionSource, path: string, options: LockOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Lock', arguments.length);
    const { name = 'lock-', data = null } = options;
    this.path = path;
    this.source = source;
    this.#claim = { line: new Line(path, [name], options), kind: name, data, ahead: nextAhead, what: `the lock ${path}` };
  }

  /**
   * Waits for its turn, in the order of coming, and resolves with the lock. The wait survives lost connections. Rejects with a RecipeError: TimedOut;
   * Revoked; Lost, when somebody deletes the znode that stands for the wait; with the signal's reason; with SessionExpired and the like; and with
   * NoAuth, InvalidACL, QuotaExceeded when the znode cannot be made. In each case the place is given up; it stays as long as the session if it may not be deleted, and then
   * this rejects with NoAuth.
   */
  async acquire(options: AcquireOptions = {}): Promise<Held> {
    checkCount(arguments.length, 1, 'acquire(options)');
    return await acquire(this.source, this.#claim, options);
  }

  /** The lock, if nobody has it or waits for it; undefined otherwise. Rejects as `acquire` does. */
  async tryAcquire(options: WaitOptions = {}): Promise<Held | undefined> {
    checkCount(arguments.length, 1, 'tryAcquire(options)');
    return await tryAcquire(this.source, this.#claim, options);
  }

  /** Calls `work` with the lock, and gives it back whatever comes of that. Resolves and rejects as `work` does, or as `acquire`. */
  async run<Result>(work: (held: Held) => Promise<Result> | Result, options: AcquireOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using held = await this.acquire(options);
    return await work(held);
  }

  /**
   * Who has the lock, and behind that who waits for it, in their order; nobody when there is no such znode. Whose znode is deleted has lost the lock, or their
   * place. Rejects as `Client.getChildren` does, but for NoNode.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'contenders(options)');
    return await this.#claim.line.contenders(this.source, options);
  }

  /**
   * Asks one of them, with `unlock` as the data of its znode, to give its place back, and resolves when it has. Rejects with a RecipeError, TimedOut; the
   * request stands all the same.
   */
  async revoke(contender: Contender, options: RevokeOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'revoke(contender, options)');
    return await revoke(this.source, contender, options);
  }
}
