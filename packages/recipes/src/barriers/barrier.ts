/**
 * Blocks many until one removes the barrier. The barrier of ZooKeeper's recipes page: it is set as
 * long as its znode exists.
 *
 *     set      create b
 *     wait     1. exists on b, with a watch
 *              2. it does not exist: proceed
 *              3. it exists: wait for the event
 *              4. and 1. again, since the event may be a different one
 *     remove   delete b
 */
import { type Acl, type Data, KeeperError } from '@tskeeper/client';
import { checkArgumentCount, checkSourceAndPath, checkConstructorOptions } from '../validation.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';

/** What the znode of a barrier is like, when `set` creates it. */
export interface BarrierOptions {
  /** Data of the znode: for people, why there is a barrier. Default: none. */
  readonly data?: Data | undefined;
  /**
   * Whether the barrier ends with the session that has set it. Default: false; it stays until it is
   * removed.
   */
  readonly ephemeral?: boolean | undefined;
  /**
   * The ACL of the znode, and of its parents if they have to be created. Default: all permissions
   * for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** Blocks many until one removes the barrier: the barrier of ZooKeeper's recipes. */
export class Barrier {
  /** The znode: while it exists, the barrier is set. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #options: BarrierOptions;

  /** Sends no request. Throws a TypeError if `source` is not a client or `path` is not a path. */
  constructor(source: SessionSource, path: string, options: BarrierOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Barrier', arguments.length);
    this.path = path;
    this.#source = source;
    this.#options = options;
  }

  /**
   * Sets the barrier; one that is already set stays as it is. Rejects as `Client.create` does,
   * except with NodeExists and NoNode; with a RecipeError, TimedOut; and with the signal's reason.
   * In the last two cases the barrier may be set, as a request may have been sent.
   */
  async set(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'set(options)');
    using deadline = new Deadline(this.#source, options, `a reply about barrier ${this.path}`);
    const { signal } = deadline;
    const { data = null, ephemeral = false, acl } = this.#options;
    const mode = ephemeral ? 'ephemeral' : 'persistent';
    try {
      await runAcrossSessions(this.#source, signal, (zk) =>
        zk.create(this.path, data, { mode, acl, parents: true, idempotent: true, ...retryForever, signal }),
      );
    } catch (error) {
      if (!KeeperError.is(error, 'NodeExists')) throw error;
    }
  }

  /**
   * Removes the barrier: all that wait proceed. Resolves also if there was none. Rejects as `set`
   * does, and with NotEmpty when the znode has children.
   */
  async remove(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'remove(options)');
    using deadline = new Deadline(this.#source, options, `a reply about barrier ${this.path}`);
    const { signal } = deadline;
    try {
      await runAcrossSessions(this.#source, signal, (zk) => zk.delete(this.path, { idempotent: true, ...retryForever, signal }));
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
    }
  }

  /**
   * Resolves when the barrier is not set: at once if it is not. Survives lost connections. Rejects
   * with a RecipeError, TimedOut; with the signal's reason; and with SessionExpired and the like.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'wait(options)');
    using deadline = new Deadline(this.#source, options, `the removal of barrier ${this.path}`);
    const { signal } = deadline;
    await runAcrossSessions(this.#source, signal, async (zk) => {
      while (await waitForEvent(zk, this.path, signal));
    });
  }
}
