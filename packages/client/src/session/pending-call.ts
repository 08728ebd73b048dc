/** A request with its promise, its limits and its trace. */
import type { Writer } from '@tskeeper/protocol';
import type { TimerHandle } from '../clock.ts';
import type { TracedCall } from '../tracing.ts';
import type { Operation } from '../operations/operation.ts';
import { Request } from './request.ts';
import type { RequestTimer } from './request-timer.ts';

export class PendingCall extends Request {
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly traced: TracedCall | undefined;
  /** The timer of the call's own time-out. */
  timeoutTimer: TimerHandle | undefined;
  /** The client's limit, if the call has no time-out of its own. */
  requestTimer: RequestTimer | undefined;
  signal: AbortSignal | undefined;

  constructor(
    operation: Operation<unknown>,
    traced: TracedCall | undefined,
    resolve: (result: unknown) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.operation = operation;
    this.traced = traced;
    this.resolve = resolve;
    this.reject = reject;
  }

  get opCode(): Operation<unknown>['opCode'] {
    return this.operation.opCode;
  }

  write(writer: Writer): void {
    this.operation.write(writer);
  }
}
