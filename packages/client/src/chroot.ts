/**
 * A view of the tree from some znode on. It exists in the client alone: paths are lengthened on their way to the server and shortened on
 * their way back, and whoever stands inside sees nothing but paths that begin at its own root.
 */
export class Chroot {
  /** Empty for none, else a path without an end slash. */
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The path the server knows. */
  outer(path: string): string {
    if (this.#prefix === '') return path;
    return path === '/' ? this.#prefix : this.#prefix + path;
  }

  /** The path the user knows. One that lies outside is passed through, as ZooKeeper's client does. */
  inner(path: string): string {
    const prefix = this.#prefix;
    if (prefix === '' || !path.startsWith(prefix)) return path;
    if (path.length === prefix.length) return '/';
    // `/app` is no prefix of the path `/apple`.
    return path.charCodeAt(prefix.length) === 0x2f ? path.slice(prefix.length) : path;
  }

  /** For operations that match the beginning of texts, not paths: nothing outside may match. */
  outerPrefix(prefix: string): string {
    if (this.#prefix === '') return prefix;
    return prefix === '' ? `${this.#prefix}/` : this.#prefix + prefix;
  }
}
