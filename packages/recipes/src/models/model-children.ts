/** All znodes of a model that stand below one parent. */
import { type ClientView, KeeperError, type PlainReadOptions } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { ChildrenCache, type ChildrenCacheOptions } from '../caches/children-cache.ts';
import type { Codec } from './codec.ts';
import { decoded, type ModelValue } from './model-value.ts';
import type { PathParams, PathTemplate } from './path-template.ts';

/** A value, with the parameters of its path. */
export interface ListedValue<Template extends string, Read> extends ModelValue<Read> {
  /** What stands in the path for the parameters of the template. */
  readonly params: PathParams<Template>;
}

/** Requests under way at most. */
const concurrency = 16;

/** All znodes of a model below one parent: made by `Model.below`. */
export class ModelChildren<Template extends string, Read> {
  /** Of the parent. */
  readonly path: string;
  readonly #zk: ClientView;
  readonly #template: PathTemplate<Template>;
  readonly #codec: Codec<Read, never>;

  /** Made by `Model.below`. */
  constructor(zk: ClientView, path: string, template: PathTemplate<Template>, codec: Codec<Read, never>) {
    this.#zk = zk;
    this.path = path;
    this.#template = template;
    this.#codec = codec;
  }

  /**
   * The values, in no defined order; none when the parent is not there. A request for the names and one for each value, 16 at a time; what goes meanwhile is left
   * out. Rejects as `Client.getChildren` does, but for NoNode; as `Client.getData` does; and with a RecipeError, Mismatch, for the first whose data are
   * not of the model.
   */
  async list(options: PlainReadOptions = {}): Promise<readonly ListedValue<Template, Read>[]> {
    const paths = await this.#paths(options);
    const found: ListedValue<Template, Read>[] = [];
    const readSome = async () => {
      for (let path = paths.shift(); path !== undefined; path = paths.shift()) {
        const value = await this.#read(path, options);
        if (value !== undefined) found.push(value);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, readSome));
    return found;
  }

  async #paths(options: PlainReadOptions): Promise<string[]> {
    try {
      const { children } = await this.#zk.getChildren(this.path, options);
      return children.map((name) => childPath(this.path, name)).filter((path) => this.#template.match(path) !== undefined);
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return [];
      throw error;
    }
  }

  async #read(path: string, options: PlainReadOptions): Promise<ListedValue<Template, Read> | undefined> {
    try {
      const { data, stat } = await this.#zk.getData(path, options);
      return { ...decoded(this.#codec, path, data, stat), params: this.#template.match(path)! };
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return undefined;
      throw error;
    }
  }

  /** A cache of all of them, by name: at hand without asking a server, until it is closed. Data that the codec cannot read are a `decodeError`. */
  cache(options: Pick<ChildrenCacheOptions, 'concurrency'> = {}): ChildrenCache<Read> {
    return new ChildrenCache(this.#zk, this.path, {
      ...options,
      decode: (data) => this.#codec.decode(data),
      include: (name) => this.#template.match(childPath(this.path, name)) !== undefined,
    });
  }
}
