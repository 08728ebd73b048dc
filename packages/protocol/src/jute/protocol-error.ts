/**
 * Thrown when bytes violate the protocol. Decoders throw nothing else. The connection that sent the
 * bytes is closed, or the message to the operator names the file that contains them; the server
 * continues.
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  /** Byte offset of the failed expectation within the bytes being decoded. */
  readonly offset: number;
  /** What was expected there, in words. */
  readonly expected: string;

  constructor(expected: string, offset: number) {
    super(`expected ${expected} at byte ${offset}`);
    this.offset = offset;
    this.expected = expected;
  }
}
