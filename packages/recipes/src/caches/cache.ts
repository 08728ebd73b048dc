/** What all caches have in common: when they are in step, what they report, and how they end. */
import { formatSessionId } from '@tskeeper/client';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import { checkArgumentCount, checkFunction, checkSourceAndPath, checkWaitOptions, argumentCountError } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { currentClient, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import { Waiters } from '../waiting/promises.ts';
import type { MultiZnodeCacheOptions } from './cached-znode.ts';
import { type CacheChanges, type ChangesOptions, ChangeStream } from './change-stream.ts';
import { CacheUpdater } from './cache-updater.ts';
import type { ZnodeStore } from './znode-store.ts';

/** How the kinds of caches differ. */
export interface CacheSettings<Data> extends MultiZnodeCacheOptions<Data> {
  readonly maxDepth: number;
  readonly include?: ((path: string) => boolean) | undefined;
  /** Whether to read the data of the root; by default as those of the others. */
  readonly rootData?: boolean | undefined;
  /** Whether to report changes of the root, too. */
  readonly includesRootChanges: boolean;
}

const concurrencyDefault = 16;

/** What all caches have in common: `NodeCache`, `ChildrenCache` and `TreeCache`. */
export abstract class Cache<Data> implements AsyncDisposable {
  /** As given. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #updater: CacheUpdater<Data>;
  readonly #waiters: Waiters;
  readonly #streams = new Set<ChangeStream<Data>>();
  #failure: { readonly reason: unknown } | undefined;

  protected constructor(source: SessionSource, path: string, settings: CacheSettings<Data>) {
    checkSourceAndPath(source, path);
    const { decode, include, concurrency = concurrencyDefault, data = true, rootData = data, maxDepth, includesRootChanges } = settings;
    if (decode !== undefined) checkFunction(decode, 'decode');
    if (include !== undefined) checkFunction(include, 'include');
    if (decode !== undefined && !data) throw new TypeError('with data: false there is nothing to decode; leave out data or decode');
    this.path = path;
    this.#source = source;
    this.#waiters = new Waiters(source, `the cache of ${path}`);
    this.#updater = new CacheUpdater(
      source,
      path,
      { maxDepth, data, rootData, decode, include, concurrency },
      {
        onChange: (change) => {
          if (change.kind === 'inStep') this.#waiters.resolveAll();
          if (!includesRootChanges && 'path' in change && change.path === path) return;
          for (const stream of this.#streams) stream.push(change);
        },
        onEnd: (failure) => this.#onEnd(failure),
      },
    );
  }

  /** The znodes that are shown, for the kinds of caches. */
  protected get znodes(): ZnodeStore<Data> {
    return this.#updater.contents.znodes;
  }

  /**
   * Whether the cache shows all that the server has reported, except changes that are being read
   * now. False until it has read everything; and after the loss of a connection until it has read
   * everything again: what it shows meanwhile may be out of date.
   */
  get isSynced(): boolean {
    return this.#updater.isSynced;
  }

  /** Whether the cache has ended. It still shows what it showed last. */
  get isClosed(): boolean {
    return this.#updater.hasEnded;
  }

  /** Paths that this client may not READ: the cache shows neither them nor anything below them. */
  get unreadable(): readonly string[] {
    return this.#updater.contents.unreadable;
  }

  /**
   * Resolves when the cache is in step, at once if it is. Rejects with the error that has ended the
   * cache, such as SessionExpired; with a RecipeError, Closed when it or the client was closed,
   * TimedOut; and with the signal's reason.
   */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    checkWaitOptions(options, `the cache of ${this.path}`);
    options.signal?.throwIfAborted();
    if (this.isClosed) throw this.#endReason();
    if (!this.isSynced) await this.#waiters.wait(options);
  }

  /**
   * The changes from this call on, for `for await`: so first read what the cache shows, and then
   * loop. Any number of loops may run; each has a queue of its own. A loop ends when the program
   * closes the cache or the client; otherwise it throws the error that has ended the cache, after
   * all earlier changes, or the signal's reason.
   */
  changes(options: ChangesOptions = {}): CacheChanges<Data> {
    checkArgumentCount(arguments.length, 1, 'changes(options)');
    const stream: ChangeStream<Data> = new ChangeStream(options, () => this.#streams.delete(stream));
    if (this.isClosed) stream.end(this.#failure);
    else if (!stream.hasEnded) this.#streams.add(stream);
    return stream;
  }

  /** Ends the cache and its loops, and removes its watch. Never rejects. */
  close(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#updater.close();
    return Promise.resolve();
  }

  /** What `console.log` shows of a cache: not the data. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const state = this.isClosed ? 'closed' : this.isSynced ? 'inStep' : 'outOfStep';
    const { sessionId } = currentClient(this.#source);
    const shown = { state, path: this.path, znodes: this.znodes.size, sessionId: formatSessionId(sessionId) };
    return inspectObject(this, shown, options, inspect);
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #onEnd(failure: { readonly reason: unknown } | undefined): void {
    this.#failure = failure;
    for (const stream of this.#streams) stream.end(failure);
    this.#streams.clear();
    this.#waiters.rejectAll(this.#endReason());
  }

  #endReason(): unknown {
    return this.#failure === undefined ? new RecipeError('Closed', `the cache of ${this.path} is closed`) : this.#failure.reason;
  }
}
