/**
 * Nobody begins the second half of the work before everybody has ended the first. The barrier of "ZooKeeper Example":
 *
 *     at      create root, unless it is there
 *     enter   create root/guid-name (EPHEMERAL)
 *             getChildren root, with a watch, again and again until there are as many as the size
 *     leave   delete root/guid-name, of version 0
 *             getChildren root, with a watch, again and again until there are none
 *
 * Two slips of the printed program are mended. It has one name for the root and for the participant, so that the second one to come finds its znode made. And
 * one that is slow to look may find that others have gone again, and waits for ever: so whoever sees the barrier full says so in the data of the root before
 * it goes on.
 *
 * Each one that comes or goes wakes all the others, so N participants make N * N requests: DoubleBarrier is for many, and for more than one round.
 */
import { type Acl, type ClientView, type Data, type GetChildrenResult, KeeperError, type ReadOptions } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkCount, checkFunction, checkName, checkPlace, settings } from '../given.ts';
import { Held } from '../line/held.ts';
import { Line, Place } from '../line/line.ts';
import { Limit } from '../waiting/limit.ts';
import { Look } from '../waiting/look.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { eventUnless, untilTheEnd } from '../waiting/next-event.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { checkSize } from './check-size.ts';
import { during, Participation } from './participation.ts';

/** How one takes part in a simple barrier. */
export interface SimpleBarrierOptions {
  /** What stands in the name of the participant's znode behind the guid, for people. Default: `p`. */
  readonly name?: string | undefined;
  /** Data of the participant's znode, by which people tell who it is. Default: none. */
  readonly data?: Data | undefined;
  /** Of the znodes of participants, and of the root if it has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** The data of the root once the barrier has been full. */
const full = 'full';

/** Two halves of one piece of work, by many: the barrier of "ZooKeeper Example". Serves once. */
export class SimpleBarrier {
  /** The root, below which participants are. */
  readonly path: string;
  /** How many have to be there. */
  readonly size: number;
  readonly #source: SessionSource;
  readonly #options: SimpleBarrierOptions;

  private constructor(source: SessionSource, path: string, size: number, options: SimpleBarrierOptions) {
    this.path = path;
    this.size = size;
    this.#source = source;
    this.#options = options;
  }

  /**
   * Makes the root and its parents, or finds it made by another participant; it stays behind. `size` is the same for all who take part. Rejects as
   * `Client.ensurePath` does; with a RecipeError, TimedOut, and with the signal's reason, which are of this call alone; and with a TypeError for what is no client or
   * no path.
   */
  static async at(
    source: SessionSource,
    path: string,
    size: number,
    options: SimpleBarrierOptions & WaitOptions = {},
  ): Promise<SimpleBarrier> {
    checkCount(arguments.length, 4, 'SimpleBarrier.at(source, path, size, options)');
    checkPlace(source, path);
    checkSize(size);
    using limit = new Limit(source, options, `the root of the barrier ${path}`, settings.SimpleBarrier);
    if (options.name !== undefined) checkName(options.name, 'the name of a participant');
    const { signal } = limit;
    await inSessions(source, signal, (zk) => zk.ensurePath(path, { acl: options.acl, ...untilTheEnd, signal }));
    return new SimpleBarrier(source, path, size, options);
  }

  /**
   * Resolves when `size` participants have come, this one among them. Survives lost connections, and rejects, as `DoubleBarrier.enter` does; with NoNode when
   * somebody has deleted the root.
   */
  async enter(options: WaitOptions = {}): Promise<Participation> {
    checkCount(arguments.length, 1, 'enter(options)');
    const what = `a way through the barrier ${this.path}`;
    using limit = new Limit(this.#source, options, what);
    const { signal } = limit;
    return await inSessions(this.#source, signal, async (zk) => {
      using ofSession = new Limit(zk, { signal }, what);
      return await this.#enterIn(zk, ofSession);
    });
  }

  async #enterIn(zk: ClientView, limit: Limit): Promise<Participation> {
    const place = await this.#arrive(zk, limit.signal);
    place.whenGone((reason) => limit.end(reason));
    try {
      await this.#untilFull(zk, limit.signal);
    } catch (error) {
      await place.leave();
      throw error;
    }
    return new Participation(zk, new Held(place), async (release, signal) => {
      await release();
      await this.#untilEmpty(zk, signal);
    });
  }

  /** Enters, calls `work`, and leaves. Resolves and rejects as `DoubleBarrier.run` does. */
  async run<Result>(work: (participation: Participation) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    return during(await this.enter(options), work, options);
  }

  async #arrive(zk: ClientView, signal: AbortSignal): Promise<Untouched> {
    const { name = 'p', data = null, acl } = this.#options;
    const { path, stat } = await makeOwn(zk, childPath(this.path, name), data, { mode: 'ephemeral', acl, signal });
    return new Untouched(zk, new Line(this.path, [], { acl }), path, stat.czxid, undefined);
  }

  async #untilFull(zk: ClientView, signal: AbortSignal): Promise<void> {
    for (;;) {
      // The very read that counts sets the watch, so nothing is missed in between.
      const look = await Look.take(zk, this.path, (watch) => zk.getChildren(this.path, { ...untilTheEnd, watch, signal }));
      try {
        const { children, stat } = look.answer;
        if (children.length >= this.size || (stat.version > 0 && (await this.#wasFull(zk, signal)))) {
          if (stat.version === 0) await this.#sayFull(zk, signal);
          return;
        }
        await look.next(signal);
      } finally {
        look.forget();
      }
    }
  }

  async #untilEmpty(zk: ClientView, signal: AbortSignal): Promise<void> {
    // The first to see that nobody is there may have deleted the root by the time that others look.
    const children = (options: ReadOptions) => unlessGone(zk.getChildren(this.path, options));
    const isEmpty = (found: GetChildrenResult | undefined) => found === undefined || found.children.length === 0;
    while (await eventUnless(zk, this.path, children, isEmpty, signal));
  }

  async #wasFull(zk: ClientView, signal: AbortSignal): Promise<boolean> {
    const { data } = await zk.getData(this.path, { ...untilTheEnd, signal });
    return new TextDecoder().decode(data ?? undefined) === full;
  }

  async #sayFull(zk: ClientView, signal: AbortSignal): Promise<void> {
    try {
      await zk.setData(this.path, full, { version: 0, idempotent: true, ...untilTheEnd, signal });
    } catch (error) {
      // Another has said so.
      if (!KeeperError.is(error, 'BadVersion')) throw error;
    }
  }
}

/** Leaves by the version that the page has. One that somebody has written to goes all the same. */
class Untouched extends Place {
  override async leave(): Promise<void> {
    await this.zk.delete(this.path, { version: 0, guaranteed: true }).catch(() => super.leave());
  }
}
