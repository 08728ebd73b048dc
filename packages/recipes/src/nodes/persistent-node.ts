/**
 * A znode that is there for as long as somebody wants it to be.
 *
 *     absent ──made──> present ──connection lost──> suspended ──reconnected──> present
 *       ^                 │                            │
 *       └──deleted by somebody, or gone with its session┘
 *     closed: by `close`, or as it could not be kept any longer
 *
 *     1. create it, or take the one that is there (node-maker.ts)
 *     2. exists, with a watch, until it is gone or is another's
 *     3. 1. again
 *     closed: delete it, if it is still the one that was made
 */
import type { Acl, ClientView, Data, Millis, SessionEvent } from '@tskeeper/client';
import { checkCount, checkData, checkPlace, checkSettings, checkWaitOptions, named, surplusOf } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { clientOf, eachSession, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Listeners } from '../listeners.ts';
import { bothSettled } from '../waiting/both.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { WaitingRoom } from '../waiting/waiting-room.ts';
import { depart, departed } from './departing.ts';
import { Heartbeat } from './heartbeat.ts';
import { type Content, type Made, remove, removeInAny, touchOf, write } from './made-node.ts';
import { type MakingSettings, NodeMaker } from './node-maker.ts';

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

/**
 * A znode kept alive: made again when somebody has deleted it, and in the next session when it went with the last (Curator's PersistentNode). Of two that keep one znode at
 * the same time, in two programs or by two views of a client, the one that is closed deletes it, and the other makes it again.
 */
export class PersistentNode implements AsyncDisposable {
  readonly #source: SessionSource;
  readonly #wanted: string;
  readonly #settings: MakingSettings;
  readonly #maker: NodeMaker;
  readonly #end = new AbortController();
  readonly #closing = new AbortController();
  readonly #waiting: WaitingRoom;
  readonly #listeners = new Listeners<PersistentNodeState>();
  #unfollow: (() => void) | undefined;
  #content: Content;
  #path: string;
  /** While it is there, as far as is known. */
  #made: Made | undefined;
  /** One that outlives its session, and has not been deleted as far as is known. */
  #left: Made | undefined;
  #state: PersistentNodeState = 'absent';
  #serving: Promise<void> = Promise.resolve();
  /** Since it is closed: what is left to do. */
  #departing: Promise<void> | undefined;
  /** The last change of data: the next waits for it, so that the last one is what stays. */
  #writing: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  /**
   * Begins at once; `ready` resolves when it is there. `source`: a client, whose end is its end, or `Sessions`. Throws a TypeError for what is no client or
   * no path.
   */
  constructor(source: SessionSource, path: string, data: Data = null, options: PersistentNodeOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'PersistentNode', arguments.length);
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
    this.#settings = { ...options, mode };
    this.#maker = new NodeMaker(path, this.#settings, this.#closing.signal);
    this.#content = { data: copyOf(data) };
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
    return this.#content.data;
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
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves with its path when it is there, at once if it is. Rejects with a RecipeError: TimedOut; Closed; Lost, when the session is over; with the signal's
   * reason; with what a server refuses to make it with, as NoAuth; and so do later calls.
   */
  async ready(options: WaitOptions = {}): Promise<string> {
    checkCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the znode ${this.#path}`);
    await this.#present(options);
    return this.path;
  }

  /**
   * Other data, from now on: resolves when the znode has them. Rejects as `ready` does; then they are what it gets when it is made again, and
   * perhaps has already.
   */
  async setData(data: Data, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'setData(data, options)');
    using limit = new Limit(clientOf(this.#source), options, `a change of ${this.#path}`);
    if (this.#isOver) throw this.#closing.signal.reason;
    checkData(data);
    const content = { data: copyOf(data) };
    this.#content = content;
    const before = this.#writing;
    const writing = this.#write(content, before, limit.signal);
    // Who gives up has not ended those before.
    this.#writing = bothSettled(before, writing);
    await writing;
  }

  /**
   * Keeps it no longer, and deletes it: resolves when it is gone, or when it goes in the background, as no server can be reached just now: in this session, or with
   * `Sessions` in the next, should it outlive this one. Never rejects; one that may not be deleted stays.
   */
  close(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#over(new RecipeError('Closed', `the keeping of ${this.#path} was closed`));
    await connectedAndDone(clientOf(this.#source), this.#departing);
  }

  // --- The keeping

  /** For the length of one session. Rejects never. */
  async #serve(zk: ClientView): Promise<void> {
    const unlisten = zk.on('state', (event) => this.#onState(zk, event));
    try {
      await departed(this.#source, this.#wanted);
      while (!this.#isOver) {
        const made = await this.#maker.make(zk, () => this.#content);
        if (made === undefined) break;
        await this.#keep(made);
        if (!this.#isOver) continue;
        await remove(made);
        this.#left = undefined;
      }
    } catch (error) {
      if (!isEndOfSession(error)) this.#fail(error);
    } finally {
      unlisten();
      if (this.#made?.zk === zk) this.#gone(this.#made);
    }
  }

  async #keep(made: Made): Promise<void> {
    const { mode } = this.#settings;
    using _heartbeat =
      mode === 'persistentWithTtl' ? new Heartbeat(made.zk, touchOf(made), this.#settings, (error) => this.#fail(error)) : undefined;
    this.#path = made.path;
    this.#made = made;
    if (!mode.startsWith('ephemeral')) this.#left = made;
    if (made.zk.state === 'suspended') this.#become('suspended');
    else this.#appear();
    await this.#maker.untilGone(made.zk, made.path, made.czxid);
    this.#gone(made);
  }

  async #write(content: Content, before: Promise<unknown>, signal: AbortSignal): Promise<void> {
    await unlessAborted(before, signal);
    for (;;) {
      const made = await this.#present({ signal });
      if (made.content === content || this.#content !== content) return;
      try {
        if (await write(made, content, { signal })) return;
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
    // Ahead of all who hear of it, since they may close it.
    this.#closing.abort(reason);
    this.#departing = this.#clearAway();
    depart(this.#source, this.#wanted, this.#departing);
    this.#become('closed');
    this.#waiting.dismiss(reason);
  }

  /** What is under way in this session comes to its end; what outlives the session is deleted in another. */
  async #clearAway(): Promise<void> {
    await this.#serving;
    if (this.#left !== undefined) await removeInAny(this.#source, this.#left);
  }

  #become(state: PersistentNodeState): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    this.#listeners.tell(state);
  }
}

/** Resolves when it is done, or when the connection is lost, without which it takes as long as it takes. */
async function connectedAndDone(zk: ClientView, work: Promise<void> | undefined): Promise<void> {
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
