/**
 * A view of the tree below some znode. It exists only in the client: paths get the prefix on their
 * way to the server and lose it on their way back, so the user of a view sees only paths that start
 * at its root.
 */
export class Chroot {
  /** Empty for none, otherwise a path without a slash at the end. */
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The path as the server knows it. */
  prepend(path: string): string {
    if (this.#prefix === '') return path;
    return path === '/' ? this.#prefix : this.#prefix + path;
  }

  /**
   * The path as the user knows it. Returns a path outside of the chroot unchanged, as ZooKeeper's
   * client does.
   */
  strip(path: string): string {
    const prefix = this.#prefix;
    if (prefix === '' || !path.startsWith(prefix)) return path;
    if (path.length === prefix.length) return '/';
    // `/app` is not a parent of `/apple`.
    return path.charCodeAt(prefix.length) === 0x2f ? path.slice(prefix.length) : path;
  }

  /**
   * For operations that match prefixes of strings instead of paths: nothing outside of the chroot
   * may match.
   */
  prependPrefix(prefix: string): string {
    if (this.#prefix === '') return prefix;
    return prefix === '' ? `${this.#prefix}/` : this.#prefix + prefix;
  }
}
