/** When the caller of a request stops waiting for its answer, and which call the request is for. */
import type { TracedCall } from '../tracing.ts';

export interface RequestLimits {
  /** The caller stops waiting when it fires. */
  readonly signal?: AbortSignal | undefined;
  /** undefined: the client's `requestTimeoutMs`, if any, applies. */
  readonly timeoutMs?: number | undefined;
  /** The call that the request belongs to, for the tracer; undefined: no tracer listens. */
  readonly traced?: TracedCall | undefined;
}
