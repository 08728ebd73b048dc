/**
 * No participant begins the second half of the work before all have ended the first. The barrier of
 * "ZooKeeper Example":
 *
 *     at      create root, unless it exists
 *     enter   create root/guid-name (EPHEMERAL)
 *             getChildren root, with a watch, repeatedly until there are as many as the size
 *     leave   delete root/guid-name, of version 0
 *             getChildren root, with a watch, repeatedly until there are none
 *
 * Two errors of the printed program are fixed. It uses one name for the root and for the
 * participant, so that the second participant finds its znode already created. And a participant
 * that reads late may find that others have left again, and waits forever: so the one that sees the
 * barrier full records that in the data of the root before it proceeds.
 *
 * Each participant that arrives or leaves wakes all the others, so N participants make N * N
 * requests: use DoubleBarrier for many, and for more than one round.
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

/** How to participate in a simple barrier. */
export interface SimpleBarrierOptions {
  /** The part after the guid in the name of the participant's znode, for people. Default: `p`. */
  readonly name?: string | undefined;
  /** Data of the participant's znode, which identify it to people. Default: none. */
  readonly data?: Data | undefined;
  /**
   * The ACL of the znodes of participants, and of the root if it has to be created. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** The data of the root after the barrier has been full. */
const full = 'full';

/** Two halves of one piece of work, by many: the barrier of "ZooKeeper Example". For one round. */
export class SimpleBarrier {
  /** The root, above the znodes of the participants. */
  readonly path: string;
  /** How many participants have to be present. */
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
   * Creates the root and its parents, unless another participant has; they are not deleted later.
   * All participants use the same `size`. Rejects as `Client.ensurePath` does; with a RecipeError,
   * TimedOut, and with the signal's reason, which apply to this call alone; and with a TypeError if
   * `source` is not a client or `path` is not a path.
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
    using limit = new Limit(source, options, `the root of barrier ${path}`, settings.SimpleBarrier);
    if (options.name !== undefined) checkName(options.name, 'the name of a participant');
    const { signal } = limit;
    await inSessions(source, signal, (zk) => zk.ensurePath(path, { acl: options.acl, ...untilTheEnd, signal }));
    return new SimpleBarrier(source, path, size, options);
  }

  /**
   * Resolves when `size` participants have arrived, including this one. Survives lost connections,
   * and rejects, as `DoubleBarrier.enter` does; and rejects with NoNode when the root has been
   * deleted.
   */
  async enter(options: WaitOptions = {}): Promise<Participation> {
    checkCount(arguments.length, 1, 'enter(options)');
    const what = `the other participants of barrier ${this.path}`;
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
      // The same read counts and sets the watch, so no arrival is missed in between.
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
    // The first participant that finds no other may have deleted the root before the rest read it.
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
      // Another participant has.
      if (!KeeperError.is(error, 'BadVersion')) throw error;
    }
  }
}

/** Deletes with the version that the page has; also a znode that another client has written to. */
class Untouched extends Place {
  override async leave(): Promise<void> {
    await this.zk.delete(this.path, { version: 0, guaranteed: true }).catch(() => super.leave());
  }
}
