/**
 * Frames of the client protocol: a length of four bytes, then that many bytes.
 */

/** A frame: its length, then the body. */
export function frameOf(body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/** Splits a byte stream into frames, and returns them without their lengths. */
export class FrameCutter {
  #held: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Buffer[] {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const frames: Buffer[] = [];
    while (this.#held.length >= 4) {
      const length = this.#held.readInt32BE(0);
      if (length < 0 || this.#held.length < 4 + length) break;
      frames.push(this.#held.subarray(4, 4 + length));
      this.#held = this.#held.subarray(4 + length);
    }
    return frames;
  }

  /** What begins with a negative length, after which no frame can be found; undefined if nothing does. */
  get unreadable(): Buffer | undefined {
    return this.#held.length >= 4 && this.#held.readInt32BE(0) < 0 ? this.#held : undefined;
  }
}
