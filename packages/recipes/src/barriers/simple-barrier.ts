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
import { checkArgumentCount, checkFunction, checkName, checkSourceAndPath, constructorOptionTypes } from '../validation.ts';
import { Hold } from '../wait-queue/hold.ts';
import { WaitQueue, QueueNode } from '../wait-queue/wait-queue.ts';
import { Deadline } from '../waiting/deadline.ts';
import { createOwnZnode, retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode, waitForEventUnless, WatchedRead } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { checkBarrierSize } from './barrier-size.ts';
import { runInside, Participation } from './participation.ts';

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
const fullMark = 'full';

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
  static async create(
    source: SessionSource,
    path: string,
    size: number,
    options: SimpleBarrierOptions & WaitOptions = {},
  ): Promise<SimpleBarrier> {
    checkArgumentCount(arguments.length, 4, 'SimpleBarrier.create(source, path, size, options)');
    checkSourceAndPath(source, path);
    checkBarrierSize(size);
    using deadline = new Deadline(source, options, `the root of barrier ${path}`, constructorOptionTypes.SimpleBarrier);
    if (options.name !== undefined) checkName(options.name, 'the name of a participant');
    const { signal } = deadline;
    await runAcrossSessions(source, signal, (zk) => zk.ensurePath(path, { acl: options.acl, ...retryForever, signal }));
    return new SimpleBarrier(source, path, size, options);
  }

  /**
   * Resolves when `size` participants have arrived, including this one. Survives lost connections,
   * and rejects, as `DoubleBarrier.enter` does; and rejects with NoNode when the root has been
   * deleted.
   */
  async enter(options: WaitOptions = {}): Promise<Participation> {
    checkArgumentCount(arguments.length, 1, 'enter(options)');
    const what = `the other participants of barrier ${this.path}`;
    using deadline = new Deadline(this.#source, options, what);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, async (zk) => {
      using sessionDeadline = new Deadline(zk, { signal }, what);
      return await this.#enterIn(zk, sessionDeadline);
    });
  }

  async #enterIn(zk: ClientView, deadline: Deadline): Promise<Participation> {
    const node = await this.#join(zk, deadline.signal);
    node.onGone((reason) => deadline.abort(reason));
    try {
      await this.#untilFull(zk, deadline.signal);
    } catch (error) {
      await node.leave();
      throw error;
    }
    return new Participation(zk, new Hold(node), async (release, signal) => {
      await release();
      await this.#untilEmpty(zk, signal);
    });
  }

  /** Enters, calls `work`, and leaves. Resolves and rejects as `DoubleBarrier.run` does. */
  async run<Result>(work: (participation: Participation) => Promise<Result> | Result, options: WaitOptions = {}): Promise<Result> {
    checkArgumentCount(arguments.length, 2, 'run(work, options)');
    checkFunction(work, 'work');
    return runInside(await this.enter(options), work, options);
  }

  async #join(zk: ClientView, signal: AbortSignal): Promise<VersionZeroNode> {
    const { name = 'p', data = null, acl } = this.#options;
    const { path, stat } = await createOwnZnode(zk, childPath(this.path, name), data, { mode: 'ephemeral', acl, signal });
    return new VersionZeroNode(zk, new WaitQueue(this.path, [], { acl }), path, stat.czxid, undefined);
  }

  async #untilFull(zk: ClientView, signal: AbortSignal): Promise<void> {
    for (;;) {
      // The same read counts and sets the watch, so no arrival is missed in between.
      const look = await WatchedRead.start(zk, this.path, (watch) => zk.getChildren(this.path, { ...retryForever, watch, signal }));
      try {
        const { children, stat } = look.result;
        if (children.length >= this.size || (stat.version > 0 && (await this.#wasFull(zk, signal)))) {
          if (stat.version === 0) await this.#markFull(zk, signal);
          return;
        }
        await look.nextEvent(signal);
      } finally {
        look.cancel();
      }
    }
  }

  async #untilEmpty(zk: ClientView, signal: AbortSignal): Promise<void> {
    // The first participant that finds no other may have deleted the root before the rest read it.
    const children = (options: ReadOptions) => undefinedIfNoNode(zk.getChildren(this.path, options));
    const isEmpty = (found: GetChildrenResult | undefined) => found === undefined || found.children.length === 0;
    while (await waitForEventUnless(zk, this.path, children, isEmpty, signal));
  }

  async #wasFull(zk: ClientView, signal: AbortSignal): Promise<boolean> {
    const { data } = await zk.getData(this.path, { ...retryForever, signal });
    return new TextDecoder().decode(data ?? undefined) === fullMark;
  }

  async #markFull(zk: ClientView, signal: AbortSignal): Promise<void> {
    try {
      await zk.setData(this.path, fullMark, { version: 0, idempotent: true, ...retryForever, signal });
    } catch (error) {
      // Another participant has.
      if (!KeeperError.is(error, 'BadVersion')) throw error;
    }
  }
}

/** Deletes with the version that the page has; also a znode that another client has written to. */
class VersionZeroNode extends QueueNode {
  override async leave(): Promise<void> {
    await this.zk.delete(this.path, { version: 0, guaranteed: true }).catch(() => super.leave());
  }
}
