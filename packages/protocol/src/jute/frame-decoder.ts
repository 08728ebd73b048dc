/**
 * Cuts a stream of bytes into frames: an int with the number of bytes that follow, then those
 * bytes.
 *
 * A frame that is complete in the received bytes is delivered in place. Only a frame that arrives
 * in pieces is assembled in memory of our own (pending-bytes.ts), which is released when the frame
 * is complete.
 *
 * A consumer that cannot take more returns false. The remaining bytes then wait here, and are
 * counted, until `resume`.
 */
import { PendingBytes } from './pending-bytes.ts';
import { ProtocolError } from './protocol-error.ts';
import { Reader } from './reader.ts';

/**
 * Takes one frame without its length prefix. The reader and its bytes are valid during the call
 * only. False means: no more for now.
 */
export type OnFrame = (reader: Reader) => boolean;

const lengthBytes = 4;

export class FrameDecoder {
  readonly #lengthMin: number;
  readonly #lengthMax: number;
  readonly #reader: Reader;
  /** Bytes that have arrived and are not delivered. */
  readonly #pending = new PendingBytes();
  #paused = false;
  #closed = false;

  /**
   * `lengthMax` is the longest frame body accepted, on the client port jute.maxbuffer, and
   * `lengthMin` the shortest. Many cutters may share one reader, since it is only used while a
   * frame is delivered.
   */
  constructor(lengthMax: number, reader: Reader = new Reader(), lengthMin = 0) {
    this.#lengthMin = lengthMin;
    this.#lengthMax = lengthMax;
    this.#reader = reader;
  }

  /** Memory held for bytes that have arrived and are not delivered. */
  get retainedBytes(): number {
    return this.#pending.retainedBytes;
  }

  /** Whether the consumer has returned false; until `resume`, all input is kept. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /**
   * The announced length of the frame that has begun to arrive; 0 if there is none, or its length
   * is incomplete.
   */
  get announcedLength(): number {
    return this.#pending.length < lengthBytes ? 0 : this.#pending.bytes.readInt32BE(this.#pending.start);
  }

  /**
   * The first complete frame that waits here, if any. The reader is valid until bytes arrive or
   * frames are delivered.
   */
  peek(): Reader | undefined {
    const { bytes, start, end } = this.#pending;
    const frameEnd = start + lengthBytes + this.announcedLength;
    return this.announcedLength <= 0 || frameEnd > end ? undefined : this.#reader.wrap(bytes, start + lengthBytes, frameEnd);
  }

  /**
   * Takes received bytes and delivers every complete frame. Returns false if the consumer has
   * returned false. Throws a ProtocolError at an invalid length; the stream cannot be decoded after
   * it. The caller may reuse the bytes after the call.
   */
  feed(chunk: Buffer, start: number, end: number, onFrame: OnFrame): boolean {
    if (this.#closed) return false;
    if (this.#paused) {
      this.#pending.append(chunk, start, end);
      return false;
    }
    const at = this.#pending.length === 0 ? start : this.#completePending(chunk, start, end, onFrame);
    return this.#isHalted() ? this.#halt(chunk, at, end) : this.#decode(chunk, at, end, onFrame);
  }

  /** Stops before the next frame, as a consumer does by returning false. */
  pause(): void {
    this.#paused = true;
  }

  /**
   * Delivers the bytes kept since the consumer returned false. Returns false if it does so again.
   */
  resume(onFrame: OnFrame): boolean {
    if (this.#closed) return false;
    this.#paused = false;
    // Read before the calls: `close` during one releases them.
    const { bytes, end } = this.#pending;
    let at = this.#pending.start;
    for (;;) {
      const frameEnd = this.#frameEnd(bytes, at, end);
      if (frameEnd === -1) break;
      const body = at + lengthBytes;
      // Advanced before the call, so that the consumer may use this cutter.
      at = this.#pending.start = frameEnd;
      if (!onFrame(this.#reader.wrap(bytes, body, frameEnd))) this.#paused = true;
      if (this.#isHalted()) break;
    }
    if (this.#closed) return false;
    this.#pending.shrink();
    return !this.#paused;
  }

  /** Drops everything; no further frame is delivered. May be called while a frame is delivered. */
  close(): void {
    this.#closed = true;
    this.#pending.release();
  }

  #isHalted(): boolean {
    return this.#paused || this.#closed;
  }

  #halt(chunk: Buffer, at: number, end: number): false {
    if (!this.#closed) this.#pending.append(chunk, at, end);
    return false;
  }

  /** Delivers the frames of [at, end) in place, and keeps the bytes after the last. */
  #decode(chunk: Buffer, start: number, end: number, onFrame: OnFrame): boolean {
    let at = start;
    for (;;) {
      const frameEnd = this.#frameEnd(chunk, at, end);
      if (frameEnd === -1) break;
      const body = at + lengthBytes;
      at = frameEnd;
      if (!onFrame(this.#reader.wrap(chunk, body, frameEnd))) this.#paused = true;
      if (this.#isHalted()) return this.#halt(chunk, at, end);
    }
    this.#pending.append(chunk, at, end);
    return true;
  }

  /**
   * Adds to the incomplete frame only the bytes that it lacks, and delivers it if it is complete.
   * Returns the offset of the first byte that does not belong to it.
   */
  #completePending(chunk: Buffer, start: number, end: number, onFrame: OnFrame): number {
    let at = start;
    const lengthMissing = lengthBytes - this.#pending.length;
    if (lengthMissing > 0) {
      const taken = Math.min(lengthMissing, end - at);
      this.#pending.append(chunk, at, at + taken);
      at += taken;
      if (taken < lengthMissing) return at;
    }
    const length = this.#checkedLength(this.#pending.bytes, this.#pending.start);
    const missing = length - (this.#pending.length - lengthBytes);
    const taken = Math.min(missing, end - at);
    this.#pending.append(chunk, at, at + taken);
    at += taken;
    if (taken < missing) return at;
    const { bytes, start: frameStart } = this.#pending;
    const body = frameStart + lengthBytes;
    this.#pending.release();
    if (!onFrame(this.#reader.wrap(bytes, body, body + length))) this.#paused = true;
    return at;
  }

  /** The end of the frame that begins at `at`, or -1 if it is incomplete. */
  #frameEnd(bytes: Buffer, at: number, end: number): number {
    if (end - at < lengthBytes) return -1;
    const frameEnd = at + lengthBytes + this.#checkedLength(bytes, at);
    return frameEnd > end ? -1 : frameEnd;
  }

  #checkedLength(bytes: Buffer, at: number): number {
    const length = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    if (length < this.#lengthMin || length > this.#lengthMax) {
      throw new ProtocolError(`a frame of ${this.#lengthMin} to ${this.#lengthMax} bytes, not ${length}`, at);
    }
    return length;
  }
}
