/**
 * Memory for bytes of a stream that have arrived and cannot be delivered yet. It grows with the
 * bytes received, never with an announced length, and is released as soon as nothing is kept, so
 * that a connection that is idle between messages holds none.
 */

/** Size of the first allocation. Most requests fit. */
const capacityMin = 128;
const nothing = Buffer.alloc(0);

export class PendingBytes {
  /** The kept bytes are [start, end) of this buffer, which is not shared. */
  bytes: Buffer = nothing;
  start = 0;
  end = 0;

  /** Number of bytes kept. */
  get length(): number {
    return this.end - this.start;
  }

  /** Memory held for them. */
  get retainedBytes(): number {
    return this.bytes.length;
  }

  /** Adds a copy of [start, end). */
  append(chunk: Buffer, start: number, end: number): void {
    const count = end - start;
    if (count === 0) return;
    if (this.end + count > this.bytes.length) this.#makeRoom(count);
    chunk.copy(this.bytes, this.end, start, end);
    this.end += count;
  }

  /** Releases memory if much more was kept before. */
  shrink(): void {
    const used = this.length;
    if (used === 0) {
      this.release();
    } else if (this.bytes.length > capacityMin && used * 4 < this.bytes.length) {
      this.#moveTo(Buffer.allocUnsafeSlow(Math.max(capacityMin, used)));
    }
  }

  /** Drops all bytes. The old buffer is not changed, so readers of it may continue. */
  release(): void {
    this.bytes = nothing;
    this.start = this.end = 0;
  }

  /** Doubling keeps the copying linear in the input, and never holds more than twice the bytes. */
  #makeRoom(count: number): void {
    const used = this.length;
    const needed = used + count;
    this.#moveTo(needed > this.bytes.length ? Buffer.allocUnsafeSlow(Math.max(capacityMin, needed, used * 2)) : this.bytes);
  }

  #moveTo(target: Buffer): void {
    const used = this.length;
    this.bytes.copy(target, 0, this.start, this.end);
    this.bytes = target;
    this.start = 0;
    this.end = used;
  }
}
