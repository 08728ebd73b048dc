/**
 * Memory for bytes of a stream that have arrived and cannot be handed over yet. It grows with what has arrived, never with what was
 * announced, and is given back as soon as nothing is kept, so that a connection that is idle between messages holds nothing.
 */

/** First piece of memory. Most requests fit. */
const keptBytesMin = 128;
const nothing = Buffer.alloc(0);

export class KeptBytes {
  /** What is kept is [start, end). Ours alone. */
  bytes: Buffer = nothing;
  start = 0;
  end = 0;

  /** How many bytes are kept. */
  get length(): number {
    return this.end - this.start;
  }

  /** Memory held for them. */
  get retainedBytes(): number {
    return this.bytes.length;
  }

  /** Adds a copy of [start, end). */
  keep(chunk: Buffer, start: number, end: number): void {
    const count = end - start;
    if (count === 0) return;
    if (this.end + count > this.bytes.length) this.#makeRoom(count);
    chunk.copy(this.bytes, this.end, start, end);
    this.end += count;
  }

  /** Much more may once have been kept than is left. */
  giveBackSpare(): void {
    const used = this.length;
    if (used === 0) {
      this.release();
    } else if (this.bytes.length > keptBytesMin && used * 4 < this.bytes.length) {
      this.#moveTo(Buffer.allocUnsafeSlow(Math.max(keptBytesMin, used)));
    }
  }

  /** Keeps nothing any more. Whoever still reads the bytes may go on: they are left as they are. */
  release(): void {
    this.bytes = nothing;
    this.start = this.end = 0;
  }

  /** Doubling keeps the copying linear in what arrives, and never holds more than twice that. */
  #makeRoom(count: number): void {
    const used = this.length;
    const needed = used + count;
    this.#moveTo(needed > this.bytes.length ? Buffer.allocUnsafeSlow(Math.max(keptBytesMin, needed, used * 2)) : this.bytes);
  }

  #moveTo(target: Buffer): void {
    const used = this.length;
    this.bytes.copy(target, 0, this.start, this.end);
    this.bytes = target;
    this.start = 0;
    this.end = used;
  }
}
