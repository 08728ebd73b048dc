/** All znodes of a model below one parent. */
import type { ClientView, PlainReadOptions } from '@tskeeper/client';
import { CallSignature, callOptionTypes, childPath, valueTypes, optionTypes } from '@tskeeper/client/internal';
import { ChildrenCache, type ChildrenCacheOptions } from '../caches/children-cache.ts';
import { callAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import type { Codec } from '../codecs/codec.ts';
import { decodeValue, type ModelValue } from './model-value.ts';
import type { PathParams, PathTemplate } from './path-template.ts';

/** A value, with the parameters of its path. */
export interface ListedValue<Template extends string, Read> extends ModelValue<Read> {
  /** The parameters of the template, as found in the path. */
  readonly params: PathParams<Template>;
}

/** The maximum number of requests in flight. */
const readConcurrency = 16;

const modelChildrenSignatures = {
  list: new CallSignature('list(options)', optionTypes(callOptionTypes.plainRead)),
  cache: new CallSignature('cache(options)', optionTypes({ concurrency: valueTypes.count })),
} as const;

/** All znodes of a model below one parent: made by `Model.children`. */
export class ModelChildren<Template extends string, Read> {
  /** Of the parent. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #template: PathTemplate<Template>;
  readonly #codec: Codec<Read, never>;

  /** Made by `Model.children`. */
  constructor(source: SessionSource, path: string, template: PathTemplate<Template>, codec: Codec<Read, never>) {
    this.#source = source;
    this.path = path;
    this.#template = template;
    this.#codec = codec;
  }

  /**
   * The values, in no defined order; none if the parent does not exist. One request for the names
   * and one for each value, 16 at a time; znodes that are deleted meanwhile are left out. Rejects
   * as `Client.getChildren` does, except with NoNode; as `Client.getData` does; and with a
   * RecipeError, Mismatch, for the first whose data the codec cannot decode.
   */
  async list(options: PlainReadOptions = {}): Promise<readonly ListedValue<Template, Read>[]> {
    modelChildrenSignatures.list.check(arguments.length, options);
    const what = `the values below ${this.path}`;
    return await callAcrossSessions(this.#source, what, options, (zk, within) => this.#listIn(zk, within));
  }

  async #listIn(zk: ClientView, options: PlainReadOptions): Promise<readonly ListedValue<Template, Read>[]> {
    const paths = await this.#paths(zk, options);
    const found: ListedValue<Template, Read>[] = [];
    const readSome = async () => {
      for (let path = paths.shift(); path !== undefined; path = paths.shift()) {
        const value = await this.#read(zk, path, options);
        if (value !== undefined) found.push(value);
      }
    };
    try {
      await Promise.all(Array.from({ length: readConcurrency }, readSome));
    } finally {
      // The first failure ends all readers.
      paths.length = 0;
    }
    return found;
  }

  async #paths(zk: ClientView, options: PlainReadOptions): Promise<string[]> {
    const found = await undefinedIfNoNode(zk.getChildren(this.path, options));
    return (found?.children ?? []).map((name) => childPath(this.path, name)).filter((path) => this.#template.match(path) !== undefined);
  }

  async #read(zk: ClientView, path: string, options: PlainReadOptions): Promise<ListedValue<Template, Read> | undefined> {
    const found = await undefinedIfNoNode(zk.getData(path, options));
    return found && { ...decodeValue(this.#codec, path, found.data, found.stat), params: this.#template.match(path)! };
  }

  /**
   * A cache of all of them, by name, until it is closed; lookups send no request. Data that the
   * codec cannot decode are shown as a `decodeError`.
   */
  cache(options: Pick<ChildrenCacheOptions, 'concurrency'> = {}): ChildrenCache<Read> {
    modelChildrenSignatures.cache.check(arguments.length, options);
    return new ChildrenCache(this.#source, this.path, {
      ...options,
      decode: (data) => this.#codec.decode(data),
      include: (name) => this.#template.match(childPath(this.path, name)) !== undefined,
    });
  }
}
