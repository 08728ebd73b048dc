/**
 * The body of a reply that takes more than one step to write.
 *
 * The length of a reply comes first on the wire, so nothing can be sent before all of it is known.
 * The body is collected in pieces that never move: a single buffer would be copied each time it
 * grows, and copying tens of megabytes would stall the server.
 */
import { Writer } from '@tskeeper/protocol';

/**
 * A frame of a megabyte can read the same megabyte of data 60,000 times, and a short one can list a
 * whole tree. A longer reply is refused before all of it is in memory; no client reads replies of
 * nearly this length unless configured to.
 */
export const longReplyBytesMax = 64 * 1024 * 1024;

const pieceBytes = 64 * 1024;
/** A piece is full a little before its end, so that one more name or Stat does not make it grow. */
const roomBytes = 1024;

export class LongReply {
  #pieces: Writer[] = [];
  /** In all pieces except the last. */
  #fullBytes = 0;

  /**
   * Where to continue writing. Get it again after every few values: a full piece is followed by
   * another.
   */
  get writer(): Writer {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.offset < pieceBytes - roomBytes) return last;
    if (last !== undefined) this.#fullBytes += last.offset;
    const next = new Writer(pieceBytes);
    this.#pieces.push(next);
    return next;
  }

  /** Offset in `writer` after which no further value should begin. */
  get end(): number {
    return pieceBytes - roomBytes;
  }

  get bytes(): number {
    return this.#fullBytes + (this.#pieces.at(-1)?.offset ?? 0);
  }

  /** Overwrites the int at the start of the body. */
  patchFirstInt32(value: number): void {
    this.#pieces[0]!.patchInt32(0, value);
  }

  /** Returns the pieces, first to last, and keeps none. */
  take(): Writer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#fullBytes = 0;
    return pieces;
  }
}
