/**
 * A value that many read and some change: lookups send no request, changes are reported, and a
 * change can require that the value is still the known one (Curator's SharedValue).
 */
import { type Acl, type ClientView, type Data, KeeperError, type Stat, type Updater } from '@tskeeper/client';
import { parentOf } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkCallOptions,
  checkCodec,
  checkArgumentCount,
  checkFunction,
  checkSourceAndPath,
  checkConstructorOptions,
  argumentCountError,
} from '../validation.ts';
import { observeCache } from '../caches/observe-cache.ts';
import { NodeCache } from '../caches/node-cache.ts';
import type { Codec } from '../codecs/codec.ts';
import { runAcrossSessions, mayHaveBeenApplied, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import type { WaitOptions } from '../wait-options.ts';

/** How a value is kept. */
export interface SharedValueOptions {
  /**
   * The ACL of the znode, and of parents that have to be created, as containers. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
}

/** A value as it was at one moment; a change can require that it is still the same. */
export interface VersionedValue<Value> {
  /** The value itself. */
  readonly value: Value;
  /** Of the znode; a change depends on its `czxid` and `version`. */
  readonly stat: Stat;
}

/** What a client knows of a value. */
export interface SharedValueView<Value> {
  /** undefined if the znode does not exist, or its data cannot be decoded. */
  readonly current: VersionedValue<Value> | undefined;
  /** What `decode` has thrown; undefined if it has not. */
  readonly decodeError: unknown;
  /** False while there is no connection: then the value may be out of date. */
  readonly isSynced: boolean;
}

/**
 * A value in a znode that many read and change, kept as long as its client lives, or with
 * `Sessions` as long as those do.
 */
export class SharedValue<Value> implements AsyncDisposable {
  /** The znode of the value. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #codec: Codec<Value>;
  readonly #acl: readonly Acl[] | undefined;
  readonly #cache: NodeCache<Value>;

  /**
   * Begins to read when it is created; `ready` resolves when it has read the znode. The znode need
   * not exist, and may be created and deleted. Needs ZooKeeper 3.6, as `NodeCache` does. Throws a
   * TypeError if `source` is not a client, `path` not a path or `codec` not a codec.
   *
   * @param codec a call that writes rejects with what its `encode` throws; what its `decode` throws
   * is shown as `decodeError`.
   */
  constructor(source: SessionSource, path: string, codec: Codec<Value>, options: SharedValueOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'SharedValue', arguments.length);
    const { acl } = options;
    checkCodec(codec, 'textCodec');
    this.path = path;
    this.#source = source;
    this.#codec = codec;
    this.#acl = acl;
    this.#cache = new NodeCache(source, path, { decode: (data) => codec.decode(data) });
  }

  /**
   * As last read, without a request; undefined if the znode does not exist, or its data cannot be
   * decoded.
   */
  get current(): VersionedValue<Value> | undefined {
    const znode = this.#cache.znode;
    return znode === undefined || znode.decodeError !== undefined ? undefined : { value: znode.data as Value, stat: znode.stat };
  }

  /** What `decode` has thrown for the data as last read; undefined if it has not. */
  get decodeError(): unknown {
    return this.#cache.znode?.decodeError;
  }

  /** As `Cache.isSynced`: false until it was read, and while there is no connection. */
  get isSynced(): boolean {
    return this.#cache.isSynced;
  }

  /** Resolves when the value has been read. Rejects as `Cache.ready` does. */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'ready(options)');
    return await this.#cache.ready(options);
  }

  /**
   * Yields the value now, and whenever it changes, or the connection is lost or restored. Values in
   * quick succession may be yielded as one. Ends and throws as `Cache.changes` does.
   */
  changes(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<SharedValueView<Value>, void, undefined> {
    checkArgumentCount(arguments.length, 1, 'changes(options)');
    checkCallOptions(options, callOptionTypes.loop, 'changes');
    const { signal } = options;
    const snapshot = () => ({
      current: this.current,
      decodeError: this.decodeError,
      isSynced: this.isSynced,
      mzxid: this.#cache.znode?.stat.mzxid,
    });
    return observeCache(this.#cache, signal, snapshot, (one, other) => one.isSynced === other.isSynced && one.mzxid === other.mzxid);
  }

  /**
   * Sets it, whatever it is, and creates the znode if it does not exist. After a lost reply it
   * writes again, over what another client may have written meanwhile. Rejects as `Client.setData`
   * and `Client.create` do, and with a RecipeError, TimedOut, or the signal's reason.
   */
  async set(value: Value, options: WaitOptions = {}): Promise<void> {
    checkArgumentCount(arguments.length, 2, 'set(value, options)');
    const data = this.#codec.encode(value);
    using deadline = new Deadline(this.#source, options, `a change of ${this.path}`);
    const { signal } = deadline;
    await runAcrossSessions(this.#source, signal, (zk) => this.#setInSession(zk, data, signal));
  }

  async #setInSession(zk: ClientView, data: Data, signal: AbortSignal): Promise<void> {
    const call = { ...retryForever, idempotent: true, signal };
    for (;;) {
      try {
        await zk.setData(this.path, data, call);
        return;
      } catch (error) {
        if (!KeeperError.is(error, 'NoNode')) throw error;
      }
      try {
        await zk.create(this.path, data, { parents: 'container', acl: this.#acl, ...call });
        return;
      } catch (error) {
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
    }
  }

  /**
   * Sets it if its version is still that of `expected`: an earlier `current`, or undefined if the
   * znode does not exist. Resolves with the new value; with undefined if it has changed. Rejects as
   * `Client.update` does: with the outcome `unknown` when the reply was lost and it cannot be
   * determined whether it was written; and with a RecipeError, TimedOut, or the signal's reason.
   */
  async compareAndSet(
    expected: VersionedValue<Value> | undefined,
    value: Value,
    options: WaitOptions = {},
  ): Promise<VersionedValue<Value> | undefined> {
    checkArgumentCount(arguments.length, 3, 'compareAndSet(expected, value, options)');
    const data = this.#codec.encode(value);
    let isAsExpected = false;
    const stat = await this.#update((_data, now) => {
      isAsExpected = now?.version === expected?.stat.version && now?.czxid === expected?.stat.czxid;
      return isAsExpected ? data : undefined;
    }, options);
    return isAsExpected ? { value, stat: stat! } : undefined;
  }

  /**
   * Sets it to the result of `change`, which is called again whenever another client was faster;
   * with undefined if the znode does not exist, which is then created. Rejects as `compareAndSet`
   * does, and with what `change`, `encode` or `decode` throws.
   */
  async update(change: (value: Value | undefined) => Value | Promise<Value>, options: WaitOptions = {}): Promise<VersionedValue<Value>> {
    checkArgumentCount(arguments.length, 2, 'update(change, options)');
    checkFunction(change, 'change');
    let value: Value | undefined;
    const stat = await this.#update(async (data, now) => {
      value = await change(now === undefined ? undefined : this.#codec.decode(data));
      return this.#codec.encode(value);
    }, options);
    return { value: value as Value, stat: stat! };
  }

  /** Stops reporting changes; the znode stays. Never rejects. */
  close(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#cache.close();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The Stat after the change; undefined if the znode does not exist. */
  async #update(updater: Updater, options: WaitOptions): Promise<Stat | undefined> {
    using deadline = new Deadline(this.#source, options, `a change of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#updateInSession(zk, updater, signal), mayHaveBeenApplied);
  }

  async #updateInSession(zk: ClientView, updater: Updater, signal: AbortSignal): Promise<Stat | undefined> {
    for (;;) {
      try {
        const found = await zk.update(this.path, updater, { create: { acl: this.#acl }, ...retryForever, signal });
        return found?.stat;
      } catch (error) {
        // The parent is missing.
        if (!KeeperError.is(error, 'NoNode')) throw error;
        await zk.ensurePath(parentOf(this.path), { mode: 'container', acl: this.#acl, ...retryForever, signal });
      }
    }
  }
}
