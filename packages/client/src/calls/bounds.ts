/**
 * What one call of the program may take in all, however many requests and pauses it consists of: `timeoutMs` counts from its beginning,
 * and `signal` ends it wherever it stands.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import { type Clock, type Random, timerMsMax } from '../clock.ts';
import { Refusal } from '../keeper-error.ts';
import type { CallOptions } from '../session/operation.ts';
import { onAbort } from '../signals.ts';
import type { TracedCall } from '../tracing.ts';

/** What a call of several steps needs of the session it is made on. */
export interface CallSession {
  readonly clock: Clock;
  readonly random: Random;
  /** Nothing can be asked any more. */
  readonly isOver: boolean;
  /** Calls back at the end of the session; returns how to take that back. */
  onceOver(callback: () => void): () => void;
}

export interface Limits extends Pick<CallOptions, 'signal' | 'timeoutMs'> {
  /** What is told of the call that the request is made for; undefined: nobody listens. */
  readonly traced?: TracedCall | undefined;
}

export class Bounds {
  readonly #session: CallSession;
  readonly #limits: Limits;
  readonly #startMs: Millis;

  constructor(session: CallSession, limits: Limits) {
    this.#session = session;
    this.#limits = limits;
    this.#startMs = session.clock.now().elapsedMs;
  }

  get elapsedMs(): Millis {
    return this.#session.clock.now().elapsedMs - this.#startMs;
  }

  /** How much time there is; Infinity without a time-out. */
  get leftMs(): Millis {
    const { timeoutMs } = this.#limits;
    return timeoutMs === undefined ? Infinity : Math.max(0, timeoutMs - this.elapsedMs);
  }

  /** For the next request. Throws the signal's reason, or a Refusal when the time is over. */
  get left(): Limits {
    const { signal, timeoutMs } = this.#limits;
    signal?.throwIfAborted();
    if (timeoutMs === undefined) return { signal, timeoutMs };
    const leftMs = this.leftMs;
    if (leftMs === 0) throw new Refusal(ErrorCode.RequestTimeout, 'notSent', `not done within ${timeoutMs} ms`);
    // Whole, since an error names it.
    return { signal, timeoutMs: Math.ceil(leftMs) };
  }

  /** Waits, but no longer than the session lives. Rejects with the signal's reason. */
  pause(ms: Millis): Promise<void> {
    const { clock } = this.#session;
    const { signal } = this.#limits;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const over = () => {
        clock.cancel(timer);
        forgetSession();
        forgetSignal?.();
      };
      const done = () => {
        over();
        resolve();
      };
      const timer = clock.after(Math.min(ms, this.leftMs, timerMsMax), done);
      const forgetSession = this.#session.onceOver(done);
      const forgetSignal =
        signal &&
        onAbort(signal, () => {
          over();
          reject(signal.reason);
        });
    });
  }
}
