/** One znode of a model, on a client: ZooKeeper's operations with values instead of data. */
import {
  type CallOptions,
  type CheckOp,
  type ClientView,
  type CreateExtras,
  type CreateOp,
  type CreateResult,
  type CreateSettings,
  type DeleteOp,
  type DeleteOptions,
  KeeperError,
  op,
  type PlainReadOptions,
  type SetDataOp,
  type SetDataOptions,
  type Stat,
  type UpdateOptions,
  type VersionOption,
  type WatchLoopOptions,
} from '@tskeeper/client';
import { CallSignature, callOptionTypes as clientCallOptionTypes, valueTypes, optionTypes, parentOf } from '@tskeeper/client/internal';
import { callOptionTypes, checkCallOptions, checkArgumentCount, checkFunction, checkSourceAndPath } from '../validation.ts';
import { callAcrossSessions, mayHaveBeenApplied, type SessionSource, watchAcrossSessions } from '../sessions/session-source.ts';
import { connectionLossCodes } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import { NodeCache } from '../caches/node-cache.ts';
import { decodeValue, encodeValue, type ModelOptions, type ModelValue } from './model-value.ts';

/** The options of `ModelZnode.create`. */
export interface ModelCreateOptions extends Pick<CreateExtras, 'protection' | 'idempotent'>, CallOptions {}

/** The options of `ModelZnode.update`. */
export interface ModelUpdateOptions extends Omit<UpdateOptions, 'create'> {
  /**
   * Creates the znode if it does not exist, as the model says. Default: false, which rejects with
   * NoNode.
   */
  readonly create?: boolean | undefined;
}

/**
 * Operations of a `multi`, for example one that a hold fences. Each throws a RecipeError, Refused,
 * for a value that the codec rejects, and a TypeError or a RangeError for invalid options.
 */
export interface ModelOps<Written> {
  /** Creates the znode. Its parent has to exist. */
  create(value: Written): CreateOp;
  /** Writes the value. */
  set(value: Written, options?: VersionOption): SetDataOp;
  /** Deletes the znode. */
  delete(options?: VersionOption): DeleteOp;
  /** Makes the whole multi fail unless the znode exists, with this version if one is given. */
  check(options?: VersionOption): CheckOp;
}

const modelZnodeSignatures = {
  get: new CallSignature('get(options)', optionTypes(clientCallOptionTypes.plainRead)),
  find: new CallSignature('find(options)', optionTypes(clientCallOptionTypes.plainRead)),
  exists: new CallSignature('exists(options)', optionTypes(clientCallOptionTypes.plainRead)),
  create: new CallSignature(
    'create(value, options)',
    optionTypes({ protection: clientCallOptionTypes.create.protection, idempotent: valueTypes.boolean, ...clientCallOptionTypes.call }),
  ),
  set: new CallSignature('set(value, options)', optionTypes(clientCallOptionTypes.setData)),
  put: new CallSignature('put(value, options)', optionTypes(clientCallOptionTypes.call)),
  update: new CallSignature(
    'update(updater, options)',
    optionTypes({ create: valueTypes.boolean, idempotent: valueTypes.boolean, ...clientCallOptionTypes.call }),
  ),
  delete: new CallSignature('delete(options)', optionTypes(clientCallOptionTypes.deletion)),
} as const;

const versionOptionTypes = optionTypes({ version: valueTypes.version });
const modelOpSignatures = {
  create: new CallSignature('op.create(value)'),
  set: new CallSignature('op.set(value, options)', versionOptionTypes),
  delete: new CallSignature('op.delete(options)', versionOptionTypes),
  check: new CallSignature('op.check(options)', versionOptionTypes),
} as const;

/**
 * One znode of a model. Errors of a server or the client are those of the calls of `Client` of the
 * same name; data that the codec cannot decode give a RecipeError, Mismatch, and values that it
 * rejects a RecipeError, Refused. (Curator's ModeledFramework; conditional writes by `version` are
 * its VersionedModeledFramework.)
 */
export class ModelZnode<Read, Written = Read> {
  /** Of the znode. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #options: ModelOptions<Read, Written>;

  /** Made by `Model.at`. */
  constructor(source: SessionSource, path: string, options: ModelOptions<Read, Written>) {
    checkSourceAndPath(source, path);
    this.#source = source;
    this.path = path;
    this.#options = options;
  }

  /** The value and its Stat. Rejects as `Client.getData` does, and with a RecipeError, Mismatch. */
  async get(options: PlainReadOptions = {}): Promise<ModelValue<Read>> {
    modelZnodeSignatures.get.check(arguments.length, options);
    const { data, stat } = await this.#call(options, (zk, within) => zk.getData(this.path, within));
    return decodeValue(this.#options.codec, this.path, data, stat);
  }

  /** The same, or undefined if the znode does not exist. Rejects as `get` does otherwise. */
  async find(options: PlainReadOptions = {}): Promise<ModelValue<Read> | undefined> {
    modelZnodeSignatures.find.check(arguments.length, options);
    return await undefinedIfNoNode(this.get(options));
  }

  /** The Stat, or null if the znode does not exist. Rejects as `Client.exists` does. */
  async exists(options: PlainReadOptions = {}): Promise<Stat | null> {
    modelZnodeSignatures.exists.check(arguments.length, options);
    return await this.#call(options, (zk, within) => zk.exists(this.path, within));
  }

  /**
   * Creates the znode, and its parents as the model says. Rejects as `Client.create` does, and with
   * a RecipeError, Refused.
   */
  async create(value: Written, options: ModelCreateOptions = {}): Promise<CreateResult> {
    modelZnodeSignatures.create.check(arguments.length, options);
    const { parents = 'container' } = this.#options;
    const data = this.#encode(value);
    const make = (zk: ClientView, within: ModelCreateOptions) =>
      zk.create(this.path, data, { ...this.#createSettings, parents, ...within });
    return await this.#call(options, make);
  }

  /**
   * Writes the value of an existing znode. Rejects as `Client.setData` does, and with a
   * RecipeError, Refused.
   */
  async set(value: Written, options: SetDataOptions = {}): Promise<Stat> {
    modelZnodeSignatures.set.check(arguments.length, options);
    const data = this.#encode(value);
    return await this.#call(options, (zk, within) => zk.setData(this.path, data, within));
  }

  /**
   * Writes the value, and creates the znode if it does not exist; the last writer wins. Resolves
   * with its Stat. Rejects as `create` and `set` do, except with NodeExists and NoNode. Throws a
   * TypeError for a model of sequential znodes. (What Curator's `set` does.)
   */
  async put(value: Written, options: CallOptions = {}): Promise<Stat> {
    modelZnodeSignatures.put.check(arguments.length, options);
    this.#rejectSequential('put');
    for (;;) {
      try {
        return await this.set(value, options);
      } catch (error) {
        if (!KeeperError.is(error, 'NoNode')) throw error;
      }
      try {
        return (await this.create(value, options)).stat;
      } catch (error) {
        if (!KeeperError.is(error, 'NodeExists')) throw error;
      }
    }
  }

  /**
   * Reads the value, calls `updater`, and writes its result if no other client has written
   * meanwhile; otherwise again. The argument is `undefined` if the znode does not exist; the result
   * `undefined` leaves it unchanged. Resolves with the resulting znode. Rejects as `Client.update`
   * does, and with RecipeErrors, Mismatch and Refused.
   */
  async update(
    updater: (value: Read | undefined, stat: Stat | undefined) => Written | undefined | Promise<Written | undefined>,
    options: ModelUpdateOptions = {},
  ): Promise<ModelValue<Read> | undefined> {
    modelZnodeSignatures.update.check(arguments.length, options);
    checkFunction(updater, 'updater');
    const { create = false, ...others } = options;
    if (create) this.#rejectSequential('update');
    return await this.#call(others, (zk, within) => this.#updateInSession(zk, updater, create, within));
  }

  async #updateInSession(
    zk: ClientView,
    updater: (value: Read | undefined, stat: Stat | undefined) => Written | undefined | Promise<Written | undefined>,
    create: boolean,
    options: Omit<ModelUpdateOptions, 'create'>,
  ): Promise<ModelValue<Read> | undefined> {
    const { codec, parents = 'container', acl } = this.#options;
    for (;;) {
      try {
        const updated = await zk.update(
          this.path,
          async (data, stat) => {
            const before = stat === undefined ? undefined : decodeValue(codec, this.path, data, stat).value;
            const wanted = await updater(before, stat);
            return wanted === undefined ? undefined : this.#encode(wanted);
          },
          { ...options, create: create ? this.#createSettings : false },
        );
        return updated && decodeValue(codec, this.path, updated.data, updated.stat);
      } catch (error) {
        // With `create` only the parent can be missing.
        if (!create || parents === false || !KeeperError.is(error, 'NoNode') || error.outcome !== 'refused') throw error;
        await zk.ensurePath(parentOf(this.path), { mode: parents, acl, signal: options.signal, retry: options.retry });
      }
    }
  }

  /** Rejects as `Client.delete` does. */
  async delete(options: DeleteOptions = {}): Promise<void> {
    modelZnodeSignatures.delete.check(arguments.length, options);
    await this.#call(options, (zk, within) => zk.delete(this.path, within));
  }

  /** With `Sessions` it continues in the next session, unless it may have been applied. */
  #call<Options extends CallOptions, Result>(
    options: Options,
    work: (zk: ClientView, options: Options) => Promise<Result>,
  ): Promise<Result> {
    return callAcrossSessions(this.#source, `a reply about ${this.path}`, options, work, mayHaveBeenApplied);
  }

  /**
   * Yields the value, now and after each change: undefined while the znode does not exist. Changes
   * faster than it can read are yielded as one. Ends and throws as `Client.watch` does, and throws
   * as `get` does.
   */
  watch(options: Pick<WatchLoopOptions, 'signal'> = {}): AsyncGenerator<ModelValue<Read> | undefined, void, undefined> {
    checkArgumentCount(arguments.length, 1, 'watch(options)');
    checkCallOptions(options, callOptionTypes.loop, 'watch');
    return this.#watch(options.signal);
  }

  async *#watch(signal: AbortSignal | undefined): AsyncGenerator<ModelValue<Read> | undefined, void, undefined> {
    let last: Stat | undefined | null = null;
    for await (const { zk, event } of watchAcrossSessions(this.#source, this.path, signal)) {
      if (event.type === 'NodeChildrenChanged') continue;
      const now = await this.#readUnlessDisconnected(zk, signal);
      if (now === null || (last !== null && last?.mzxid === now?.stat.mzxid)) continue;
      last = now?.stat;
      yield now;
    }
  }

  /** null if there was no reply: the loop notices the next connection, or the end. */
  async #readUnlessDisconnected(zk: ClientView, signal: AbortSignal | undefined): Promise<ModelValue<Read> | undefined | null> {
    try {
      const found = await undefinedIfNoNode(zk.getData(this.path, { signal }));
      return found && decodeValue(this.#options.codec, this.path, found.data, found.stat);
    } catch (error) {
      if (KeeperError.is(error, ...connectionLossCodes, 'SessionExpired', 'SessionMoved', 'AuthFailed')) return null;
      throw error;
    }
  }

  /**
   * A cache of the value, until it is closed; lookups send no request. Data that the codec cannot
   * decode are shown as its `decodeError`.
   */
  cache(): NodeCache<Read> {
    checkArgumentCount(arguments.length, 0, 'cache()');
    return new NodeCache(this.#source, this.path, { decode: (data) => this.#options.codec.decode(data) });
  }

  /** For a `multi`. */
  get op(): ModelOps<Written> {
    const { path } = this;
    const dataOf = (value: Written) => this.#encode(value);
    const createSettings = this.#createSettings;
    // Not arrow functions, which have no `arguments` of their own: a misplaced version would make a
    // conditional operation unconditional.
    return {
      create(value) {
        modelOpSignatures.create.check(arguments.length, {});
        return op.create(path, dataOf(value), createSettings);
      },
      set(value, options = {}) {
        modelOpSignatures.set.check(arguments.length, options);
        return op.setData(path, dataOf(value), options);
      },
      delete(options = {}) {
        modelOpSignatures.delete.check(arguments.length, options);
        return op.delete(path, options);
      },
      check(options = {}) {
        modelOpSignatures.check.check(arguments.length, options);
        return op.check(path, options);
      },
    };
  }

  #encode(value: Written): Uint8Array | string | null {
    return encodeValue(this.#options.codec, this.path, value);
  }

  get #createSettings(): CreateSettings {
    const { mode, acl, ttlMs } = this.#options;
    return { mode, acl, ttlMs } as CreateSettings;
  }

  #rejectSequential(method: string): void {
    const { mode } = this.#options;
    if (mode?.includes('Sequential') === true)
      throw new TypeError(`a znode of mode ${mode} has a new path each time, so ${method} does not work for ${this.path}; use create`);
  }
}
