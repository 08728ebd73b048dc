/**
 * The requests of the program: each gets a promise, is limited by its time-out and its signal, and
 * settles once: with its answer, with a failure, or because its caller no longer waits.
 *
 * A request whose caller no longer waits stays in the machine: a server that has it will answer,
 * and answers are matched by their order.
 */
import { ErrorCode, type Millis, operationOf, type Reader, type Zxid } from '@tskeeper/protocol';
import { timerMsMax } from '../clock.ts';
import { type Outcome, RequestFailure } from '../keeper-error.ts';
import type { TracedCall } from '../tracing.ts';
import type { WatchTable } from '../watches/watch-table.ts';
import type { MachineDriver } from './machine-driver.ts';
import type { Operation } from '../operations/operation.ts';
import { PendingCall } from './pending-call.ts';
import type { RequestLimits } from './request-limits.ts';
import type { RequestTimeLimit } from './request-time-limit.ts';
import type { SessionEnvironment } from './session-environment.ts';
import type { CallOutput } from './session-output.ts';
import type { SessionTracer } from './session-tracer.ts';

export class PendingCalls implements CallOutput<PendingCall> {
  readonly #environment: SessionEnvironment;
  readonly #driver: MachineDriver;
  readonly #watches: WatchTable;
  readonly #timeLimit: RequestTimeLimit;
  readonly #trace: SessionTracer;
  readonly #callsBySignal = new Map<AbortSignal, { readonly calls: Set<PendingCall>; readonly onAbort: () => void }>();

  constructor(
    environment: SessionEnvironment,
    driver: MachineDriver,
    watches: WatchTable,
    timeLimit: RequestTimeLimit,
    trace: SessionTracer,
  ) {
    this.#environment = environment;
    this.#driver = driver;
    this.#watches = watches;
    this.#timeLimit = timeLimit;
    this.#trace = trace;
  }

  /**
   * Makes a request. Rejects with a RequestFailure, with the signal's reason, or with what the
   * operation throws while it writes.
   */
  perform<Result>(operation: Operation<Result>, { signal, timeoutMs, traced }: RequestLimits): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const call = new PendingCall(operation, traced, resolve as (result: unknown) => void, reject);
      this.#driver.machine.submit(call);
      this.#environment.processHold?.hold();
      if (operation.watches !== undefined) this.#watches.addPending(operation.watches);
      if (signal !== undefined) this.#listenToSignal(call, signal);
      this.#startTimers(call, timeoutMs);
      this.#driver.scheduleFlush();
    });
  }

  // --- Results

  answered(call: PendingCall, err: number, reader: Reader, zxid: Zxid): void {
    if (call.traced !== undefined) call.traced.zxid = BigInt(zxid);
    let result: unknown;
    try {
      if (err === ErrorCode.Ok) {
        result = call.operation.read(reader);
      } else {
        const answer = call.operation.readError?.(err);
        if (answer === undefined) throw new RequestFailure(err, 'refused');
        ({ result } = answer);
      }
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error;
      this.#finish(call);
      call.reject(error);
      return;
    }
    this.#finish(call);
    call.resolve(result);
  }

  failed(call: PendingCall, refusal: RequestFailure): void {
    if (call.isCancelled) return;
    this.#finish(call);
    call.reject(refusal);
  }

  /** Called once for each call, whether it is answered, failed or cancelled. */
  #finish(call: PendingCall): void {
    if (call.operation.watches !== undefined) this.#watches.removePending(call.operation.watches);
    if (call.timeoutTimer !== undefined) this.#environment.clock.cancel(call.timeoutTimer);
    call.timeoutTimer = undefined;
    call.requestTimer?.cancel();
    call.requestTimer = undefined;
    this.#environment.processHold?.release();
    if (call.signal !== undefined) this.#unlistenToSignal(call, call.signal);
    if (call.traced !== undefined) this.#recordTrace(call, call.traced);
  }

  /** Records what is known of the request of a traced call. */
  #recordTrace({ xid }: PendingCall, traced: TracedCall): void {
    traced.xid = xid === 0 ? undefined : xid;
    traced.server = xid === 0 ? undefined : this.#trace.server;
  }

  // --- Limits

  /**
   * Adds one listener per signal, however many calls share it: Node warns of a leak if a signal has
   * many listeners.
   */
  #listenToSignal(call: PendingCall, signal: AbortSignal): void {
    call.signal = signal;
    const known = this.#callsBySignal.get(signal);
    if (known !== undefined) {
      known.calls.add(call);
      return;
    }
    const calls = new Set([call]);
    const onAbort = () => {
      this.#callsBySignal.delete(signal);
      for (const each of calls) {
        this.#driver.machine.cancel(each);
        each.signal = undefined;
        this.#finish(each);
        each.reject(signal.reason);
      }
    };
    this.#callsBySignal.set(signal, { calls, onAbort });
    signal.addEventListener('abort', onAbort, { once: true });
  }

  #unlistenToSignal(call: PendingCall, signal: AbortSignal): void {
    call.signal = undefined;
    const known = this.#callsBySignal.get(signal);
    if (known === undefined || !known.calls.delete(call) || known.calls.size > 0) return;
    this.#callsBySignal.delete(signal);
    signal.removeEventListener('abort', known.onAbort);
  }

  /** Limits the call by its own time-out, or else by the client's. */
  #startTimers(call: PendingCall, timeoutMs: Millis | undefined): void {
    if (timeoutMs !== undefined) {
      if (timeoutMs <= timerMsMax)
        call.timeoutTimer = this.#environment.clock.after(timeoutMs, () => void this.#onTimeout(call, timeoutMs));
      return;
    }
    if (!this.#timeLimit.isSet) return;
    call.requestTimer = this.#timeLimit.start(
      () => call.xid !== 0,
      (limitMs) => {
        if (this.#onTimeout(call, limitMs) === 'unknown') this.#timeLimit.abandonServer(operationOf(call.opCode)?.name ?? 'a request');
      },
    );
  }

  /** The caller no longer waits. Returns what is known of the request. */
  #onTimeout(call: PendingCall, limitMs: Millis): Outcome {
    call.timeoutTimer = call.requestTimer = undefined;
    const outcome = this.#driver.machine.cancel(call) ? 'notSent' : 'unknown';
    this.#finish(call);
    call.reject(new RequestFailure(ErrorCode.RequestTimeout, outcome, `no answer within ${limitMs} ms`));
    return outcome;
  }
}
