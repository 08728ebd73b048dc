/**
 * A znode that is there for as long as somebody wants it to be.
 *
 *     absent ──made──> present ──connection lost──> suspended ──reconnected──> present
 *       ^                 │                            │
 *       └──deleted by somebody, or gone with its session┘
 *     closed: by `close`, or as it could not be kept any longer
 *
 *     1. create it. It is there already: one of another session is waited for, until it is gone, or deleted if it is to be taken over; any other is taken for it
 *     2. exists, with a watch, until it is gone or is another's
 *     3. 1. again
 */
import {
  type Acl,
  type ClientView,
  type CreateResult,
  type Data,
  KeeperError,
  type Millis,
  type SessionEvent,
  type Stat,
} from '@tskeeper/client';
import { checkData, checkPlace, checkWaitOptions, named } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { clientOf, eachSession, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Listeners } from '../listeners.ts';
import { bothSettled } from '../waiting/both.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { eventUnless, untilTheEnd } from '../waiting/next-event.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { WaitingRoom } from '../waiting/waiting-room.ts';
import { depart, departed } from './departing.ts';
import { Heartbeat } from './heartbeat.ts';
import { type Made, remove, touchOf, write } from './made-node.ts';

/** How a `PersistentNode` lives between two times that it is made. */
export interface PersistentNodeOptions {
  /**
   * - `ephemeral`, the default: goes with each session, and is made again in the next.
   * - `ephemeralSequential`: the same, with another number each time.
   * - `persistent`: outlives its keeper, and is deleted by `close`.
   * - `persistentWithTtl`: outlives its keeper by `ttlMs`, and is deleted by `close`. A child `touch` is written meanwhile, every half of that, so that the
   *   znode itself is not (Curator's PersistentTtlNode). Needs `extendedTypesEnabled` on the servers.
   */
  readonly mode?: 'ephemeral' | 'ephemeralSequential' | 'persistent' | 'persistentWithTtl' | undefined;
  /** In milliseconds, with `persistentWithTtl` only. Default: none. */
  readonly ttlMs?: Millis | undefined;
  /** Of the znode, and of parents that have to be made, as containers. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * A guid in front of the name, another each time that it is made, so that the name is nobody else's. Default: for `ephemeralSequential` always, for the others
   * not.
   */
  readonly protection?: boolean | undefined;
  /**
   * What to do about an ephemeral of another session that has the name: delete it, as it is known to be one's own of a former life. Default: false, wait until
   * it is gone.
   */
  readonly takesOver?: boolean | undefined;
}

const modes: readonly string[] = [
  'ephemeral',
  'ephemeralSequential',
  'persistent',
  'persistentWithTtl',
] satisfies PersistentNodeOptions['mode'][];

/** See `PersistentNode.state`. */
export type PersistentNodeState = 'absent' | 'present' | 'suspended' | 'closed';

/** A znode kept alive: made again when somebody has deleted it, and in the next session when it went with the last (Curator's PersistentNode). */
export class PersistentNode implements AsyncDisposable {
  readonly #source: SessionSource;
  readonly #wanted: string;
  readonly #mode: NonNullable<PersistentNodeOptions['mode']>;
  readonly #options: PersistentNodeOptions;
  readonly #end = new AbortController();
  readonly #closing = new AbortController();
  readonly #waiting: WaitingRoom;
  readonly #listeners = new Listeners<PersistentNodeState>();
  #unfollow: (() => void) | undefined;
  #data: Data;
  #path: string;
  /** While it is there, as far as is known. */
  #made: Made | undefined;
  #state: PersistentNodeState = 'absent';
  #serving: Promise<void> = Promise.resolve();
  /** The last change of data: the next waits for it, so that the last one is what stays. */
  #writing: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  /**
   * Begins at once; `ready` resolves when it is there. `source`: a client, whose end is its end, or `Sessions`. Throws a TypeError for what is no client or
   * no path.
   */
  constructor(source: SessionSource, path: string, data: Data = null, options: PersistentNodeOptions = {}) {
    checkPlace(clientOf(source), path);
    const { mode = 'ephemeral', ttlMs, protection } = options;
    if (!modes.includes(mode)) throw new TypeError(`there is no mode ${named(mode)} of a PersistentNode; modes are ${modes.join(', ')}`);
    if ((mode === 'persistentWithTtl') !== (ttlMs !== undefined))
      throw new TypeError('ttlMs goes with the mode persistentWithTtl, and that with ttlMs; give both or neither');
    if (ttlMs !== undefined && !(ttlMs >= 1)) throw new RangeError(`ttlMs is a number of milliseconds from 1, not ${ttlMs}`);
    checkData(data);
    if (protection === true && !mode.startsWith('ephemeral'))
      throw new TypeError(`a ${mode} znode with a guid could not be found again by a later keeper; leave protection out`);
    this.#source = source;
    this.#wanted = path;
    this.#path = path;
    this.#mode = mode;
    this.#options = options;
    this.#data = copyOf(data);
    this.#waiting = new WaitingRoom(clientOf(source), `the znode ${path}`);
    this.#unfollow = eachSession(source, {
      begin: (zk) => {
        this.#serving = this.#serve(zk);
      },
      ended: (reason) => this.#fail(reason),
    });
  }

  /** Of the znode as it was made last, with guid and number; as given until then. */
  get path(): string {
    return this.#path;
  }

  /** What the znode has, or gets when it is made: a value of one's own, which others may have overwritten. */
  get data(): Data {
    return this.#data;
  }

  /**
   * - `absent`: not there, and being made, or waited for.
   * - `present`: there, as far as is known.
   * - `suspended`: it was there, and the connection is lost. Others may see it, or not.
   * - `closed`: over.
   */
  get state(): PersistentNodeState {
    return this.#state;
  }

  /** Aborted when it cannot be kept any longer, with the reason: a RecipeError, Closed or Lost, or what a server refuses it with; not by `close`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Listens to changes of `state` from now on; returns a function that ends it. */
  onStateChange(listener: (state: PersistentNodeState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Resolves with its path when it is there, at once if it is. Rejects with a RecipeError: TimedOut; Closed; Lost, when the session is over; with the signal's
   * reason; with what a server refuses to make it with, as NoAuth; and so do later calls.
   */
  async ready(options: WaitOptions = {}): Promise<string> {
    checkWaitOptions(options);
    await this.#present(options);
    return this.path;
  }

  /**
   * Other data, from now on: resolves when the znode has them. Rejects as `ready` does; then they are what it gets when it is made again, and
   * perhaps has already.
   */
  async setData(data: Data, options: WaitOptions = {}): Promise<void> {
    checkWaitOptions(options);
    options.signal?.throwIfAborted();
    if (this.#isOver) throw this.#closing.signal.reason;
    checkData(data);
    const own = copyOf(data);
    this.#data = own;
    const before = this.#writing;
    const writing = this.#write(own, before, options);
    this.#writing = bothSettled(before, writing);
    await writing;
  }

  /**
   * Keeps it no longer, and deletes it: resolves when it is gone, or when it goes in the background, as no server can be reached just now. Never rejects;
   * one that may not be deleted stays.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#over(new RecipeError('Closed', `the keeping of ${this.#path} was closed`));
    await connectedAndDone(clientOf(this.#source), this.#serving);
  }

  // --- The keeping

  /** For the length of one session. Rejects never. */
  async #serve(zk: ClientView): Promise<void> {
    const unlisten = zk.on('state', (event) => this.#onState(zk, event));
    try {
      await departed(zk, this.#wanted);
      while (!this.#isOver) {
        const made = await this.#make(zk);
        if (made === undefined) break;
        await this.#keep(made);
        if (this.#isOver) await remove(made);
      }
    } catch (error) {
      if (!isEndOfSession(error)) this.#fail(error);
    } finally {
      unlisten();
      if (this.#made?.zk === zk) this.#gone(this.#made);
    }
  }

  /** Not ended by `close`, which has to know what became of it; undefined when that came while it was another's. */
  async #make(zk: ClientView): Promise<Made | undefined> {
    while (!this.#isOver) {
      const data = this.#data;
      try {
        const { path, stat } = await this.#create(zk, data);
        return { zk, path, czxid: stat.czxid, version: stat.version, data };
      } catch (error) {
        // It was made, and somebody has deleted it.
        if (error instanceof RecipeError && error.code === 'Lost') continue;
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
      const found = await this.#take(zk);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #create(zk: ClientView, data: Data): Promise<CreateResult> {
    const { acl, ttlMs, protection } = this.#options;
    const mode = this.#mode;
    const settings = { acl, parents: 'container' } as const;
    if (mode === 'ephemeralSequential' || (mode === 'ephemeral' && protection === true))
      return makeOwn(zk, this.#wanted, data, { mode, ...settings });
    const life = mode === 'persistentWithTtl' ? { mode, ttlMs: ttlMs! } : { mode };
    return zk.create(this.#wanted, data, { ...life, ...settings, idempotent: true, ...untilTheEnd });
  }

  /** What to do about one that was there. undefined: it was gone, or is now. */
  async #take(zk: ClientView): Promise<Made | undefined> {
    const path = this.#wanted;
    const data = this.#data;
    const stat = await zk.exists(path, untilTheEnd);
    if (stat === null) return undefined;
    try {
      if (stat.ephemeralOwner === 0n ? !this.#mode.startsWith('ephemeral') : stat.ephemeralOwner === zk.sessionId) {
        const made = { zk, path, czxid: stat.czxid, version: stat.version, data };
        return (await write(made, data)) ? made : undefined;
      }
      if (stat.ephemeralOwner !== 0n && this.#options.takesOver === true) await zk.delete(path, { ...untilTheEnd, version: stat.version });
      else await this.#untilGone(zk, path, stat.czxid);
    } catch (error) {
      // Without an answer the next attempt to make it tells.
      if (!KeeperError.is(error, 'NoNode', 'BadVersion') && !isUnanswered(error)) throw error;
    }
    return undefined;
  }

  async #keep(made: Made): Promise<void> {
    using _heartbeat =
      this.#mode === 'persistentWithTtl' ? new Heartbeat(made.zk, touchOf(made), this.#options, (error) => this.#fail(error)) : undefined;
    this.#path = made.path;
    this.#made = made;
    if (made.zk.state === 'suspended') this.#become('suspended');
    else this.#appear();
    await this.#untilGone(made.zk, made.path, made.czxid);
    this.#gone(made);
  }

  /** Or until it is not to be kept any longer. */
  async #untilGone(zk: ClientView, path: string, czxid: bigint): Promise<void> {
    try {
      const isGone = (stat: Stat | null) => stat?.czxid !== czxid;
      while (await eventUnless(zk, path, (options) => zk.exists(path, options), isGone, this.#closing.signal));
    } catch (error) {
      if (!this.#isOver) throw error;
    }
  }

  async #write(data: Data, before: Promise<unknown>, options: WaitOptions): Promise<void> {
    using limit = new Limit(clientOf(this.#source), options, `a change of ${this.#path}`);
    const { signal } = limit;
    await unlessAborted(before, signal);
    for (;;) {
      const made = await this.#present({ signal });
      if (made.data === data || this.#data !== data) return;
      try {
        if (await write(made, data, { signal })) return;
      } catch (error) {
        if (!isEndOfSession(error)) throw error;
      }
      // It is about to be made again, with these data.
      this.#gone(made);
    }
  }

  async #present(options: WaitOptions): Promise<Made> {
    options.signal?.throwIfAborted();
    while (this.#made === undefined || this.#state !== 'present') {
      if (this.#state === 'closed') throw this.#closing.signal.reason;
      await this.#waiting.wait(options);
    }
    return this.#made;
  }

  #appear(): void {
    this.#become('present');
    this.#waiting.admit();
  }

  #gone(made: Made): void {
    if (this.#made !== made) return;
    this.#made = undefined;
    this.#become('absent');
  }

  #onState(zk: ClientView, { state }: SessionEvent): void {
    if (this.#made?.zk !== zk) return;
    if (state === 'Disconnected') this.#become('suspended');
    else if (state === 'SyncConnected') this.#appear();
  }

  #fail(reason: unknown): void {
    if (this.#isOver) return;
    this.#over(reason);
    this.#end.abort(reason);
  }

  get #isOver(): boolean {
    return this.#closing.signal.aborted;
  }

  #over(reason: unknown): void {
    if (this.#isOver) return;
    this.#unfollow?.();
    depart(clientOf(this.#source), this.#wanted, this.#serving);
    this.#become('closed');
    this.#closing.abort(reason);
    this.#waiting.dismiss(reason);
  }

  #become(state: PersistentNodeState): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    this.#listeners.tell(state);
  }
}

/** Resolves when it is done, or when the connection is lost, without which it takes as long as it takes. */
async function connectedAndDone(zk: ClientView, work: Promise<void>): Promise<void> {
  let unlisten!: () => void;
  const lost = new Promise<void>((resolve) => {
    unlisten = zk.on('state', () => resolve());
    if (zk.state !== 'connected') resolve();
  });
  await Promise.race([work, lost]);
  unlisten();
}

/** The caller's array is not kept. */
function copyOf(data: Data): Data {
  return data instanceof Uint8Array ? data.slice() : data;
}
