/**
 * The bytes of a file of the virtual disk. Most of a log is padding and most copies never change,
 * so zeros at the end are not stored, and copies share what is.
 */

const nothing = Buffer.alloc(0);

/**
 * Bytes of a file: a stored prefix, and zeros up to `size`. Copies share the prefix until one of
 * them changes.
 */
export class FileContent {
  size: number;
  #stored: Buffer;
  #used: number;
  #shared: boolean;

  constructor(stored: Buffer = nothing, used = 0, size = 0, shared = true) {
    this.#stored = stored;
    this.#used = used;
    this.size = size;
    this.#shared = shared;
  }

  copy(): FileContent {
    this.#shared = true;
    return new FileContent(this.#stored, this.#used, this.size);
  }

  #makeOwn(capacity: number): void {
    if (!this.#shared && capacity <= this.#stored.length) return;
    const grown = Buffer.alloc(Math.max(capacity, capacity > this.#stored.length ? this.#stored.length * 2 : this.#stored.length));
    this.#stored.copy(grown, 0, 0, this.#used);
    this.#stored = grown;
    this.#shared = false;
  }

  write(position: number, bytes: Uint8Array, start: number, end: number): void {
    const to = position + end - start;
    this.#makeOwn(Math.max(to, this.#used));
    // Bytes between the old end of the prefix and the new write may still hold data from before a
    // truncation.
    if (position > this.#used) this.#stored.fill(0, this.#used, position);
    this.#stored.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), position);
    this.#used = Math.max(this.#used, to);
    this.size = Math.max(this.size, to);
  }

  extend(size: number): void {
    this.size = Math.max(this.size, size);
  }

  truncate(size: number): void {
    this.size = size;
    this.#used = Math.min(this.#used, size);
  }

  read(position: number, length: number): Buffer {
    const count = Math.max(0, Math.min(length, this.size - position));
    const bytes = Buffer.alloc(count);
    if (position < this.#used) this.#stored.copy(bytes, 0, position, Math.min(this.#used, position + count));
    return bytes;
  }

  /**
   * Of the stored prefix without its trailing zeros. Unchanged copies share the result as they
   * share the bytes.
   */
  hash(hash: (bytes: Uint8Array) => number): number {
    const known = this.#shared ? knownHashes.get(this.#stored) : undefined;
    if (known !== undefined && known.used === this.#used && known.hash === hash) return known.value;
    let end = this.#used;
    while (end > 0 && this.#stored[end - 1] === 0) end--;
    const value = hash(this.#stored.subarray(0, end));
    if (this.#shared) knownHashes.set(this.#stored, { used: this.#used, hash, value });
    return value;
  }
}

const knownHashes = new WeakMap<Buffer, { used: number; hash: (bytes: Uint8Array) => number; value: number }>();
