/** One kind of request together with what its answer means to the caller. */
import type { OpCode, Reader, Writer } from '@tskeeper/protocol';
import type { WatchesToCome } from '../watches/watch-table.ts';

export interface Operation<Result> {
  readonly opCode: OpCode;
  /** What `read` and `readError` may note down in the watch table. */
  readonly watches?: WatchesToCome | undefined;
  /** Writes the record behind the header. Called once. */
  write(writer: Writer): void;
  /**
   * Reads the record behind the header, in the order of the stream, so that what it notes down (a watch) is known before the next event is
   * looked at. Not called when nobody waits any more. Throws a ProtocolError when it cannot be read, a Refusal when it says no.
   */
  read(reader: Reader): Result;
  /** Whether an error is an answer: `exists` knows one. Throws nothing. */
  readError?(err: number): { readonly result: Result } | undefined;
}

/** What every call of the client takes. */
export interface CallOptions {
  /**
   * Rejects the call at once with the signal's reason. A request that has been sent is not taken back by that: the server may still carry
   * it out, as its answer is still awaited, and then ignored.
   */
  readonly signal?: AbortSignal | undefined;
  /** Rejects the call after so many milliseconds with RequestTimeout; the same holds as for `signal`. Default: `requestTimeoutMs` of the client. */
  readonly timeoutMs?: number | undefined;
}
