/**
 * A queue of contenders below one znode: what locks, elections and semaphores have in common, by
 * ZooKeeper's recipes page.
 *
 *     join   create parent/guid-kind- (EPHEMERAL, SEQUENTIAL)   with a guid, so that a lost reply
 *                                                               leaves one znode or none
 *     turn   getChildren, no watch                              1. who is there?
 *            no contender has to go first: our turn             2.
 *            exists on the nearest that has to, with a watch    3. gone already: 1. again
 *            wait for the event                                 4. and 1. again
 *     leave  delete
 *
 * Each contender watches one other, so a release wakes one of them (or all that may proceed), and
 * no contender polls.
 */
import { type Acl, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { checkName } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { type Contender, type Prefixes, contendersIn } from './contender.ts';
import { Deadline } from '../waiting/deadline.ts';
import { createOwnZnode, retryForever } from '../waiting/own-znode.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import { OwnZnodeWatch } from './own-znode-watch.ts';

/** How a queue of contenders is kept, whatever it is for. */
export interface ContenderOptions {
  /**
   * The ACL of the contenders' znodes, and of the queue's own znode if it has to be created. It
   * must allow all contenders to READ: servers send no events about a znode to other clients, so a
   * contender without READ is rejected, with NoAuth. Default: all permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** Which contender has to go before this one: the nearest such, or none. */
export type FindBlocker = (line: readonly Contender[], own: number) => Contender | undefined;

/** The one directly before. */
export const previousContender: FindBlocker = (line, own) => line[own - 1];

/** A queue. It does not belong to a session; a place in it does. */
export class WaitQueue {
  /** The znode below which contenders queue. */
  readonly path: string;
  readonly #prefixes: Prefixes;
  readonly #acl: readonly Acl[] | undefined;

  constructor(path: string, prefixes: Prefixes, { acl }: ContenderOptions) {
    if (typeof prefixes !== 'function') for (const kind of prefixes) checkName(kind, 'the part of a name before the number');
    this.path = path;
    this.#prefixes = prefixes;
    this.#acl = acl;
  }

  /**
   * Takes the last place. Creates the queue if it does not exist, as a container, which servers
   * delete after it has been empty for a while. `onData` receives what is written to our znode.
   * Rejects as `createOwnZnode` does.
   */
  async join(
    zk: ClientView,
    prefix: string,
    data: Data,
    signal: AbortSignal,
    onData?: (data: Uint8Array | null) => void,
  ): Promise<QueueNode> {
    const settings = { mode: 'ephemeralSequential', parents: 'container', acl: this.#acl, signal } as const;
    const { path, stat } = await createOwnZnode(zk, childPath(this.path, prefix), data, settings);
    return new QueueNode(zk, this, path, stat.czxid, onData);
  }

  /** The contenders now, in order; none if the queue does not exist. */
  async contenders(source: SessionSource, options: WaitOptions): Promise<readonly Contender[]> {
    using deadline = new Deadline(source, options, `the contenders of ${this.path}`);
    return await runAcrossSessions(source, deadline.signal, (zk) => this.#list(zk, deadline.signal));
  }

  async #list(zk: ClientView, signal: AbortSignal): Promise<readonly Contender[]> {
    try {
      const { children } = await zk.getChildren(this.path, { ...retryForever, signal });
      return contendersIn(this.path, children, this.#prefixes);
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return [];
      throw error;
    }
  }
}

/** A place in a queue, as long as its znode exists. */
export class QueueNode {
  readonly zk: ClientView;
  readonly path: string;
  /** The zxid of the txn that created the znode: later contenders have greater ones. */
  readonly czxid: bigint;
  readonly #queue: WaitQueue;
  readonly #watch: OwnZnodeWatch;
  #goneReason: unknown;
  readonly #goneListeners = new Set<(reason: unknown) => void>();
  #holdCount = 0;

  constructor(zk: ClientView, queue: WaitQueue, path: string, czxid: bigint, onData: ((data: Uint8Array | null) => void) | undefined) {
    this.zk = zk;
    this.#queue = queue;
    this.path = path;
    this.czxid = czxid;
    this.#watch = new OwnZnodeWatch(zk, path, {
      onDeleted: () => this.#notifyGone(nodeDeletedError(path)),
      onUnreadable: (error) => this.#notifyGone(error),
      onData: onData,
    });
  }

  /**
   * Calls back, with the reason, when another client has deleted the znode or the znode cannot be
   * watched; at once if that is so already. Returns a function that removes the callback.
   */
  onGone(callback: (reason: unknown) => void): () => void {
    const listener = (reason: unknown) => callback(reason);
    this.#goneListeners.add(listener);
    if (this.#goneReason !== undefined) callback(this.#goneReason);
    return () => this.#goneListeners.delete(listener);
  }

  #notifyGone(reason: unknown): void {
    this.#goneReason = reason;
    for (const callback of this.#goneListeners) callback(reason);
  }

  /** Adds one to the holds of this place. */
  addHold(): void {
    this.#holdCount++;
  }

  /** Leaves when all holds of this place have been released. */
  async releaseHold(): Promise<void> {
    if (--this.#holdCount === 0) await this.leave();
  }

  /**
   * Resolves when it is our turn. Rejects with a RecipeError, Lost, when another client has deleted
   * our znode; with NoAuth when it may not be read; and with the signal's reason.
   */
  async waitForTurn(findBlocker: FindBlocker, deadline: Deadline): Promise<void> {
    const { signal } = deadline;
    this.onGone((reason) => deadline.abort(reason));
    for (;;) {
      const blocker = await this.currentBlocker(findBlocker, signal);
      if (blocker === undefined) return;
      await waitForEvent(this.zk, blocker.path, signal);
    }
  }

  /** The contender that has to go first; undefined when it is our turn. */
  async currentBlocker(findBlocker: FindBlocker, signal: AbortSignal): Promise<Contender | undefined> {
    const contenders = await this.#queue.contenders(this.zk, { signal });
    const own = contenders.findIndex(({ path }) => path === this.path);
    if (this.#goneReason !== undefined) throw this.#goneReason;
    if (own === -1) throw nodeDeletedError(this.path);
    return findBlocker(contenders, own);
  }

  /**
   * Leaves the queue, with or without the result of `acquire`. A contender that may not delete its
   * znode would block all others, including itself: so this rejects with NoAuth, after releasing
   * the result.
   */
  async leaveWithResult<Had>(acquire: () => Promise<Had>, release: (result: Had) => Promise<unknown> | undefined): Promise<Had> {
    let result: Had;
    try {
      result = await acquire();
    } catch (error) {
      await this.leave();
      throw error;
    }
    try {
      await this.leave();
    } catch (error) {
      await release(result)?.catch(() => undefined);
      throw error;
    }
    return result;
  }

  /**
   * Gives the place up. The znode never stays: if no server can be reached, it is deleted in the
   * background. Rejects with NoAuth, and only then it stays.
   */
  async leave(): Promise<void> {
    this.#watch.end();
    try {
      await this.zk.delete(this.path, { guaranteed: true });
    } catch (error) {
      // It is gone, or will be: with the session, or as soon as a server is reached.
      if (KeeperError.is(error, 'NoNode', 'SessionExpired', 'SessionMoved', 'AuthFailed')) return;
      if (KeeperError.is(error) && error.retryable) return;
      throw error;
    }
  }
}

export function nodeDeletedError(path: string): RecipeError {
  return new RecipeError('Lost', `${path} is gone: another client has deleted it, or the session was closed`);
}
