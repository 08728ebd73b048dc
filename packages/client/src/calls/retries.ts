/**
 * Decides whether and when a failed call is repeated. Nothing is guessed: a repeated call was
 * certainly not applied (`refused`, `notSent`), or its repetition makes no difference.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import { uniform } from '../clock.ts';
import { isRetryable, KeeperError, type Outcome, RequestFailure } from '../keeper-error.ts';
import type { RequestLimits } from '../session/request-limits.ts';
import type { CallDeadline, CallSession } from './call-deadline.ts';
import { type FullRetryPolicy, unlimitedRetryPolicy } from './retry-policy.ts';

/** The known facts of a failure, as a RequestFailure or as a KeeperError. */
export type FailureFields = Pick<RequestFailure, 'errno' | 'outcome' | 'reason' | 'failedIndex' | 'results'> & { readonly cause?: unknown };

/**
 * undefined if the error is not from a server or the session: the reason of a signal, or a bug of
 * the program.
 */
export function failureOf(error: unknown): FailureFields | undefined {
  return error instanceof RequestFailure || KeeperError.is(error) ? error : undefined;
}

/** The same failure with another outcome or reason. */
export function withOutcome(
  { errno, cause, failedIndex, results }: FailureFields,
  outcome: Outcome,
  reason: string | undefined,
): RequestFailure {
  return new RequestFailure(errno, outcome, reason, {
    cause,
    ...(failedIndex === undefined ? {} : { failedIndex }),
    ...(results === undefined ? {} : { results }),
  });
}

/** The failure of a step as a failure of the call that it is part of. */
export function stepFailure(error: KeeperError, path: string | undefined = error.path): RequestFailure {
  const { errno, outcome, op: step, reason } = error;
  const what = path === undefined ? step : `${step} ${path}`;
  return new RequestFailure(errno, outcome, reason === undefined ? what : `${what}: ${reason}`, { cause: error });
}

/** The request was sent and not answered. */
export function hasUnknownOutcome(error: unknown): boolean {
  return failureOf(error)?.outcome === 'unknown';
}

/** The longest pause before attempt `attempts + 1`; the actual pause is a random part of it. */
export function delayMsMax({ baseDelayMs, maxDelayMs: most }: FullRetryPolicy, attempts: number): Millis {
  return Math.min(most, baseDelayMs * 2 ** Math.min(attempts - 1, 60));
}

/** The attempts of one call. */
export class Retries {
  readonly #session: CallSession;
  readonly #policy: FullRetryPolicy;
  readonly #bounds: CallDeadline;
  #attempts = 1;
  #hasUnanswered = false;

  constructor(session: CallSession, policy: FullRetryPolicy, deadline: CallDeadline) {
    this.#session = session;
    this.#policy = policy;
    this.#bounds = deadline;
  }

  /** The limits of the next attempt. */
  get requestLimits(): RequestLimits {
    return this.#bounds.requestLimits;
  }

  /** An attempt was sent and not answered, so it may have been applied. */
  get hasUnanswered(): boolean {
    return this.#hasUnanswered;
  }

  /**
   * Waits for the pause and resolves with true if the call is to be repeated; resolves with false
   * at once otherwise, and always after the call's own time-out. `isRepeatable`: repeat even if the
   * call may have been applied. Rejects with the signal's reason.
   */
  async waitToRetry(error: unknown, isRepeatable: boolean): Promise<boolean> {
    const failure = failureOf(error);
    if (failure === undefined) return false;
    if (failure.outcome === 'unknown') this.#hasUnanswered = true;
    if (this.#session.hasEnded || !isRetryable(failure.errno) || (failure.outcome === 'unknown' && !isRepeatable)) return false;
    if (this.#attempts >= this.#policy.maxAttempts) return false;
    const pauseMs = uniform(this.#session.random, delayMsMax(this.#policy, this.#attempts));
    if (this.#bounds.elapsedMs + pauseMs > this.#policy.maxElapsedMs || pauseMs >= this.#bounds.remainingMs) return false;
    this.#attempts++;
    await this.#bounds.pause(pauseMs);
    return true;
  }

  /**
   * The last failure, taking earlier ones into account. Earlier attempts of a read do not matter,
   * as a read changes nothing.
   */
  finalError(error: unknown, isRead: boolean): unknown {
    const failure = failureOf(error);
    if (failure === undefined || this.#attempts === 1) return error;
    const outcome = !isRead && this.#hasUnanswered ? 'unknown' : failure.outcome;
    const tries = `${this.#attempts} attempts in ${Math.round(this.#bounds.elapsedMs)} ms`;
    return withOutcome(failure, outcome, failure.reason === undefined ? tries : `${failure.reason}; ${tries}`);
  }
}

/**
 * Repeats a harmless call until it is answered, the session ends or the bounds are reached.
 * NotReadOnly counts as no answer: the server has lost its quorum, and the client looks for
 * another.
 */
export async function retryUntilSessionEnds<Result>(
  session: CallSession,
  deadline: CallDeadline,
  call: (limits: RequestLimits) => Promise<Result>,
): Promise<Result> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await call(deadline.requestLimits);
    } catch (error) {
      const failure = failureOf(error);
      const isRetryableHere = failure !== undefined && (isRetryable(failure.errno) || failure.errno === ErrorCode.NotReadOnly);
      if (!isRetryableHere || session.hasEnded || deadline.remainingMs === 0) throw error;
      await deadline.pause(uniform(session.random, delayMsMax(unlimitedRetryPolicy, attempts)));
    }
  }
}
