/**
 * So many at a time. A semaphore as Curator's InterProcessSemaphoreV2 keeps it: who wants a lease waits in a line, and only the first in it looks at the
 * leases, so that a lease that is given back wakes one.
 *
 *     /semaphores/mail                        "2", the size
 *       ├─ leases
 *       │   ├─ _c_2b7e...-lease-0000000004    has a lease
 *       │   ├─ _c_77f1...-lease-0000000006    has a lease
 *       │   └─ _c_91aa...-lease-0000000007    the next to have one
 *       └─ locks
 *           ├─ _c_03bd...-lock-0000000011     has made lease 7, and watches `leases`
 *           └─ _c_4d0c...-lock-0000000012     watches 11
 *
 *     1. a place in the line of `locks`, as for a Lock, until it is the first
 *     2. create leases/guid-lease- (EPHEMERAL, SEQUENTIAL), as many as are wanted
 *     3. getChildren of leases, no watch: those among the first `size` are had, whatever came later
 *     4. otherwise getChildren with a watch, wait for the event, and 3. again
 *     5. delete the place in the line: the next one's turn
 *
 * Curator counts all leases; here it is the order that decides, so the line only keeps the others from looking: where somebody breaks into it by hand there are
 * never more holders than leases, nor two that wait for each other.
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

/** How a semaphore is kept. All who contend for one have the same, but for `data`. */
export interface SemaphoreOptions extends LineOptions {
  /**
   * How many leases there are. It is written to the znode at `path`, and whoever comes with another is told so. Default: what is written there, by `resize`, which
   * may change at any time.
   */
  readonly size?: number | undefined;
  /** Data of the znodes of leases, and of those who wait, by which people tell who they are. Default: none. */
  readonly data?: Data | undefined;
}

const lockKind = 'lock-';
const leaseKind = 'lease-';

/** So many at a time, in the order of coming: leases, as Curator's InterProcessSemaphoreV2 has them. */
export class Semaphore {
  /** The znode of the semaphore. */
  readonly path: string;
  /** The client, or the Sessions, that it was made with. */
  readonly source: SessionSource;
  readonly #waiting: Line;
  readonly #leases: Line;
  readonly #data: Data;
  readonly #size: SemaphoreSize;

  /**
   * Nothing is asked of a server yet. The znode need not exist. Throws a TypeError for what is no client or no path, and a RangeError for a size that is not
   * a positive integer.
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
   * Waits for a lease, in the order of coming, and resolves with it. Rejects as `Lock.acquire` does, but for Revoked; and with a RecipeError, Mismatch, when others
   * use the semaphore with another size, or nobody has said what size it has.
   */
  async acquire(options: WaitOptions = {}): Promise<Held> {
    checkCount(arguments.length, 1, 'acquire(options)');
    const [held] = await this.#collect(1, options);
    return held!;
  }

  /**
   * Waits for several leases at once, and resolves when it has all of them. Meanwhile nobody else gets one, so that two who want many never wait for each other.
   * Rejects as `acquire` does, and with a RangeError for more leases than the option `size` says; where the znode says it, there may be as many later.
   */
  async acquireMany(count: number, options: WaitOptions = {}): Promise<HeldTogether> {
    checkCount(arguments.length, 2, 'acquireMany(count, options)');
    checkSize(count, 'the number of leases');
    const { fixed } = this.#size;
    if (fixed !== undefined && count > fixed)
      throw new RangeError(`the semaphore ${this.path} has ${fixed} leases, so ${count} cannot be had at once`);
    return new HeldTogether(await this.#collect(count, options));
  }

  /** A lease, if one is free and nobody waits for it; undefined otherwise. Rejects as `acquire` does. */
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

  /** Calls `work` with a lease, and gives it back whatever comes of that. Resolves and rejects as `work` does, or as `acquire`. */
  async run<Result>(work: (held: Held) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    await using held = await this.acquire(options);
    return await work(held);
  }

  /**
   * Who has a lease, and behind them who is about to have one, in the order of coming. Whose znode is deleted has lost it. Rejects as `Lock.contenders` does.
   */
  async leases(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'leases(options)');
    return await this.#leases.contenders(this.source, options);
  }

  /** Who waits, in the order of coming. Whose znode is deleted has lost their place. Rejects as `Lock.contenders` does. */
  async contenders(options: WaitOptions = {}): Promise<readonly Contender[]> {
    checkCount(arguments.length, 1, 'contenders(options)');
    return await this.#waiting.contenders(this.source, options);
  }

  /**
   * Says how many leases there are from now on, to all who use the semaphore without a size of their own. With fewer than before nobody loses a lease: nobody gets
   * one until enough have been given back. Rejects as `Client.setData` does; throws a RangeError, and a TypeError where the size is given by the constructor.
   */
  async resize(size: number, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'resize(size, options)');
    await this.#size.set(this.source, size, options);
  }

  /** `work` in the session of now, and again in the next one should that end. Its limit is that of one session. */
  async #within<Result>(options: WaitOptions, work: (zk: ClientView, limit: Limit) => Promise<Result>): Promise<Result> {
    const what = `a lease of the semaphore ${this.path}`;
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

  /** Leases, if those who come later have them as well when `isHad` says so of the last; otherwise none is left. */
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
      // What is gone with its parent is gone.
      throw KeeperError.is(error, 'NoNode') ? deletedByOthers(lease.path) : error;
    }
  }
}

function isAmongFirst(size: number, lease: Place, line: readonly Contender[]): boolean {
  const at = line.findIndex(({ path }) => path === lease.path);
  if (at === -1) throw deletedByOthers(lease.path);
  return at < size;
}
