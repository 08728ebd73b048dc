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
import { checkName } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { type Contender, type Kinds, lineUp } from './contender.ts';
import { Limit } from '../waiting/limit.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { nextEvent, untilTheEnd } from '../waiting/next-event.ts';
import { OwnWatch } from './own-watch.ts';

/** How a queue of contenders is kept, whatever it is for. */
export interface LineOptions {
  /**
   * The ACL of the contenders' znodes, and of the queue's own znode if it has to be created. It
   * must allow all contenders to READ: servers send no events about a znode to other clients, so a
   * contender without READ is rejected, with NoAuth. Default: all permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** Which contender has to go before this one: the nearest such, or none. */
export type Ahead = (line: readonly Contender[], own: number) => Contender | undefined;

/** The one directly before. */
export const nextAhead: Ahead = (line, own) => line[own - 1];

/** A queue. It does not belong to a session; a place in it does. */
export class Line {
  /** The znode below which contenders queue. */
  readonly path: string;
  readonly #kinds: Kinds;
  readonly #acl: readonly Acl[] | undefined;

  constructor(path: string, kinds: Kinds, { acl }: LineOptions) {
    if (typeof kinds !== 'function') for (const kind of kinds) checkName(kind, 'the part of a name before the number');
    this.path = path;
    this.#kinds = kinds;
    this.#acl = acl;
  }

  /**
   * Takes the last place. Creates the queue if it does not exist, as a container, which servers
   * delete after it has been empty for a while. `onData` receives what is written to our znode.
   * Rejects as `makeOwn` does.
   */
  async join(zk: ClientView, kind: string, data: Data, signal: AbortSignal, onData?: (data: Uint8Array | null) => void): Promise<Place> {
    const settings = { mode: 'ephemeralSequential', parents: 'container', acl: this.#acl, signal } as const;
    const { path, stat } = await makeOwn(zk, childPath(this.path, kind), data, settings);
    return new Place(zk, this, path, stat.czxid, onData);
  }

  /** The contenders now, in order; none if the queue does not exist. */
  async contenders(source: SessionSource, options: WaitOptions): Promise<readonly Contender[]> {
    using limit = new Limit(source, options, `the contenders of ${this.path}`);
    return await inSessions(source, limit.signal, (zk) => this.#list(zk, limit.signal));
  }

  async #list(zk: ClientView, signal: AbortSignal): Promise<readonly Contender[]> {
    try {
      const { children } = await zk.getChildren(this.path, { ...untilTheEnd, signal });
      return lineUp(this.path, children, this.#kinds);
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return [];
      throw error;
    }
  }
}

/** A place in a queue, as long as its znode exists. */
export class Place {
  readonly zk: ClientView;
  readonly path: string;
  /** The zxid of the txn that created the znode: later contenders have greater ones. */
  readonly czxid: bigint;
  readonly #line: Line;
  readonly #watch: OwnWatch;
  #goneBecause: unknown;
  readonly #onGone = new Set<(reason: unknown) => void>();
  #holds = 0;

  constructor(zk: ClientView, line: Line, path: string, czxid: bigint, onData: ((data: Uint8Array | null) => void) | undefined) {
    this.zk = zk;
    this.#line = line;
    this.path = path;
    this.czxid = czxid;
    this.#watch = new OwnWatch(zk, path, {
      deleted: () => this.#gone(deletedByOthers(path)),
      unreadable: (error) => this.#gone(error),
      data: onData,
    });
  }

  /**
   * Calls back, with the reason, when another client has deleted the znode or the znode cannot be
   * watched; at once if that is so already. Returns a function that removes the callback.
   */
  whenGone(callback: (reason: unknown) => void): () => void {
    const own = (reason: unknown) => callback(reason);
    this.#onGone.add(own);
    if (this.#goneBecause !== undefined) callback(this.#goneBecause);
    return () => this.#onGone.delete(own);
  }

  #gone(reason: unknown): void {
    this.#goneBecause = reason;
    for (const callback of this.#onGone) callback(reason);
  }

  /** Adds one to the holds of this place. */
  share(): void {
    this.#holds++;
  }

  /** Leaves when all holds of this place have been released. */
  async giveBack(): Promise<void> {
    if (--this.#holds === 0) await this.leave();
  }

  /**
   * Resolves when it is our turn. Rejects with a RecipeError, Lost, when another client has deleted
   * our znode; with NoAuth when it may not be read; and with the signal's reason.
   */
  async turn(ahead: Ahead, limit: Limit): Promise<void> {
    const { signal } = limit;
    this.whenGone((reason) => limit.end(reason));
    for (;;) {
      const blocker = await this.blocker(ahead, signal);
      if (blocker === undefined) return;
      await nextEvent(this.zk, blocker.path, signal);
    }
  }

  /** The contender that has to go first; undefined when it is our turn. */
  async blocker(ahead: Ahead, signal: AbortSignal): Promise<Contender | undefined> {
    const line = await this.#line.contenders(this.zk, { signal });
    const own = line.findIndex(({ path }) => path === this.path);
    if (this.#goneBecause !== undefined) throw this.#goneBecause;
    if (own === -1) throw deletedByOthers(this.path);
    return ahead(line, own);
  }

  /**
   * Leaves the queue, with or without the result of `have`. A contender that may not delete its
   * znode would block all others, including itself: so this rejects with NoAuth, after giving the
   * result back.
   */
  async leaveWith<Had>(have: () => Promise<Had>, giveBack: (had: Had) => Promise<unknown> | undefined): Promise<Had> {
    let had: Had;
    try {
      had = await have();
    } catch (error) {
      await this.leave();
      throw error;
    }
    try {
      await this.leave();
    } catch (error) {
      await giveBack(had)?.catch(() => undefined);
      throw error;
    }
    return had;
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

export function deletedByOthers(path: string): RecipeError {
  return new RecipeError('Lost', `${path} is gone: another client has deleted it, or the session was closed`);
}
