/**
 * The znodes of a cache, by path and by parent. Whatever is shown hangs on parents that are shown, up to the root: so children are known
 * without a list of their own, and what is below a znode goes with it.
 */
import { childPath, nameOf, parentOf } from '@tskeeper/client/internal';
import type { CachedZnode } from './cached-znode.ts';

export class ZnodeStore<Data> {
  readonly #znodes = new Map<string, CachedZnode<Data>>();
  /** Names by parent, where there are any. */
  readonly #names = new Map<string, Set<string>>();

  get size(): number {
    return this.#znodes.size;
  }

  get(path: string): CachedZnode<Data> | undefined {
    return this.#znodes.get(path);
  }

  values(): IterableIterator<CachedZnode<Data>> {
    return this.#znodes.values();
  }

  namesBelow(path: string): ReadonlySet<string> {
    return this.#names.get(path) ?? none;
  }

  set(znode: CachedZnode<Data>): void {
    const { path } = znode;
    if (!this.#znodes.has(path)) this.#register(path);
    this.#znodes.set(path, znode);
  }

  /** Nothing may be left below it. */
  delete(path: string): void {
    this.#znodes.delete(path);
    const parent = parentOf(path);
    const names = this.#names.get(parent);
    names?.delete(nameOf(path));
    if (names?.size === 0) this.#names.delete(parent);
  }

  clear(): void {
    this.#znodes.clear();
    this.#names.clear();
  }

  /** What is below a znode, children ahead of their parents: the order in which it can be deleted. */
  below(path: string): CachedZnode<Data>[] {
    // Each is put behind its parent; backwards that is the order wanted. No recursion, since trees may be deep.
    const paths = [path];
    for (let at = 0; at < paths.length; at++) for (const name of this.namesBelow(paths[at]!)) paths.push(childPath(paths[at]!, name));
    return paths
      .slice(1)
      .toReversed()
      .map((each) => this.#znodes.get(each)!);
  }

  #register(path: string): void {
    // The root of the tree is no child of its own.
    if (path === '/') return;
    const parent = parentOf(path);
    const names = this.#names.get(parent);
    if (names === undefined) this.#names.set(parent, new Set([nameOf(path)]));
    else names.add(nameOf(path));
  }
}

const none: ReadonlySet<string> = new Set();
