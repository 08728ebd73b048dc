/** The options that every call takes. */
import type { RetryPolicy } from './retry-policy.ts';

/** The options of every call of a client. */
export interface CallOptions {
  /**
   * Rejects the call at once with the signal's reason. This does not cancel a request that was
   * sent: the server may still apply it, and the client waits for its answer and ignores it.
   * Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Rejects the call after this many milliseconds with RequestTimeout; a request that was sent is
   * not cancelled, as with `signal`. Default: none; then `requestTimeoutMs` of the client, if set,
   * limits each request of the call. `Infinity`: no limit at all.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether the call is repeated if it fails for a temporary cause (`retryable`), and how often;
   * `true` for the defaults. Default: `retry` of the client, or no retries. Only safe repetitions
   * happen: of any call that was certainly not applied (`outcome` is `notSent` or `refused`), and,
   * after a lost answer, of a call that changes nothing. A write without an answer is repeated only
   * if it is `idempotent`. `timeoutMs` and `signal` apply to all attempts together, so that
   * time-out is not repeated; one of `requestTimeoutMs` is, like a ConnectionLoss.
   */
  readonly retry?: RetryPolicy | boolean | undefined;
}
