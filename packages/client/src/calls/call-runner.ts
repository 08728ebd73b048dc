/**
 * Makes the calls of a client: within their limits, with retries where they are enabled and safe,
 * and turns failures into errors.
 */
import { ErrorCode, type Reader } from '@tskeeper/protocol';
import { DataFormatError, DataFormatFailure } from '../text-and-json.ts';
import { KeeperError, RequestFailure } from '../keeper-error.ts';
import { syncOperation } from '../operations/single.ts';
import type { Operation } from '../operations/operation.ts';
import type { RequestLimits } from '../session/request-limits.ts';
import type { Session } from '../session/session.ts';
import { traceFailure, traceSuccess, type TracedCall, newTracedCall } from '../tracing.ts';
import { CallDeadline } from './call-deadline.ts';
import type { CallOptions } from './call-options.ts';
import { stepFailure, Retries } from './retries.ts';
import { resolveRetryPolicy, type FullRetryPolicy } from './retry-policy.ts';

/** Options that apply to all calls of a client unless a call overrides them. */
export interface CallDefaults {
  readonly retry: FullRetryPolicy | undefined;
}

/** Calls about the ensemble, which ignore the chroot. */
const operationsWithoutChroot: ReadonlySet<string> = new Set(['getConfig', 'reconfig', 'transferLeader', 'shedConnections']);

export class CallRunner {
  readonly #session: Session;
  readonly #chroot: string;
  readonly #defaults: CallDefaults;

  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    this.#session = session;
    this.#chroot = chroot;
    this.#defaults = defaults;
  }

  /**
   * `make` may throw a RequestFailure; then nothing is sent. `isRepeatable`: the call changes
   * nothing, so it may be repeated even without an answer.
   */
  call<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    make: () => Operation<Result>,
    isRepeatable = false,
  ): Promise<Result> {
    return this.runWithRetries(method, path, options, isRepeatable, (limits) => this.#session.calls.perform(make(), limits));
  }

  /** A call of several steps, within one time-out and one signal. */
  runCompound<Result>(
    method: string,
    path: string,
    options: CallOptions,
    work: (deadline: CallDeadline) => Promise<Result>,
  ): Promise<Result> {
    const deadline = new CallDeadline(this.#session, requestLimitsOf(options));
    return this.runSteps(method, path, () => work(deadline));
  }

  /** Reports the failure of a step as a failure of the whole call. */
  runSteps<Result>(method: string, path: string, work: () => Promise<Result>): Promise<Result> {
    const { tracer } = this.#session;
    if (!tracer.tracesCalls) return this.#runStepsTraced(method, path, work, undefined);
    const traced = this.#startTrace(method, path, true);
    return tracer.run(traced, () => this.#runStepsTraced(method, path, work, traced));
  }

  async #runStepsTraced<Result>(
    method: string,
    path: string,
    work: () => Promise<Result>,
    traced: TracedCall | undefined,
  ): Promise<Result> {
    try {
      const result = await work();
      if (traced !== undefined) traceSuccess(this.#session.tracer, traced, result);
      return result;
    } catch (error) {
      const failure = toCallError(method, path, error);
      if (traced !== undefined) traceFailure(this.#session.tracer, traced, failure);
      throw failure;
    }
  }

  /**
   * A linearizable read. The sync and the read are sent together on one connection, and are lost
   * together. A server answers a session in order, so when the read is answered the result of the
   * sync is known. The call awaits the promise of the read itself, as directly as `call` does, so
   * that its answer keeps its order relative to events.
   */
  readAfterSync<Result>(method: string, path: string | undefined, options: CallOptions, make: () => Operation<Result>): Promise<Result> {
    let synced: Promise<void> | undefined;
    const sendBoth = (limits: RequestLimits): Promise<Result> => {
      synced = undefined;
      const operation = make();
      const sync = syncOperation('/');
      let isSynced = false;
      const readSyncReply = (reader: Reader) => {
        sync.read(reader);
        isSynced = true;
      };
      synced = this.#session.calls.perform({ ...sync, read: readSyncReply }, limits);
      // The reason is needed only if the read fails; see below.
      synced.catch(() => undefined);
      const read: Operation<Result> = {
        opCode: operation.opCode,
        watches: operation.watches,
        write: (writer) => operation.write(writer),
        read: (reader) => {
          if (!isSynced) throw new RequestFailure(ErrorCode.RuntimeInconsistency, 'refused', 'the sync before this read was rejected');
          return operation.read(reader);
        },
        readError: (err) => (isSynced ? operation.readError?.(err) : undefined),
      };
      return this.#session.calls.perform(read, limits);
    };
    // If the sync has failed, report its reason.
    const syncErrorOr = async (failure: unknown): Promise<unknown> => {
      try {
        await synced;
        return failure;
      } catch (why) {
        return why;
      }
    };
    return this.runWithRetries(method, path, options, true, sendBoth, syncErrorOr);
  }

  /**
   * Turns a RequestFailure into a KeeperError. The error is created here, after the await, because
   * here its stack shows the caller; to record the stack of each call in case it fails would take
   * longer than the call.
   */
  runWithRetries<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    isRepeatable: boolean,
    work: (limits: RequestLimits) => Promise<Result>,
    reasonOf?: (error: unknown) => Promise<unknown>,
  ): Promise<Result> {
    const { tracer } = this.#session;
    if (!tracer.tracesCalls) return this.#runAttempts(method, path, options, isRepeatable, work, reasonOf, undefined);
    const traced = this.#startTrace(method, path, false);
    return tracer.run(traced, () => this.#runAttempts(method, path, options, isRepeatable, work, reasonOf, traced));
  }

  async #runAttempts<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    isRepeatable: boolean,
    work: (limits: RequestLimits) => Promise<Result>,
    reasonOf: ((error: unknown) => Promise<unknown>) | undefined,
    traced: TracedCall | undefined,
  ): Promise<Result> {
    const { tracer } = this.#session;
    try {
      const limits = requestLimitsOf(options);
      const retries = this.#retriesIfEnabled(options, limits);
      for (;;) {
        try {
          const left = retries?.requestLimits ?? limits;
          const result = await work(traced === undefined ? left : { ...left, traced });
          if (traced !== undefined) traceSuccess(tracer, traced, result);
          return result;
        } catch (error) {
          const reason = reasonOf === undefined ? error : await reasonOf(error);
          if (retries !== undefined && (await retries.waitToRetry(reason, isRepeatable))) {
            if (traced !== undefined) traced.attempt++;
            continue;
          }
          if (reason instanceof DataFormatFailure) throw new DataFormatError(method, path!, reason);
          const last = retries?.finalError(reason, isRepeatable) ?? reason;
          throw last instanceof RequestFailure ? new KeeperError(method, path, last) : last;
        }
      }
    } catch (error) {
      if (traced !== undefined) traceFailure(tracer, traced, error);
      throw error;
    }
  }

  #startTrace(op: string, path: string | undefined, isCompound: boolean): TracedCall {
    const chroot = path === undefined || operationsWithoutChroot.has(op) ? '' : this.#chroot;
    return newTracedCall(op, this.#session.id, { path, chroot, isCompound });
  }

  /** undefined: failures are not repeated. */
  retriesFor(retry: CallOptions['retry'], deadline: CallDeadline): Retries | undefined {
    const policy = retry === undefined ? this.#defaults.retry : resolveRetryPolicy(retry);
    return policy === undefined ? undefined : new Retries(this.#session, policy, deadline);
  }

  /** For an idempotent call, which always has a policy. */
  idempotentRetries({ retry }: CallOptions, deadline: CallDeadline): Retries {
    if (retry === false) throw new TypeError('an idempotent call may be repeated, so retry cannot be false');
    return this.retriesFor(retry ?? this.#defaults.retry ?? true, deadline)!;
  }

  /** Costs nothing without a policy, as for most calls. */
  #retriesIfEnabled({ retry }: CallOptions, limits: RequestLimits): Retries | undefined {
    if (retry === undefined && this.#defaults.retry === undefined) return undefined;
    return this.retriesFor(retry, new CallDeadline(this.#session, limits));
  }
}

function requestLimitsOf({ signal, timeoutMs }: CallOptions): RequestLimits {
  return { signal, timeoutMs };
}

export function toCallError(method: string, path: string, error: unknown): unknown {
  if (error instanceof RequestFailure) return new KeeperError(method, path, error);
  if (!KeeperError.is(error) || (error.op === method && error.path === path)) return error;
  return new KeeperError(method, path, stepFailure(error));
}
