/**
 * Cuts a stream of bytes into frames: an int that says how many bytes follow, then those bytes.
 *
 * A frame that lies whole in the bytes that arrived is handed over where it lies. Only one that arrives in pieces is put together in
 * memory of our own (kept-bytes.ts), which is given back when the frame is complete.
 *
 * A consumer that cannot take more says so by returning false. What is left then waits here, and is counted, until `resume`.
 */
import { KeptBytes } from './kept-bytes.ts';
import { ProtocolError } from './protocol-error.ts';
import { Reader } from './reader.ts';

/** Takes one frame without its length prefix. The reader and its bytes are valid during the call only. False means: no more for now. */
export type OnFrame = (reader: Reader) => boolean;

const lengthBytes = 4;

export class FrameCutter {
  readonly #lengthMin: number;
  readonly #lengthMax: number;
  readonly #reader: Reader;
  /** Bytes that arrived and were not handed over. */
  readonly #kept = new KeptBytes();
  #stopped = false;
  #closed = false;

  /**
   * `lengthMax` is the longest frame body accepted, on the client port jute.maxbuffer, and `lengthMin` the shortest. Many cutters may
   * share one reader, since it is only used while a frame is handed over.
   */
  constructor(lengthMax: number, reader: Reader = new Reader(), lengthMin = 0) {
    this.#lengthMin = lengthMin;
    this.#lengthMax = lengthMax;
    this.#reader = reader;
  }

  /** Memory held for bytes that have arrived and are not handed over. */
  get retainedBytes(): number {
    return this.#kept.retainedBytes;
  }

  /** Whether the consumer has said no; until `resume`, whatever arrives is kept. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The announced length of the frame that has begun to arrive; 0 when none has, or not even its length. */
  get announcedLength(): number {
    return this.#kept.length < lengthBytes ? 0 : this.#kept.bytes.readInt32BE(this.#kept.start);
  }

  /** The first frame that waits here as a whole, if there is one. The reader is valid until bytes arrive or frames are handed over. */
  peek(): Reader | undefined {
    const { bytes, start, end } = this.#kept;
    const frameEnd = start + lengthBytes + this.announcedLength;
    return this.announcedLength <= 0 || frameEnd > end ? undefined : this.#reader.place(bytes, start + lengthBytes, frameEnd);
  }

  /**
   * Takes what arrived and hands over every frame that is complete with it. Returns false when the consumer has said no. Throws a
   * ProtocolError at a length that no frame may have; the stream has no meaning from there on. The bytes are the caller's again when
   * this returns.
   */
  feed(chunk: Buffer, start: number, end: number, onFrame: OnFrame): boolean {
    if (this.#closed) return false;
    if (this.#stopped) {
      this.#kept.keep(chunk, start, end);
      return false;
    }
    const at = this.#kept.length === 0 ? start : this.#completeKept(chunk, start, end, onFrame);
    return this.#isHalted() ? this.#halt(chunk, at, end) : this.#cut(chunk, at, end, onFrame);
  }

  /** Says no before the next frame, as a consumer can only do behind one. */
  stop(): void {
    this.#stopped = true;
  }

  /** Goes on with what was kept since the consumer said no. Returns false when it says no again. */
  resume(onFrame: OnFrame): boolean {
    if (this.#closed) return false;
    this.#stopped = false;
    // Taken hold of before the calls: `close` during one lets go of them.
    const { bytes, end } = this.#kept;
    let at = this.#kept.start;
    for (;;) {
      const frameEnd = this.#frameEnd(bytes, at, end);
      if (frameEnd === -1) break;
      const body = at + lengthBytes;
      // Moved on before the call, so that the consumer finds this cutter in order if it looks.
      at = this.#kept.start = frameEnd;
      if (!onFrame(this.#reader.place(bytes, body, frameEnd))) this.#stopped = true;
      if (this.#isHalted()) break;
    }
    if (this.#closed) return false;
    this.#kept.giveBackSpare();
    return !this.#stopped;
  }

  /** Forgets everything; nothing is handed over any more. May be called while a frame is being handed over. */
  close(): void {
    this.#closed = true;
    this.#kept.release();
  }

  #isHalted(): boolean {
    return this.#stopped || this.#closed;
  }

  #halt(chunk: Buffer, at: number, end: number): false {
    if (!this.#closed) this.#kept.keep(chunk, at, end);
    return false;
  }

  /** Hands over the frames of [at, end) where they lie, and keeps what is behind the last. */
  #cut(chunk: Buffer, start: number, end: number, onFrame: OnFrame): boolean {
    let at = start;
    for (;;) {
      const frameEnd = this.#frameEnd(chunk, at, end);
      if (frameEnd === -1) break;
      const body = at + lengthBytes;
      at = frameEnd;
      if (!onFrame(this.#reader.place(chunk, body, frameEnd))) this.#stopped = true;
      if (this.#isHalted()) return this.#halt(chunk, at, end);
    }
    this.#kept.keep(chunk, at, end);
    return true;
  }

  /**
   * Adds to the frame that is kept in part just what it lacks, and hands it over when that was enough. Returns where the bytes begin
   * that are not part of it.
   */
  #completeKept(chunk: Buffer, start: number, end: number, onFrame: OnFrame): number {
    let at = start;
    const lengthMissing = lengthBytes - this.#kept.length;
    if (lengthMissing > 0) {
      const taken = Math.min(lengthMissing, end - at);
      this.#kept.keep(chunk, at, at + taken);
      at += taken;
      if (taken < lengthMissing) return at;
    }
    const length = this.#checkedLength(this.#kept.bytes, this.#kept.start);
    const missing = length - (this.#kept.length - lengthBytes);
    const taken = Math.min(missing, end - at);
    this.#kept.keep(chunk, at, at + taken);
    at += taken;
    if (taken < missing) return at;
    const { bytes, start: frameStart } = this.#kept;
    const body = frameStart + lengthBytes;
    this.#kept.release();
    if (!onFrame(this.#reader.place(bytes, body, body + length))) this.#stopped = true;
    return at;
  }

  /** One past the last byte of the frame that begins at `at`, or -1 while it is not there as a whole. */
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
