/**
 * The paths that one connection watches, for data or for children, and how: a standard watch is
 * used up by its event, a persistent one stays, and a recursive one stays and covers all paths
 * below. A path can be watched in several modes at once.
 */
export type WatchMode = 'standard' | 'persistent' | 'recursive';

export class WatchTable {
  /** No set is empty. */
  readonly #modes = new Map<string, Set<WatchMode>>();

  get pathCount(): number {
    return this.#modes.size;
  }

  /** Whether the path is watched; in this mode, if one is given. */
  has(path: string, mode?: WatchMode): boolean {
    return mode === undefined ? this.#modes.has(path) : this.#modes.get(path)?.has(mode) === true;
  }

  add(path: string, mode: WatchMode): void {
    const modes = this.#modes.get(path) ?? new Set();
    this.#modes.set(path, modes.add(mode));
  }

  /** Removes the path, or one mode of it. */
  remove(path: string, mode?: WatchMode): void {
    const modes = this.#modes.get(path)!;
    if (mode !== undefined) modes.delete(mode);
    if (mode === undefined || modes.size === 0) this.#modes.delete(path);
  }

  copy(): WatchTable {
    const copy = new WatchTable();
    for (const [path, modes] of this.#modes) copy.#modes.set(path, new Set(modes));
    return copy;
  }
}
