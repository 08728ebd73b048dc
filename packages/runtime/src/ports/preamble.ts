/**
 * The stage before a connection's first frame. A client port reads a few first bytes and asks what
 * they begin: frames, or a four letter word. TLS on a plain port would be one more result.
 */
export type PreambleKind =
  /** Too few bytes to tell. */
  | 'more'
  /** Frames: these bytes belong to the first. */
  | 'frames'
  /** A four letter word, complete with its argument. */
  | 'word';

export interface Preamble {
  /** Never asks for more than this. */
  readonly bytesMax: number;
  /** What the first `count` bytes of a connection begin. */
  classify(first: Buffer, count: number): PreambleKind;
}
