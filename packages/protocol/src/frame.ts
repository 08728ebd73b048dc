/**
 * Cuts a stream of bytes into frames: an int that says how many bytes follow, then those bytes.
 *
 * A frame that lies whole in the bytes that arrived is handed over where it lies. Only one that arrives in pieces is put together in
 * memory of our own, which grows with what has arrived, never with what was announced, and is given back when the frame is complete;
 * so a connection that is idle between frames holds nothing.
 *
 * A consumer that cannot take more says so by returning false. What is left then waits here, and is counted, until `resume`.
 */
import { ProtocolError } from './protocol-error.ts';
import { Reader } from './reader.ts';

/** Takes one frame without its length prefix. The reader and its bytes are valid during the call only. False means: no more for now. */
export type OnFrame = (reader: Reader) => boolean;

const lengthBytes = 4;
/** First piece of memory for a frame that arrived in part. Most requests fit. */
const keptBytesMin = 128;
const nothing = Buffer.alloc(0);

export class FrameCutter {
  readonly #lengthMax: number;
  readonly #reader: Reader;
  /** Bytes that arrived and were not handed over: [#start, #end). Ours alone. */
  #kept = nothing;
  #start = 0;
  #end = 0;
  #stopped = false;
  #closed = false;

  /**
   * `lengthMax` is jute.maxbuffer: the longest frame body accepted. Many cutters may share one reader, since it is only used while a
   * frame is handed over.
   */
  constructor(lengthMax: number, reader: Reader = new Reader()) {
    this.#lengthMax = lengthMax;
    this.#reader = reader;
  }

  /** Memory held for bytes that have arrived and are not handed over. */
  get retainedBytes(): number {
    return this.#kept.length;
  }

  /** Whether the consumer has said no; until `resume`, whatever arrives is kept. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The announced length of the frame that has begun to arrive; 0 when none has, or not even its length. */
  get announcedLength(): number {
    return this.#end - this.#start < lengthBytes ? 0 : this.#kept.readInt32BE(this.#start);
  }

  /**
   * Takes what arrived and hands over every frame that is complete with it. Returns false when the consumer has said no. Throws a
   * ProtocolError at a length that no frame may have; the stream has no meaning from there on. The bytes are the caller's again when
   * this returns.
   */
  feed(chunk: Buffer, start: number, end: number, onFrame: OnFrame): boolean {
    if (this.#closed) return false;
    if (this.#stopped) {
      this.#keep(chunk, start, end);
      return false;
    }
    const at = this.#end === this.#start ? start : this.#completeKept(chunk, start, end, onFrame);
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
    const kept = this.#kept;
    const end = this.#end;
    let at = this.#start;
    for (;;) {
      const frameEnd = this.#frameEnd(kept, at, end);
      if (frameEnd === -1) break;
      const body = at + lengthBytes;
      // Moved on before the call, so that the consumer finds this cutter in order if it looks.
      at = this.#start = frameEnd;
      if (!onFrame(this.#reader.place(kept, body, frameEnd))) this.#stopped = true;
      if (this.#isHalted()) break;
    }
    if (this.#closed) return false;
    this.#giveBackSpare();
    return !this.#stopped;
  }

  /** Forgets everything; nothing is handed over any more. May be called while a frame is being handed over. */
  close(): void {
    this.#closed = true;
    this.#release();
  }

  #isHalted(): boolean {
    return this.#stopped || this.#closed;
  }

  #halt(chunk: Buffer, at: number, end: number): false {
    if (!this.#closed) this.#keep(chunk, at, end);
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
    this.#keep(chunk, at, end);
    return true;
  }

  /**
   * Adds to the frame that is kept in part just what it lacks, and hands it over when that was enough. Returns where the bytes begin
   * that are not part of it.
   */
  #completeKept(chunk: Buffer, start: number, end: number, onFrame: OnFrame): number {
    let at = start;
    const lengthMissing = lengthBytes - (this.#end - this.#start);
    if (lengthMissing > 0) {
      const taken = Math.min(lengthMissing, end - at);
      this.#keep(chunk, at, at + taken);
      at += taken;
      if (taken < lengthMissing) return at;
    }
    const length = this.#checkedLength(this.#kept, this.#start);
    const missing = length - (this.#end - this.#start - lengthBytes);
    const taken = Math.min(missing, end - at);
    this.#keep(chunk, at, at + taken);
    at += taken;
    if (taken < missing) return at;
    const kept = this.#kept;
    const body = this.#start + lengthBytes;
    this.#release();
    if (!onFrame(this.#reader.place(kept, body, body + length))) this.#stopped = true;
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
    if (length < 0 || length > this.#lengthMax) {
      throw new ProtocolError(`a frame of 0 to ${this.#lengthMax} bytes, not ${length}`, at);
    }
    return length;
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    const count = end - start;
    if (count === 0) return;
    if (this.#end + count > this.#kept.length) this.#makeRoom(count);
    chunk.copy(this.#kept, this.#end, start, end);
    this.#end += count;
  }

  /** Doubling keeps the copying linear in what arrives, and never holds more than twice that. */
  #makeRoom(count: number): void {
    const used = this.#end - this.#start;
    const needed = used + count;
    const target = needed > this.#kept.length ? Buffer.allocUnsafeSlow(Math.max(keptBytesMin, needed, used * 2)) : this.#kept;
    this.#kept.copy(target, 0, this.#start, this.#end);
    this.#kept = target;
    this.#start = 0;
    this.#end = used;
  }

  /** After a stop much more may have been kept than is left. */
  #giveBackSpare(): void {
    const used = this.#end - this.#start;
    if (used === 0) {
      this.#release();
    } else if (this.#kept.length > keptBytesMin && used * 4 < this.#kept.length) {
      const left = Buffer.allocUnsafeSlow(Math.max(keptBytesMin, used));
      this.#kept.copy(left, 0, this.#start, this.#end);
      this.#kept = left;
      this.#start = 0;
      this.#end = used;
    }
  }

  #release(): void {
    this.#kept = nothing;
    this.#start = this.#end = 0;
  }
}
