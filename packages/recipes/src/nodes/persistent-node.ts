/**
 * A znode that exists as long as a program wants it to.
 *
 *     absent ──created──> present ──connection lost──> suspended ──reconnected──> present
 *       ^                   │                            │
 *       └──deleted by another client, or gone with its session┘
 *     closed: by `close`, or after a permanent error
 *
 *     1. create it, or take an existing one (node-maker.ts)
 *     2. exists, with a watch, until it is gone or belongs to another session
 *     3. 1. again
 *     closed: delete it, if it is still the one that was created
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

/** The lifetime of the znode of a `PersistentNode`, and how it is created. */
export interface PersistentNodeOptions {
  /**
   * - `ephemeral`, the default: it ends with each session, and is created again in the next.
   * - `ephemeralSequential`: the same, with another number each time.
   * - `persistent`: outlives its program, and is deleted by `close`.
   * - `persistentWithTtl`: outlives its program by `ttlMs`, and is deleted by `close`. Meanwhile a
   *   child `touch` is written twice per `ttlMs`, so that the znode itself need not be (Curator's
   *   PersistentTtlNode). Needs `extendedTypesEnabled` on the servers.
   */
  readonly mode?: 'ephemeral' | 'ephemeralSequential' | 'persistent' | 'persistentWithTtl' | undefined;
  /** In milliseconds, with `persistentWithTtl` only. Default: none. */
  readonly ttlMs?: Millis | undefined;
  /**
   * The ACL of the znode, and of parents that have to be created, as containers. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * Whether the name begins with a guid, a new one at each creation, so that no other client uses
   * the name. Default: true for `ephemeralSequential`, false for the others.
   */
  readonly protection?: boolean | undefined;
  /**
   * Whether to delete an ephemeral of another session that has the name, if it is known to be left
   * from an earlier run of this program. Default: false, waits until it is gone.
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
 * A znode that is kept: created again when another client has deleted it, and in the next session
 * when it ended with the last one (Curator's PersistentNode). If two keep one znode at the same
 * time, in two programs or with two views of a client, the one that is closed deletes it, and the
 * other creates it again.
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
  /** Set while it exists, as far as this client knows. */
  #made: Made | undefined;
  /** A znode that outlives its session, and has not been deleted as far as this client knows. */
  #left: Made | undefined;
  #state: PersistentNodeState = 'absent';
  #serving: Promise<void> = Promise.resolve();
  /** After the close: the rest of the work. */
  #departing: Promise<void> | undefined;
  /** The last change of data: the next one waits for it, so that the last one wins. */
  #writing: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  /**
   * Begins at once; `ready` resolves when the znode exists. `source`: a client, with whose session
   * it ends, or `Sessions`. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, data: Data = null, options: PersistentNodeOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'PersistentNode', arguments.length);
    const { mode = 'ephemeral', ttlMs, protection } = options;
    if (!modes.includes(mode)) throw new TypeError(`there is no mode ${named(mode)} of a PersistentNode; modes are ${modes.join(', ')}`);
    if ((mode === 'persistentWithTtl') !== (ttlMs !== undefined))
      throw new TypeError('ttlMs and the mode persistentWithTtl need each other; give both or neither');
    if (ttlMs !== undefined && !(ttlMs >= 1)) throw new RangeError(`ttlMs is a number of milliseconds from 1, not ${ttlMs}`);
    checkData(data);
    if (protection === true && !mode.startsWith('ephemeral'))
      throw new TypeError(`after a restart, a ${mode} znode with a guid could not be found again; leave protection out`);
    this.#source = source;
    this.#wanted = path;
    this.#path = path;
    this.#settings = { ...options, mode };
    this.#maker = new NodeMaker(path, this.#settings, this.#closing.signal);
    this.#content = { data: copyOf(data) };
    this.#waiting = new WaitingRoom(clientOf(source), `znode ${path}`);
    this.#unfollow = eachSession(source, {
      begin: (zk) => {
        this.#serving = this.#serve(zk);
      },
      ended: (reason) => this.#fail(reason),
    });
  }

  /**
   * The path of the last znode that was created, with guid and number; before that, the path as
   * given.
   */
  get path(): string {
    return this.#path;
  }

  /**
   * The data that the znode has, or receives when it is created: those of this PersistentNode,
   * which another client may have overwritten.
   */
  get data(): Data {
    return this.#content.data;
  }

  /**
   * - `absent`: it does not exist, and is being created, or waited for.
   * - `present`: it exists, as far as this client knows.
   * - `suspended`: it existed, and the connection is lost. Other clients may or may not see it.
   * - `closed`: over.
   */
  get state(): PersistentNodeState {
    return this.#state;
  }

  /**
   * Aborted when it cannot be kept any longer, with the reason: a RecipeError, Closed or Lost, or
   * the error with which a server has rejected it; not by `close`.
   */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Listens to changes of `state` from now on; returns a function that removes the listener. */
  onStateChange(listener: (state: PersistentNodeState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves with its path when it exists, at once if it does. Rejects with a RecipeError:
   * TimedOut; Closed; Lost, when the session is over; with the signal's reason; and with the error
   * with which a server rejects its creation, such as NoAuth. Later calls reject with the same.
   */
  async ready(options: WaitOptions = {}): Promise<string> {
    checkCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `znode ${this.#path}`);
    await this.#present(options);
    return this.path;
  }

  /**
   * Sets other data, from now on: resolves when the znode has them. Rejects as `ready` does; the
   * znode then receives the data when it is created again, and may have them already.
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
    // A call that gives up does not end the earlier ones.
    this.#writing = bothSettled(before, writing);
    await writing;
  }

  /**
   * Stops keeping it, and deletes it: resolves when it is gone, or, if no server can be reached,
   * when the deletion continues in the background: in this session, or, for a znode that outlives
   * it and with `Sessions`, in the next. Never rejects; a znode that may not be deleted stays.
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
    this.#over(new RecipeError('Closed', `the PersistentNode of ${this.#path} was closed`));
    await connectedAndDone(clientOf(this.#source), this.#departing);
  }

  // --- Keeping the znode

  /** As long as one session lasts. Never rejects. */
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
      // It is about to be created again, with these data.
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
    // Before the listeners, which may call `close`.
    this.#closing.abort(reason);
    this.#departing = this.#clearAway();
    depart(this.#source, this.#wanted, this.#departing);
    this.#become('closed');
    this.#waiting.dismiss(reason);
  }

  /**
   * Waits for the requests in progress in this session; deletes what outlives the session in
   * another one.
   */
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

/**
 * Resolves when the work is done, or when the connection is lost, without which it may take any
 * time.
 */
async function connectedAndDone(zk: ClientView, work: Promise<void> | undefined): Promise<void> {
  let unlisten!: () => void;
  const lost = new Promise<void>((resolve) => {
    unlisten = zk.on('state', () => resolve());
    if (zk.state !== 'connected') resolve();
  });
  await Promise.race([work, lost]);
  unlisten();
}

/** A copy: the caller may change its array later. */
function copyOf(data: Data): Data {
  return data instanceof Uint8Array ? data.slice() : data;
}
