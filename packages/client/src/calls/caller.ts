/**
 * Makes the calls of a client: within their limits, with retries where they are enabled and safe,
 * and turns failures into errors.
 */
import { ErrorCode, type Reader } from '@tskeeper/protocol';
import { DataFormatError, FormatRefusal } from '../data-forms.ts';
import { KeeperError, Refusal } from '../keeper-error.ts';
import { syncOperation } from '../operations/single.ts';
import type { CallOptions, Operation } from '../session/operation.ts';
import type { Session } from '../session/session.ts';
import { failed, succeeded, type TracedCall, tracedCall } from '../tracing.ts';
import { Bounds, type Limits } from './bounds.ts';
import { refusalOfStep, Retries } from './retries.ts';
import { fullPolicy, type FullRetryPolicy } from './retry-policy.ts';

/** Options that apply to all calls of a client unless a call overrides them. */
export interface CallDefaults {
  readonly retry: FullRetryPolicy | undefined;
}

/** Calls about the ensemble, which ignore the chroot. */
const chrootless: ReadonlySet<string> = new Set(['getConfig', 'reconfig']);

export class Caller {
  readonly #session: Session;
  readonly #chroot: string;
  readonly #defaults: CallDefaults;

  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    this.#session = session;
    this.#chroot = chroot;
    this.#defaults = defaults;
  }

  /**
   * `make` may throw a Refusal; then nothing is sent. `isRepeatable`: the call changes nothing, so
   * it may be repeated even without an answer.
   */
  call<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    make: () => Operation<Result>,
    isRepeatable = false,
  ): Promise<Result> {
    return this.guard(method, path, options, isRepeatable, (limits) => this.#session.perform(make(), limits));
  }

  /** A call of several steps, within one time-out and one signal. */
  compound<Result>(method: string, path: string, options: CallOptions, work: (bounds: Bounds) => Promise<Result>): Promise<Result> {
    const bounds = new Bounds(this.#session, limitsOf(options));
    return this.within(method, path, () => work(bounds));
  }

  /** Reports the failure of a step as a failure of the whole call. */
  within<Result>(method: string, path: string, work: () => Promise<Result>): Promise<Result> {
    const { tracer } = this.#session;
    if (!tracer.hearsCalls) return this.#steps(method, path, work, undefined);
    const traced = this.#traced(method, path, true);
    return tracer.run(traced, () => this.#steps(method, path, work, traced));
  }

  async #steps<Result>(method: string, path: string, work: () => Promise<Result>, traced: TracedCall | undefined): Promise<Result> {
    try {
      const result = await work();
      if (traced !== undefined) succeeded(this.#session.tracer, traced, result);
      return result;
    } catch (error) {
      const failure = inWordsOf(method, path, error);
      if (traced !== undefined) failed(this.#session.tracer, traced, failure);
      throw failure;
    }
  }

  /**
   * A linearizable read. The sync and the read are sent together on one connection, and are lost
   * together. A server answers a session in order, so when the read is answered the result of the
   * sync is known. The call awaits the promise of the read itself, as directly as `guard` does, so
   * that its answer keeps its order relative to events.
   */
  readBehindSync<Result>(method: string, path: string | undefined, options: CallOptions, make: () => Operation<Result>): Promise<Result> {
    let synced: Promise<void> | undefined;
    const ask = (limits: Limits): Promise<Result> => {
      synced = undefined;
      const operation = make();
      const sync = syncOperation('/');
      let isSynced = false;
      const noted = (reader: Reader) => {
        sync.read(reader);
        isSynced = true;
      };
      synced = this.#session.perform({ ...sync, read: noted }, limits);
      // The reason is needed only if the read fails; see below.
      synced.catch(() => undefined);
      const read: Operation<Result> = {
        opCode: operation.opCode,
        watches: operation.watches,
        write: (writer) => operation.write(writer),
        read: (reader) => {
          if (!isSynced) throw new Refusal(ErrorCode.RuntimeInconsistency, 'refused', 'the sync before this read was rejected');
          return operation.read(reader);
        },
        readError: (err) => (isSynced ? operation.readError?.(err) : undefined),
      };
      return this.#session.perform(read, limits);
    };
    // If the sync has failed, report its reason.
    const blame = async (failure: unknown): Promise<unknown> => {
      try {
        await synced;
        return failure;
      } catch (why) {
        return why;
      }
    };
    return this.guard(method, path, options, true, ask, blame);
  }

  /**
   * Turns a Refusal into a KeeperError. The error is created here, after the await, because here
   * its stack shows the caller; to record the stack of each call in case it fails would take longer
   * than the call.
   */
  guard<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    isRepeatable: boolean,
    work: (limits: Limits) => Promise<Result>,
    reasonOf?: (error: unknown) => Promise<unknown>,
  ): Promise<Result> {
    const { tracer } = this.#session;
    if (!tracer.hearsCalls) return this.#attempts(method, path, options, isRepeatable, work, reasonOf, undefined);
    const traced = this.#traced(method, path, false);
    return tracer.run(traced, () => this.#attempts(method, path, options, isRepeatable, work, reasonOf, traced));
  }

  async #attempts<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    isRepeatable: boolean,
    work: (limits: Limits) => Promise<Result>,
    reasonOf: ((error: unknown) => Promise<unknown>) | undefined,
    traced: TracedCall | undefined,
  ): Promise<Result> {
    const { tracer } = this.#session;
    try {
      const limits = limitsOf(options);
      const retries = this.#retriesWithin(options, limits);
      for (;;) {
        try {
          const left = retries?.left ?? limits;
          const result = await work(traced === undefined ? left : { ...left, traced });
          if (traced !== undefined) succeeded(tracer, traced, result);
          return result;
        } catch (error) {
          const reason = reasonOf === undefined ? error : await reasonOf(error);
          if (retries !== undefined && (await retries.again(reason, isRepeatable))) {
            if (traced !== undefined) traced.attempt++;
            continue;
          }
          if (reason instanceof FormatRefusal) throw new DataFormatError(method, path!, reason);
          const last = retries?.summed(reason, isRepeatable) ?? reason;
          throw last instanceof Refusal ? new KeeperError(method, path, last) : last;
        }
      }
    } catch (error) {
      if (traced !== undefined) failed(tracer, traced, error);
      throw error;
    }
  }

  #traced(op: string, path: string | undefined, isCompound: boolean): TracedCall {
    const chroot = path === undefined || chrootless.has(op) ? '' : this.#chroot;
    return tracedCall(op, this.#session.id, { path, chroot, isCompound });
  }

  /** undefined: failures are not repeated. */
  retries(retry: CallOptions['retry'], bounds: Bounds): Retries | undefined {
    const policy = retry === undefined ? this.#defaults.retry : fullPolicy(retry);
    return policy === undefined ? undefined : new Retries(this.#session, policy, bounds);
  }

  /** For an idempotent call, which always has a policy. */
  repetitions({ retry }: CallOptions, bounds: Bounds): Retries {
    if (retry === false) throw new TypeError('an idempotent call may be repeated, so retry cannot be false');
    return this.retries(retry ?? this.#defaults.retry ?? true, bounds)!;
  }

  /** Costs nothing without a policy, as for most calls. */
  #retriesWithin({ retry }: CallOptions, limits: Limits): Retries | undefined {
    if (retry === undefined && this.#defaults.retry === undefined) return undefined;
    return this.retries(retry, new Bounds(this.#session, limits));
  }
}

function limitsOf({ signal, timeoutMs }: CallOptions): Limits {
  return { signal, timeoutMs };
}

export function inWordsOf(method: string, path: string, error: unknown): unknown {
  if (error instanceof Refusal) return new KeeperError(method, path, error);
  if (!KeeperError.is(error) || (error.op === method && error.path === path)) return error;
  return new KeeperError(method, path, refusalOfStep(error));
}
