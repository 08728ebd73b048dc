/** A kind of request, and how to read its answer. */
import type { OpCode, Reader, Writer } from '@tskeeper/protocol';
import type { PendingWatches } from '../watches/watch-table.ts';

export interface Operation<Result> {
  readonly opCode: OpCode;
  /** The watches that `read` and `readError` may register. */
  readonly watches?: PendingWatches | undefined;
  /** Writes the record after the header. Called once. */
  write(writer: Writer): void;
  /**
   * Reads the record after the header, in the order of the stream, so that a watch that it
   * registers is known before the next event is read. Not called if the caller no longer waits.
   * Throws a ProtocolError if the record cannot be read, and a RequestFailure if it contains an
   * error.
   */
  read(reader: Reader): Result;
  /** Whether an error is a valid answer, as for `exists`. Does not throw. */
  readError?(err: number): { readonly result: Result } | undefined;
}
