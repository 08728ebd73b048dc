/**
 * A line of contenders below one znode: the part that locks, elections and semaphores have in common, by ZooKeeper's recipes page.
 *
 *     join   create parent/guid-kind- (EPHEMERAL, SEQUENTIAL)         with a guid, so that a lost answer leaves one znode, or none
 *     turn   getChildren, no watch                                    1. who is there?
 *            nobody ahead who matters: it is our turn                 2.
 *            exists on the one who matters next, with a watch         3. gone already: 1. again
 *            wait for the event                                       4. and 1. again
 *     leave  delete
 *
 * Each waits for one other, so whoever leaves wakes one (or those who all may go ahead now), and nobody asks again and again.
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

/** Of a line of contenders, whatever it is for. */
export interface LineOptions {
  /**
   * Of the contenders' znodes; of the line itself as well, if it has to be made. It has to let all of them READ: servers tell nobody else what becomes of a znode, so whoever contends without
   * that is refused, with NoAuth. Default: everyone may do everything.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** Who has to go before a contender may: the nearest of them, or nobody. */
export type Ahead = (line: readonly Contender[], own: number) => Contender | undefined;

/** The one right ahead. */
export const nextAhead: Ahead = (line, own) => line[own - 1];

/** Where contenders stand, and how. It belongs to no session: a place in it does. */
export class Line {
  /** The znode below which contenders stand. */
  readonly path: string;
  readonly #kinds: Kinds;
  readonly #acl: readonly Acl[] | undefined;

  constructor(path: string, kinds: Kinds, { acl }: LineOptions) {
    if (typeof kinds !== 'function') for (const kind of kinds) checkName(kind, 'what stands in a name ahead of the number');
    this.path = path;
    this.#kinds = kinds;
    this.#acl = acl;
  }

  /**
   * Takes the last place. The line is made if it is not there, as a container, which servers delete when it has been empty for a while. `onData`
   * hears what is written to our znode. Rejects as `makeOwn` does.
   */
  async join(zk: ClientView, kind: string, data: Data, signal: AbortSignal, onData?: (data: Uint8Array | null) => void): Promise<Place> {
    const settings = { mode: 'ephemeralSequential', parents: 'container', acl: this.#acl, signal } as const;
    const { path, stat } = await makeOwn(zk, childPath(this.path, kind), data, settings);
    return new Place(zk, this, path, stat.czxid, onData);
  }

  /** Who is there now, the first ahead; nobody when there is no line. */
  async contenders(source: SessionSource, options: WaitOptions): Promise<readonly Contender[]> {
    using limit = new Limit(source, options, `the list of ${this.path}`);
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

/** A place in a line, for as long as the znode is there. */
export class Place {
  readonly zk: ClientView;
  readonly path: string;
  /** The txn that made the znode: whoever comes later has a greater one. */
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

  /** Calls back when somebody has deleted the znode, or it cannot be watched, and says why; at once if that is so. Returns a function that ends it. */
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

  /** One more holds by this place, until it is given back. */
  share(): void {
    this.#holds++;
  }

  /** As `leave`, when all who hold by this place have given it back. */
  async giveBack(): Promise<void> {
    if (--this.#holds === 0) await this.leave();
  }

  /** Resolves when it is our turn. Rejects with a RecipeError, Lost, when somebody has deleted our znode; with NoAuth when it may not be read; and with the signal's reason. */
  async turn(ahead: Ahead, limit: Limit): Promise<void> {
    const { signal } = limit;
    this.whenGone((reason) => limit.end(reason));
    for (;;) {
      const blocker = await this.blocker(ahead, signal);
      if (blocker === undefined) return;
      await nextEvent(this.zk, blocker.path, signal);
    }
  }

  /** Who has to go first; undefined when it is our turn. */
  async blocker(ahead: Ahead, signal: AbortSignal): Promise<Contender | undefined> {
    const line = await this.#line.contenders(this.zk, { signal });
    const own = line.findIndex(({ path }) => path === this.path);
    if (this.#goneBecause !== undefined) throw this.#goneBecause;
    if (own === -1) throw deletedByOthers(this.path);
    return ahead(line, own);
  }

  /**
   * Leaves the line with what `have` gives, or without it. Whoever may not leave stays in the way of all others, itself among them: so it is told that, with NoAuth, and
   * what it had is given back.
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

  /** Gives the place up. Never leaves the znode behind: where no server can be reached it is deleted in the background. Rejects with NoAuth, and then it stays. */
  async leave(): Promise<void> {
    this.#watch.end();
    try {
      await this.zk.delete(this.path, { guaranteed: true });
    } catch (error) {
      // Gone, or about to go: with the session, or as soon as a server is reached.
      if (KeeperError.is(error, 'NoNode', 'SessionExpired', 'SessionMoved', 'AuthFailed')) return;
      if (KeeperError.is(error) && error.retryable) return;
      throw error;
    }
  }
}

export function deletedByOthers(path: string): RecipeError {
  return new RecipeError('Lost', `${path} is gone: somebody has deleted it, or the session was closed`);
}
