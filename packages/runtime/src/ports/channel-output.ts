/**
 * The output of one channel. A turn's packets gather in a writer, whose memory goes to the network
 * without a copy, a slice at a time, so that it shows whether the other side reads anything; the
 * output of later turns waits after it.
 *
 * Long bytes that go to several channels are held once: each channel has their position in its own
 * output.
 */
import type { Writer } from '@tskeeper/protocol';
import type { StreamId } from '../network.ts';
import type { SendList } from './send-list.ts';
import type { SharedBytes } from './shared-bytes.ts';
import type { WriterPool } from './writer-pool.ts';

/** Size of one piece for the network. */
const sliceBytes = 256 * 1024;

/** [start, end) of bytes that other channels may hold too. */
class SharedPiece {
  readonly bytes: Buffer;
  readonly start: number;

  constructor(bytes: Buffer, start: number) {
    this.bytes = bytes;
    this.start = start;
  }

  get offset(): number {
    return this.bytes.length;
  }
}

type Piece = Writer | SharedPiece;

export class ChannelOutput {
  readonly #stream: StreamId;
  readonly #pool: WriterPool;
  readonly #shared: SharedBytes;
  #writer: Writer | undefined;
  /** Written before #writer; waits for what is being sent. */
  #queued: Piece[] = [];
  #queuedPieceBytes = 0;
  /**
   * Being sent, one after the other; of the first piece everything before #sentTo has been
   * accepted, and the network has everything before #handedTo.
   */
  #sending: Piece[] = [];
  #sendingAt = 0;
  #sendingBytes = 0;
  #sentTo = 0;
  #handedTo = 0;
  #writePending = false;
  #sharedBytes = 0;

  constructor(stream: StreamId, pool: WriterPool, shared: SharedBytes) {
    this.#stream = stream;
    this.#pool = pool;
    this.#shared = shared;
  }

  writer(): Writer {
    return (this.#writer ??= this.#pool.take());
  }

  /** Adds the bytes from `start` to the end. They must not change. */
  writeShared(bytes: Buffer, start: number): void {
    if (this.#writer !== undefined && this.#writer.offset > 0) {
      this.#queued.push(this.#writer);
      this.#queuedPieceBytes += this.#writer.offset;
      this.#writer = undefined;
    }
    this.#queued.push(new SharedPiece(bytes, start));
    this.#queuedPieceBytes += bytes.length - start;
    this.#sharedBytes += bytes.length - start;
    this.#shared.hold(bytes);
  }

  get writePending(): boolean {
    return this.#writePending;
  }

  /** Bytes written and not accepted by the system. */
  get waitingBytes(): number {
    return this.queuedBytes + this.#sendingBytes;
  }

  /** Of these, the bytes that later turns have written after what is being sent. */
  get queuedBytes(): number {
    return this.#queuedPieceBytes + (this.#writer?.offset ?? 0);
  }

  /** Of the waiting bytes, those that only this channel holds. */
  get ownBytes(): number {
    return this.waitingBytes - this.#sharedBytes;
  }

  /**
   * Adds the next slice to the list, if there is one and the network holds none. Returns whether it
   * did.
   */
  addSlice(list: SendList): boolean {
    if (this.#writePending) return false;
    this.#releaseSent();
    if (this.#sendingAt === this.#sending.length && !this.#startQueued()) return false;
    const piece = this.#sending[this.#sendingAt]!;
    this.#handedTo = Math.min(piece.offset, this.#sentTo + sliceBytes);
    list.add(this.#stream, piece.bytes, this.#sentTo, this.#handedTo);
    return true;
  }

  /**
   * The network has accepted the slice, or holds it; when it releases the slice, this is called
   * again.
   */
  sliceSent(isPending: boolean): void {
    this.#writePending = isPending;
    if (isPending) return;
    const piece = this.#sending[this.#sendingAt];
    const bytes = this.#handedTo - this.#sentTo;
    this.#sendingBytes -= bytes;
    if (piece instanceof SharedPiece) this.#sharedBytes -= bytes;
    this.#sentTo = this.#handedTo;
  }

  /** Returns an empty writer at the end of a turn. */
  releaseEmptyWriter(): void {
    if (!this.#writePending) this.#releaseSent();
    if (this.#writer?.offset !== 0) return;
    this.#pool.put(this.#writer);
    this.#writer = undefined;
  }

  /** None of it will be sent. */
  discard(): void {
    for (const pieces of [this.#sending, this.#queued]) {
      for (let at = pieces === this.#sending ? this.#sendingAt : 0; at < pieces.length; at++) {
        const piece = pieces[at]!;
        if (piece instanceof SharedPiece) this.#shared.release(piece.bytes);
      }
      pieces.length = 0;
    }
    this.#writer = undefined;
    this.#sendingAt = this.#sendingBytes = this.#queuedPieceBytes = this.#sharedBytes = this.#sentTo = this.#handedTo = 0;
    this.#writePending = false;
  }

  /** Everything written is to be sent now. Returns whether there is anything. */
  #startQueued(): boolean {
    if (this.queuedBytes === 0) return false;
    const done = this.#sending;
    done.length = 0;
    if (this.#writer !== undefined && this.#writer.offset > 0) {
      this.#queued.push(this.#writer);
      this.#queuedPieceBytes += this.#writer.offset;
      this.#writer = undefined;
    }
    this.#sendingBytes = this.#queuedPieceBytes;
    this.#sending = this.#queued;
    this.#queued = done;
    this.#queuedPieceBytes = 0;
    this.#startPiece(0);
    return true;
  }

  #startPiece(at: number): void {
    this.#sendingAt = at;
    const piece = this.#sending[at];
    this.#sentTo = this.#handedTo = piece instanceof SharedPiece ? piece.start : 0;
  }

  /** Drops pieces that have been sent completely. */
  #releaseSent(): void {
    const piece = this.#sending[this.#sendingAt];
    if (piece === undefined || this.#sentTo < piece.offset) return;
    if (piece instanceof SharedPiece) this.#shared.release(piece.bytes);
    else this.#pool.put(piece);
    this.#startPiece(this.#sendingAt + 1);
    if (this.#sendingAt < this.#sending.length) return;
    this.#sending.length = 0;
    this.#sendingAt = 0;
  }
}
