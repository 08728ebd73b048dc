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
import { checkCount, checkFunction, checkPlace, checkSettings } from '../given.ts';
import { type Contender, lineUp } from '../line/contender.ts';
import { Held } from '../line/held.ts';
import { HeldTogether, releaseAll } from '../line/held-together.ts';
import { deletedByOthers, Line, type LineOptions, nextAhead, type Place } from '../line/line.ts';
import { firstOf } from '../waiting/first-of.ts';
import { Limit } from '../waiting/limit.ts';
import { eventUnless } from '../waiting/next-event.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { checkSize, SemaphoreSize } from './semaphore-size.ts';

/** How a semaphore is kept. All contenders of a semaphore use the same options, except `data`. */
export interface SemaphoreOptions extends LineOptions {
  /**
   * How many leases there are. It is written to the znode at `path`; a contender with another size
   * is rejected. Default: the number in the znode, which `resize` writes and may change at any
   * time.
   */
  readonly size?: number | undefined;
  /** Data of the znodes of leases and waiters, which identify them to people. Default: none. */
  readonly data?: Data | undefined;
}

const lockKind = 'lock-';
const leaseKind = 'lease-';

/**
 * A bounded number of holders, in the order of arrival: leases, as in Curator's
 * InterProcessSemaphoreV2.
 */
export class Semaphore {
  /** The znode of the semaphore. */
  readonly path: string;
  /** As given. */
  readonly source: SessionSource;
  readonly #waiting: Line;
  readonly #leases: Line;
  readonly #data: Data;
  readonly #size: SemaphoreSize;

  /**
   * Sends no request. The znode need not exist. Throws a TypeError if `source` is not a client or
   * `path` is not a path, and a RangeError for a size that is not a positive integer.
   */
  constructor(source: SessionSource, path: string, options: SemaphoreOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Semaphore', arguments.length);
    const { size, data = null, acl } = options;
    this.source = source;
    this.path = path;
    this.#waiting = new Line(childPath(path, 'locks'), [lockKind], options);
    this.#leases = new Line(childPath(path, 'leases'), [leaseKind], options);
    this.#data = data;
    this.#size = new SemaphoreSize(path, size, acl);
  }

  /**
   * Waits for a lease, in the order of arrival, and resolves with it. Rejects as `Lock.acquire`
   * does, except with Revoked; and with a RecipeError, Mismatch, when the semaphore has another
   * size, or no size yet.
   */
  async acquire(options: WaitOptions = {}): Promise<Held> {
    checkCount(arguments.length, 1, 'acquire(options)');
    const [held] = await this.#collect(1, options);
    return held!;
  }

  /**
   * Waits for several leases at once, and resolves when it has all of them. Meanwhile no other
   * contender gets one, so two that want many never wait for each other. Rejects as `acquire` does,
   * and with a RangeError for more leases than the option `size`; if the znode has the size, there
   * may be as many later.
   */
  async acquireMany(count: number, options: WaitOptions = {}): Promise<HeldTogether> {
    checkCount(arguments.length, 2, 'acquireMany(count, options)');
    checkSize(count, 'the number of leases');
    const { fixed } = this.#size;
    if (fixed !== undefined && count > fixed)
      throw new RangeError(`semaphore ${this.path} has ${fixed} leases, so ${count} cannot be held at once`);
    return new HeldTogether(await this.#collect(count, options));
  }

  /**
   * A lease, if one is free and no contender waits for it; undefined otherwise. Rejects as
   * `acquire` does.
   */
  async tryAcquire(options: WaitOptions = {}): Promise<Held | undefined> {
    checkCount(arguments.length, 1, 'tryAcquire(options)');
    const taken = await this.#within(options, async (zk, limit) => {
      const size = await this.#size.agree(zk, limit.signal);
      const place = await this.#waiting.join(zk, lockKind, this.#data, limit.signal);
      return await place.leaveWith(
        async () => {
          if ((await place.blocker(nextAhead, limit.signal)) !== undefined) return [];
          return await this.#take(zk, 1, limit, (lease) => this.#isAmong(lease, size, limit.signal));
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
  async run<Result>(work: (held: Held) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using held = await this.acquire(options);
    return await work(held);
  }

  /**
   * The holders of leases, and then the contender that is about to have one, in the order of
   * arrival. Deleting the znode of a lease takes it away from its holder. Rejects as
   * `Lock.contenders` does.
   */
  async leases(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'leases(options)');
    return await this.#leases.contenders(this.source, options);
  }

  /**
   * The waiters, in the order of arrival. Deleting the znode of a waiter takes its place away.
   * Rejects as `Lock.contenders` does.
   */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'contenders(options)');
    return await this.#waiting.contenders(this.source, options);
  }

  /**
   * Sets the number of leases from now on, for all that use the semaphore without the option
   * `size`. If there are fewer than before, no holder loses its lease: no contender gets one until
   * enough have been released. Rejects as `Client.setData` does; throws a RangeError, and a
   * TypeError if the constructor received a size.
   */
  async resize(size: number, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'resize(size, options)');
    await this.#size.set(this.source, size, options);
  }

  /**
   * `work` in the current session, and again in the next one if that ends. Its limit is that of one
   * session.
   */
  async #within<Result>(options: WaitOptions, work: (zk: ClientView, limit: Limit) => Promise<Result>): Promise<Result> {
    const what = `a lease of semaphore ${this.path}`;
    using limit = new Limit(this.source, options, what);
    const { signal } = limit;
    return await inSessions(this.source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      return await work(zk, ofSession);
    });
  }

  #collect(count: number, options: WaitOptions): Promise<readonly Held[]> {
    return this.#within(options, async (zk, limit) => {
      const size = await this.#size.agree(zk, limit.signal);
      const place = await this.#waiting.join(zk, lockKind, this.#data, limit.signal);
      return await place.leaveWith(
        async () => {
          await place.turn(nextAhead, limit);
          return await this.#take(zk, count, limit, async (last) => {
            await this.#whenAmong(last, size, limit.signal);
            return true;
          });
        },
        (holds) => releaseAll(holds),
      );
    });
  }

  /**
   * Creates leases, and returns their holds if `isHad` says that the last one is held, and so the
   * earlier ones too; otherwise it leaves none.
   */
  async #take(zk: ClientView, count: number, limit: Limit, isHad: (last: Place) => Promise<boolean>): Promise<readonly Held[]> {
    const places: Place[] = [];
    let has = false;
    try {
      while (places.length < count) {
        const place = await this.#leases.join(zk, leaseKind, this.#data, limit.signal);
        places.push(place);
        place.whenGone((reason) => limit.end(reason));
      }
      has = await isHad(places.at(-1)!);
    } finally {
      if (!has) await Promise.all(places.map((place) => place.leave()));
    }
    return has ? places.map((place) => new Held(place)) : [];
  }

  async #whenAmong(lease: Place, sizeBefore: number, signal: AbortSignal): Promise<void> {
    for (let size = sizeBefore; !(await this.#isAmong(lease, size, signal));) {
      const leaseIsBack = (within: AbortSignal) => this.#changeOfLeases(lease, size, within);
      if (this.#size.fixed === undefined) {
        await firstOf(signal, [leaseIsBack, (within) => this.#size.change(lease.zk, size, within)]);
        size = await this.#size.agree(lease.zk, signal);
      } else await leaseIsBack(signal);
    }
  }

  async #isAmong(lease: Place, size: number, signal: AbortSignal): Promise<boolean> {
    return isAmongFirst(size, lease, await this.#leases.contenders(lease.zk, { signal }));
  }

  async #changeOfLeases(lease: Place, size: number, signal: AbortSignal): Promise<void> {
    const { zk } = lease;
    const { path } = this.#leases;
    const ask = (options: ReadOptions) => zk.getChildren(path, options);
    const isHad = ({ children }: GetChildrenResult) => isAmongFirst(size, lease, lineUp(path, children, [leaseKind]));
    try {
      await eventUnless(zk, path, ask, isHad, signal);
    } catch (error) {
      // Deleted together with its parent.
      throw KeeperError.is(error, 'NoNode') ? deletedByOthers(lease.path) : error;
    }
  }
}

function isAmongFirst(size: number, lease: Place, line: readonly Contender[]): boolean {
  const at = line.findIndex(({ path }) => path === lease.path);
  if (at === -1) throw deletedByOthers(lease.path);
  return at < size;
}
