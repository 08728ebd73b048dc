/** A value that many read and some change: at hand without asking, told when it changes, and changed only as it was known (Curator's SharedValue). */
import { type Acl, type ClientView, type Data, KeeperError, type Stat, type Updater } from '@tskeeper/client';
import { parentOf } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions, checkCodec, checkCount, checkFunction, checkPlace, checkSettings, surplusOf } from '../given.ts';
import { told } from '../caches/told.ts';
import { NodeCache } from '../caches/node-cache.ts';
import type { Codec } from '../codecs/codec.ts';
import { inSessions, mayBeDone, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';

/** How a value is kept. */
export interface SharedValueOptions {
  /** Of the znode, and of parents that have to be made, as containers. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}

/** A value as it was at one moment, by which it can be changed only if it is that still. */
export interface VersionedValue<Value> {
  /** The value itself. */
  readonly value: Value;
  /** Of the znode, with the `czxid` and `version` that a change depends on. */
  readonly stat: Stat;
}

/** What is known of a value. */
export interface SharedValueView<Value> {
  /** undefined when there is no znode, or its data are no value. */
  readonly current: VersionedValue<Value> | undefined;
  /** What is wrong with the data; undefined when nothing is. */
  readonly decodeError: unknown;
  /** False while there is no connection: then it is as of the past. */
  readonly inStep: boolean;
}

/** A value in a znode, shared by those who read and change it: for as long as its client lives, or with `Sessions` for as long as those do. */
export class SharedValue<Value> implements AsyncDisposable {
  /** The znode of the value. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #codec: Codec<Value>;
  readonly #acl: readonly Acl[] | undefined;
  readonly #cache: NodeCache<Value>;

  /**
   * Begins when it is made; `ready` resolves when it has read the znode. That need not exist, and may come and go. Needs ZooKeeper 3.6, as `NodeCache` does.
   * Throws a TypeError for what is no client, no path or no codec.
   *
   * @param codec what its `encode` throws, the call that writes rejects with; what its `decode` throws is shown as `decodeError`.
   */
  constructor(source: SessionSource, path: string, codec: Codec<Value>, options: SharedValueOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'SharedValue', arguments.length);
    const { acl } = options;
    checkCodec(codec, 'textCodec');
    this.path = path;
    this.#source = source;
    this.#codec = codec;
    this.#acl = acl;
    this.#cache = new NodeCache(source, path, { decode: (data) => codec.decode(data) });
  }

  /** As it was read last, without asking a server; undefined when there is no znode, or its data are no value. */
  get current(): VersionedValue<Value> | undefined {
    const znode = this.#cache.znode;
    return znode === undefined || znode.decodeError !== undefined ? undefined : { value: znode.data as Value, stat: znode.stat };
  }

  /** What `decode` has thrown at the data as they were read last; undefined when it has not. */
  get decodeError(): unknown {
    return this.#cache.znode?.decodeError;
  }

  /** As `Cache.inStep`: false until it was read, and while there is no connection. */
  get inStep(): boolean {
    return this.#cache.inStep;
  }

  /** Resolves when the value was read. Rejects as `Cache.ready` does. */
  async ready(options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 1, 'ready(options)');
    return await this.#cache.ready(options);
  }

  /**
   * Tells the value now, and whenever it is another, or the connection comes and goes. Values that follow each other fast may be told as one. Ends and throws as
   * `Cache.changes` does.
   */
  changes(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<SharedValueView<Value>, void, undefined> {
    checkCount(arguments.length, 1, 'changes(options)');
    checkCallOptions(options, callOptions.loop, 'changes');
    const { signal } = options;
    const show = () => ({
      current: this.current,
      decodeError: this.decodeError,
      inStep: this.inStep,
      mzxid: this.#cache.znode?.stat.mzxid,
    });
    return told(this.#cache, signal, show, (one, other) => one.inStep === other.inStep && one.mzxid === other.mzxid);
  }

  /**
   * Makes it this value, whatever it is, and makes the znode if there is none. After a lost answer it is written again, over what another may have written in
   * between. Rejects as `Client.setData` and `Client.create` do, and with a RecipeError, TimedOut, or the signal's reason.
   */
  async set(value: Value, options: WaitOptions = {}): Promise<void> {
    checkCount(arguments.length, 2, 'set(value, options)');
    const data = this.#codec.encode(value);
    using limit = new Limit(this.#source, options, `a change of ${this.path}`);
    const { signal } = limit;
    await inSessions(this.#source, signal, (zk) => this.#setIn(zk, data, signal));
  }

  async #setIn(zk: ClientView, data: Data, signal: AbortSignal): Promise<void> {
    const call = { ...untilTheEnd, idempotent: true, signal };
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
   * Makes it this value if it is as it was `expected` to be, by version: `current` as it was seen, or undefined for no znode. Resolves with the value as it
   * is then; with undefined when it was another's. Rejects as `Client.update` does: when the answer was lost, and whether it was written cannot be told, with the
   * outcome `unknown`; and with a RecipeError, TimedOut, or the signal's reason.
   */
  async compareAndSet(
    expected: VersionedValue<Value> | undefined,
    value: Value,
    options: WaitOptions = {},
  ): Promise<VersionedValue<Value> | undefined> {
    checkCount(arguments.length, 3, 'compareAndSet(expected, value, options)');
    const data = this.#codec.encode(value);
    let isAsExpected = false;
    const stat = await this.#update((_data, now) => {
      isAsExpected = now?.version === expected?.stat.version && now?.czxid === expected?.stat.czxid;
      return isAsExpected ? data : undefined;
    }, options);
    return isAsExpected ? { value, stat: stat! } : undefined;
  }

  /**
   * Changes it to what `change` makes of it, called again whenever somebody else was faster: with undefined when there is no znode, which is then made. Rejects as
   * `compareAndSet` does, and with what `change`, `encode` or `decode` throws.
   */
  async update(change: (value: Value | undefined) => Value | Promise<Value>, options: WaitOptions = {}): Promise<VersionedValue<Value>> {
    checkCount(arguments.length, 2, 'update(change, options)');
    checkFunction(change, 'change');
    let value: Value | undefined;
    const stat = await this.#update(async (data, now) => {
      value = await change(now === undefined ? undefined : this.#codec.decode(data));
      return this.#codec.encode(value);
    }, options);
    return { value: value as Value, stat: stat! };
  }

  /** Tells nothing any more; the znode stays. Never rejects. */
  close(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'close()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#cache.close();
  }

  /** As `close`; never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The Stat since then; undefined when there is no znode. */
  async #update(updater: Updater, options: WaitOptions): Promise<Stat | undefined> {
    using limit = new Limit(this.#source, options, `a change of ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#updateIn(zk, updater, signal), mayBeDone);
  }

  async #updateIn(zk: ClientView, updater: Updater, signal: AbortSignal): Promise<Stat | undefined> {
    for (;;) {
      try {
        const found = await zk.update(this.path, updater, { create: { acl: this.#acl }, ...untilTheEnd, signal });
        return found?.stat;
      } catch (error) {
        // The parent is missing.
        if (!KeeperError.is(error, 'NoNode')) throw error;
        await zk.ensurePath(parentOf(this.path), { mode: 'container', acl: this.#acl, ...untilTheEnd, signal });
      }
    }
  }
}
