/**
 * The body of a reply that takes more than one step to write.
 *
 * A reply's length comes first on the wire, so nothing of it can leave before all of it is known. It is gathered here in pieces, which
 * never move: a single buffer would have to be copied each time it is outgrown, and tens of megabytes copied are a stall of their own.
 */
import { Writer } from '@tskeeper/protocol';

const pieceBytes = 64 * 1024;
/** A piece is full a little before its end, so that the name or Stat that fills it need not make it grow. */
const roomBytes = 1024;

export class LongReply {
  #pieces: Writer[] = [];
  /** In all pieces but the last. */
  #fullBytes = 0;

  /** Where to write on. To be asked for anew after every few values: a piece that is full is followed by another. */
  get writer(): Writer {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.offset < pieceBytes - roomBytes) return last;
    if (last !== undefined) this.#fullBytes += last.offset;
    const next = new Writer(pieceBytes);
    this.#pieces.push(next);
    return next;
  }

  /** Where in `writer` nothing further should begin. */
  get end(): number {
    return pieceBytes - roomBytes;
  }

  get bytes(): number {
    return this.#fullBytes + (this.#pieces.at(-1)?.offset ?? 0);
  }

  /** Overwrites the int with which the body begins. */
  patchFirstInt32(value: number): void {
    this.#pieces[0]!.patchInt32(0, value);
  }

  /** Hands over the pieces, first to last, and keeps none. */
  take(): Writer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#fullBytes = 0;
    return pieces;
  }
}
