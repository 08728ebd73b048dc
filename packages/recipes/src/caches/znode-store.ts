/**
 * The znodes of a cache, by path and by parent. The parents of each znode that is shown are shown
 * too, up to the root: so children need no list of their own, and the znodes below a znode are
 * removed with it.
 */
import { childPath, nameOf, parentOf } from '@tskeeper/client/internal';
import type { CachedZnode } from './cached-znode.ts';

export class ZnodeStore<Data> {
  readonly #znodes = new Map<string, CachedZnode<Data>>();
  /** Names by parent, if there are any. */
  readonly #childNames = new Map<string, Set<string>>();

  get size(): number {
    return this.#znodes.size;
  }

  get(path: string): CachedZnode<Data> | undefined {
    return this.#znodes.get(path);
  }

  values(): IterableIterator<CachedZnode<Data>> {
    return this.#znodes.values();
  }

  childNames(path: string): ReadonlySet<string> {
    return this.#childNames.get(path) ?? noNames;
  }

  set(znode: CachedZnode<Data>): void {
    const { path } = znode;
    if (!this.#znodes.has(path)) this.#register(path);
    this.#znodes.set(path, znode);
  }

  /** It must have no children. */
  delete(path: string): void {
    this.#znodes.delete(path);
    const parent = parentOf(path);
    const names = this.#childNames.get(parent);
    names?.delete(nameOf(path));
    if (names?.size === 0) this.#childNames.delete(parent);
  }

  clear(): void {
    this.#znodes.clear();
    this.#childNames.clear();
  }

  /**
   * The znodes below a znode, children before their parents: the order in which they can be
   * deleted.
   */
  descendants(path: string): CachedZnode<Data>[] {
    // Each path is added after its parent; reversed, that is the wanted order. No recursion, since
    // trees may be deep.
    const paths = [path];
    for (let at = 0; at < paths.length; at++) for (const name of this.childNames(paths[at]!)) paths.push(childPath(paths[at]!, name));
    return paths
      .slice(1)
      .toReversed()
      .map((each) => this.#znodes.get(each)!);
  }

  #register(path: string): void {
    // The root of the tree is not its own child.
    if (path === '/') return;
    const parent = parentOf(path);
    const names = this.#childNames.get(parent);
    if (names === undefined) this.#childNames.set(parent, new Set([nameOf(path)]));
    else names.add(nameOf(path));
  }
}

const noNames: ReadonlySet<string> = new Set();
