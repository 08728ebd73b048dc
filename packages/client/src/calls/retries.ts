/**
 * Whether a call that has failed is made again, and when. Nothing is guessed: what is repeated was certainly not carried out (`refused`,
 * `notSent`), or is of a kind whose repetition nobody can tell from the first time.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import { uniform } from '../clock.ts';
import { isPassing, KeeperError, type Outcome, Refusal } from '../keeper-error.ts';
import type { Bounds, CallSession, Limits } from './bounds.ts';
import { type FullRetryPolicy, untilTheEnd } from './retry-policy.ts';

/** What can be known of a failure, before or after it has been put into words. */
export type Failure = Pick<Refusal, 'errno' | 'outcome' | 'reason' | 'failedIndex' | 'results'> & { readonly cause?: unknown };

/** undefined for what no server and no session has said: the reason of a signal, a fault of the program. */
export function failureOf(error: unknown): Failure | undefined {
  return error instanceof Refusal || KeeperError.is(error) ? error : undefined;
}

/** The same failure with another outcome or reason. */
export function reworded({ errno, cause, failedIndex, results }: Failure, outcome: Outcome, reason: string | undefined): Refusal {
  return new Refusal(errno, outcome, reason, {
    cause,
    ...(failedIndex === undefined ? {} : { failedIndex }),
    ...(results === undefined ? {} : { results }),
  });
}

/** What a step has failed with, told as a failure of the call it is part of. */
export function refusalOfStep(error: KeeperError, path: string | undefined = error.path): Refusal {
  const { errno, outcome, op: step, reason } = error;
  const what = path === undefined ? step : `${step} ${path}`;
  return new Refusal(errno, outcome, reason === undefined ? what : `${what}: ${reason}`, { cause: error });
}

/** The request was sent and not answered. */
export function isUnanswered(error: unknown): boolean {
  return failureOf(error)?.outcome === 'unknown';
}

/** The longest pause ahead of attempt `attempts + 1`, of which a random part is taken. */
export function pauseMsMax({ pauseMs, pauseMsMax: most }: FullRetryPolicy, attempts: number): Millis {
  return Math.min(most, pauseMs * 2 ** Math.min(attempts - 1, 60));
}

/** The attempts of one call. */
export class Retries {
  readonly #session: CallSession;
  readonly #policy: FullRetryPolicy;
  readonly #bounds: Bounds;
  #attempts = 1;
  #hasUnanswered = false;

  constructor(session: CallSession, policy: FullRetryPolicy, bounds: Bounds) {
    this.#session = session;
    this.#policy = policy;
    this.#bounds = bounds;
  }

  /** For the next attempt. */
  get left(): Limits {
    return this.#bounds.left;
  }

  /** An attempt was sent and not answered, so it may have been carried out. */
  get hasUnanswered(): boolean {
    return this.#hasUnanswered;
  }

  /**
   * Waits for as long as it takes, and resolves with true when the call is to be made again: never when its own time-out has passed. `isRepeatable`: also when it may have been
   * carried out. Rejects with the reason of the signal.
   */
  async again(error: unknown, isRepeatable: boolean): Promise<boolean> {
    const failure = failureOf(error);
    if (failure === undefined) return false;
    if (failure.outcome === 'unknown') this.#hasUnanswered = true;
    if (this.#session.isOver || !isPassing(failure.errno) || (failure.outcome === 'unknown' && !isRepeatable)) return false;
    if (this.#attempts >= this.#policy.attempts) return false;
    const pauseMs = uniform(this.#session.random, pauseMsMax(this.#policy, this.#attempts));
    if (this.#bounds.elapsedMs + pauseMs > this.#policy.maxElapsedMs || pauseMs >= this.#bounds.leftMs) return false;
    this.#attempts++;
    await this.#bounds.pause(pauseMs);
    return true;
  }

  /** The last failure, in the light of those before it. A read has no `unanswered`: it changes nothing, so each answer stands alone. */
  summed(error: unknown, isRead: boolean): unknown {
    const failure = failureOf(error);
    if (failure === undefined || this.#attempts === 1) return error;
    const outcome = !isRead && this.#hasUnanswered ? 'unknown' : failure.outcome;
    const tries = `${this.#attempts} attempts in ${Math.round(this.#bounds.elapsedMs)} ms`;
    return reworded(failure, outcome, failure.reason === undefined ? tries : `${failure.reason}; ${tries}`);
  }
}

/**
 * Makes a harmless call until it is answered, the session is over or the bounds are reached. NotReadOnly counts as no answer: the client is
 * with a server that has lost its quorum, and looks for another.
 */
export async function persistently<Result>(
  session: CallSession,
  bounds: Bounds,
  call: (limits: Limits) => Promise<Result>,
): Promise<Result> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await call(bounds.left);
    } catch (error) {
      const failure = failureOf(error);
      const goesOn = failure !== undefined && (isPassing(failure.errno) || failure.errno === ErrorCode.NotReadOnly);
      if (!goesOn || session.isOver || bounds.leftMs === 0) throw error;
      await bounds.pause(uniform(session.random, pauseMsMax(untilTheEnd, attempts)));
    }
  }
}
