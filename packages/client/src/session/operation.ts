/** One kind of request together with what its answer means to the caller. */
import type { OpCode, Reader, Writer } from '@tskeeper/protocol';
import type { RetryPolicy } from '../calls/retry-policy.ts';
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
   * it out, as its answer is still awaited, and then ignored. Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Rejects the call after so many milliseconds with RequestTimeout; the same holds as for `signal`. Default: none; then `requestTimeoutMs` of the client, if it has one, bounds each of the
   * call's requests. `Infinity`: neither.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether the call is made again when it fails for a cause that may pass (`retryable`), and how often; `true` for the defaults. Default:
   * `retry` of the client, and without that not at all. Only what is safe is repeated: any call that was certainly not carried out
   * (`outcome` is `notSent` or `refused`), and, when no answer came, a call that changes nothing. A write without an answer is not repeated, unless
   * it is `idempotent`. `timeoutMs` and `signal` are for all attempts together, so that time-out is
   * not repeated; one of `requestTimeoutMs` is, as a ConnectionLoss.
   */
  readonly retry?: RetryPolicy | boolean | undefined;
}
