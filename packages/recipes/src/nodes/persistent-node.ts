/**
 * A znode that exists as long as a program wants it to.
 *
 *     absent ──created──> present ──connection lost──> suspended ──reconnected──> present
 *       ^                   │                            │
 *       └──deleted by another client, or gone with its session┘
 *     closed: by `close`, or after a permanent error
 *
 *     1. create it, or take an existing one (node-creator.ts)
 *     2. exists, with a watch, until it is gone or belongs to another session
 *     3. 1. again
 *     closed: delete it, if it is still the one that was created
 */
import type { Acl, ClientView, Data, Millis, SessionEvent } from '@tskeeper/client';
import {
  checkArgumentCount,
  checkData,
  checkSourceAndPath,
  checkConstructorOptions,
  checkWaitOptions,
  describeValue,
  argumentCountError,
} from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { currentClient, followSessions, isEndOfSession, type SessionSource } from '../sessions/session-source.ts';
import { Listeners } from '../listeners.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import { bothSettled, Waiters } from '../waiting/promises.ts';
import type { WaitOptions } from '../wait-options.ts';
import { registerClosing, whenClosed } from './closing-nodes.ts';
import { Heartbeat } from './heartbeat.ts';
import { type NodeContent, type CreatedNode, deleteNode, deleteNodeInAnySession, touchPathOf, writeNode } from './created-node.ts';
import { type NodeCreatorOptions, NodeCreator } from './node-creator.ts';

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
  readonly takeOver?: boolean | undefined;
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
  readonly #requestedPath: string;
  readonly #settings: NodeCreatorOptions;
  readonly #creator: NodeCreator;
  readonly #endController = new AbortController();
  readonly #closing = new AbortController();
  readonly #waiters: Waiters;
  readonly #listeners = new Listeners<PersistentNodeState>();
  #stopFollowing: (() => void) | undefined;
  #content: NodeContent;
  #path: string;
  /** Set while it exists, as far as this client knows. */
  #node: CreatedNode | undefined;
  /** A znode that outlives its session, and has not been deleted as far as this client knows. */
  #nodeToDelete: CreatedNode | undefined;
  #state: PersistentNodeState = 'absent';
  #keeping: Promise<void> = Promise.resolve();
  /** After the close: the rest of the work. */
  #cleanup: Promise<void> | undefined;
  /** The last change of data: the next one waits for it, so that the last one wins. */
  #writing: Promise<unknown> = Promise.resolve();
  #closeResult: Promise<void> | undefined;

  /**
   * Begins at once; `ready` resolves when the znode exists. `source`: a client, with whose session
   * it ends, or `Sessions`. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, data: Data = null, options: PersistentNodeOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'PersistentNode', arguments.length);
    const { mode = 'ephemeral', ttlMs, protection } = options;
    if (!modes.includes(mode))
      throw new TypeError(`there is no mode ${describeValue(mode)} of a PersistentNode; modes are ${modes.join(', ')}`);
    if ((mode === 'persistentWithTtl') !== (ttlMs !== undefined))
      throw new TypeError('ttlMs and the mode persistentWithTtl need each other; give both or neither');
    if (ttlMs !== undefined && !(ttlMs >= 1)) throw new RangeError(`ttlMs must be a number of milliseconds from 1, not ${ttlMs}`);
    checkData(data);
    if (protection === true && !mode.startsWith('ephemeral'))
      throw new TypeError(`after a restart, a ${mode} znode with a guid could not be found again; leave protection out`);
    this.#source = source;
    this.#requestedPath = path;
    this.#path = path;
    this.#settings = { ...options, mode };
    this.#creator = new NodeCreator(path, this.#settings, this.#closing.signal);
    this.#content = { data: copyOf(data) };
    this.#waiters = new Waiters(currentClient(source), `znode ${path}`);
    this.#stopFollowing = followSessions(source, {
      onSession: (zk) => {
        this.#keeping = this.#keepInSession(zk);
      },
      onEnd: (reason) => this.#fail(reason),
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
    return this.#endController.signal;
  }

  /** Listens to changes of `state` from now on; returns a function that removes the listener. */
  onStateChange(listener: (state: PersistentNodeState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Resolves with its path when it exists, at once if it does. Rejects with a RecipeError:
   * TimedOut; Closed; Lost, when the session is over; with the signal's reason; and with the error
   * with which a server rejects its creation, such as NoAuth. Later calls reject with the same.
   */
  async ready(options: WaitOptions = {}): Promise<string> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `znode ${this.#path}`);
    await this.#whenPresent(options);
    return this.path;
  }

  /**
   * Sets other data, from now on: resolves when the znode has them. Rejects as `ready` does; the
   * znode then receives the data when it is created again, and may have them already.
   */
  async setData(data: Data, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'setData(data, options)');
    using deadline = new Deadline(currentClient(this.#source), options, `a change of ${this.#path}`);
    if (this.#hasEnded) throw this.#closing.signal.reason;
    checkData(data);
    const content = { data: copyOf(data) };
    this.#content = content;
    const before = this.#writing;
    const writing = this.#writeContent(content, before, deadline.signal);
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
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#closeResult ??= this.#close();
    return this.#closeResult;
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#finish(new RecipeError('Closed', `the PersistentNode of ${this.#path} was closed`));
    await doneOrDisconnected(currentClient(this.#source), this.#cleanup);
  }

  // --- Keeping the znode

  /** As long as one session lasts. Never rejects. */
  async #keepInSession(zk: ClientView): Promise<void> {
    const unlisten = zk.on('state', (event) => this.#onState(zk, event));
    try {
      await whenClosed(this.#source, this.#requestedPath);
      while (!this.#hasEnded) {
        const made = await this.#creator.create(zk, () => this.#content);
        if (made === undefined) break;
        await this.#watchUntilGone(made);
        if (!this.#hasEnded) continue;
        await deleteNode(made);
        this.#nodeToDelete = undefined;
      }
    } catch (error) {
      if (!isEndOfSession(error)) this.#fail(error);
    } finally {
      unlisten();
      if (this.#node?.zk === zk) this.#onGone(this.#node);
    }
  }

  async #watchUntilGone(made: CreatedNode): Promise<void> {
    const { mode } = this.#settings;
    using _heartbeat =
      mode === 'persistentWithTtl' ? new Heartbeat(made.zk, touchPathOf(made), this.#settings, (error) => this.#fail(error)) : undefined;
    this.#path = made.path;
    this.#node = made;
    if (!mode.startsWith('ephemeral')) this.#nodeToDelete = made;
    if (made.zk.state === 'suspended') this.#setState('suspended');
    else this.#onPresent();
    await this.#creator.waitUntilGone(made.zk, made.path, made.czxid);
    this.#onGone(made);
  }

  async #writeContent(content: NodeContent, before: Promise<unknown>, signal: AbortSignal): Promise<void> {
    await unlessAborted(before, signal);
    for (;;) {
      const made = await this.#whenPresent({ signal });
      if (made.content === content || this.#content !== content) return;
      try {
        if (await writeNode(made, content, { signal })) return;
      } catch (error) {
        if (!isEndOfSession(error)) throw error;
      }
      // It is about to be created again, with these data.
      this.#onGone(made);
    }
  }

  async #whenPresent(options: WaitOptions): Promise<CreatedNode> {
    options.signal?.throwIfAborted();
    while (this.#node === undefined || this.#state !== 'present') {
      if (this.#state === 'closed') throw this.#closing.signal.reason;
      await this.#waiters.wait(options);
    }
    return this.#node;
  }

  #onPresent(): void {
    this.#setState('present');
    this.#waiters.resolveAll();
  }

  #onGone(made: CreatedNode): void {
    if (this.#node !== made) return;
    this.#node = undefined;
    this.#setState('absent');
  }

  #onState(zk: ClientView, { state }: SessionEvent): void {
    if (this.#node?.zk !== zk) return;
    if (state === 'Disconnected') this.#setState('suspended');
    else if (state === 'SyncConnected') this.#onPresent();
  }

  #fail(reason: unknown): void {
    if (this.#hasEnded) return;
    this.#finish(reason);
    this.#endController.abort(reason);
  }

  get #hasEnded(): boolean {
    return this.#closing.signal.aborted;
  }

  #finish(reason: unknown): void {
    if (this.#hasEnded) return;
    this.#stopFollowing?.();
    // Before the listeners, which may call `close`.
    this.#closing.abort(reason);
    this.#cleanup = this.#cleanUp();
    registerClosing(this.#source, this.#requestedPath, this.#cleanup);
    this.#setState('closed');
    this.#waiters.rejectAll(reason);
  }

  /**
   * Waits for the requests in progress in this session; deletes what outlives the session in
   * another one.
   */
  async #cleanUp(): Promise<void> {
    await this.#keeping;
    if (this.#nodeToDelete !== undefined) await deleteNodeInAnySession(this.#source, this.#nodeToDelete);
  }

  #setState(state: PersistentNodeState): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    this.#listeners.notify(state);
  }
}

/**
 * Resolves when the work is done, or when the connection is lost, without which it may take any
 * time.
 */
async function doneOrDisconnected(zk: ClientView, work: Promise<void> | undefined): Promise<void> {
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
