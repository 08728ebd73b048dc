/**
 * One at a time. The lock of ZooKeeper's recipes page: a line, whose first has the lock, and each of the others waits for the one ahead of it.
 *
 *     /locks/report
 *       ├─ _c_2b7e...-lock-0000000007    has the lock
 *       ├─ _c_91aa...-lock-0000000008    watches 7
 *       └─ _c_4d0c...-lock-0000000011    watches 8
 */
import type { ClientView, Data } from '@tskeeper/client';
import type { Contender } from '../line/contender.ts';
import { Held } from '../line/held.ts';
import { Limit } from '../line/limit.ts';
import { type Ahead, Line, type LineOptions } from '../line/line.ts';
import type { WaitOptions } from '../waiting.ts';

export interface LockOptions extends LineOptions {
  /**
   * What stands in the names of contenders between guid and number. Those with another are not in this line. Default: `lock-`, as in ZooKeeper's recipe and in
   * Curator's InterProcessMutex; kazoo's Lock has `__lock__`.
   */
  readonly name?: string | undefined;
  /** Data of the contenders' znodes, by which people tell who they are. Default: none. */
  readonly data?: Data | undefined;
}

/** The one right ahead. */
const nextAhead: Ahead = (line, own) => line[own - 1];

export class Lock {
  /** The znode below which contenders stand. */
  readonly path: string;
  readonly #zk: ClientView;
  readonly #line: Line;
  readonly #name: string;
  readonly #data: Data;

  /** Nothing is asked of a server yet. The znode need not exist. */
  constructor(zk: ClientView, path: string, options: LockOptions = {}) {
    const { name = 'lock-', data = null } = options;
    this.path = path;
    this.#zk = zk;
    this.#name = name;
    this.#data = data;
    this.#line = new Line(zk, path, [name], options);
  }

  /**
   * Waits for its turn, in the order of coming, and resolves with the lock. The wait survives lost connections. Rejects with a RecipeError: TimedOut; Lost,
   * when somebody deletes the znode that stands for the wait; with the signal's reason; with SessionExpired and the like; and with NoAuth, InvalidACL,
   * QuotaExceeded when the znode cannot be made. In each case the place is given up.
   */
  async acquire(options: WaitOptions = {}): Promise<Held> {
    using limit = new Limit(this.#zk, options, `the lock ${this.path}`);
    const place = await this.#line.join(this.#name, this.#data, limit.signal);
    try {
      await place.turn(nextAhead, limit);
    } catch (error) {
      await place.leave();
      throw error;
    }
    return new Held(place);
  }

  /** The lock, if nobody has it or waits for it; undefined otherwise. Rejects as `acquire` does. */
  async tryAcquire(options: WaitOptions = {}): Promise<Held | undefined> {
    using limit = new Limit(this.#zk, options, `an answer about the lock ${this.path}`);
    const place = await this.#line.join(this.#name, this.#data, limit.signal);
    let isFree = false;
    try {
      isFree = (await place.blocker(nextAhead, limit.signal)) === undefined;
    } finally {
      if (!isFree) await place.leave();
    }
    return isFree ? new Held(place) : undefined;
  }

  /** Calls `work` with the lock, and gives it back whatever comes of that. Resolves and rejects as `work` does, or as `acquire`. */
  async run<Result>(work: (held: Held) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    await using held = await this.acquire(options);
    return await work(held);
  }

  /** Who has the lock, and behind that who waits for it, in their order. Whose znode is deleted has lost the lock, or their place. */
  contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    return this.#line.contenders(options);
  }
}
