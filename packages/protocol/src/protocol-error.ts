/**
 * Thrown when bytes are not what the protocol says they must be. It is the only thing a decoder throws. The connection that sent
 * the bytes is closed, or the file they came from is named in the message to the operator; the server lives on.
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  /** Byte offset, within the bytes that were being decoded, at which the expectation failed. */
  readonly offset: number;
  /** What should have been there, in words. */
  readonly expected: string;

  constructor(expected: string, offset: number) {
    super(`expected ${expected} at byte ${offset}`);
    this.offset = offset;
    this.expected = expected;
  }
}
