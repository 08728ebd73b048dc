/**
 * The limits of one call of the program, however many requests and pauses it consists of:
 * `timeoutMs` counts from its start, and `signal` ends it at any point.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import { type Clock, type Random, timerMsMax } from '../clock.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { RequestLimits } from '../session/request-limits.ts';
import { onAbort } from '../signals.ts';

/** What a call of several steps needs of its session. */
export interface CallSession {
  readonly clock: Clock;
  readonly random: Random;
  /** No more requests can be made. */
  readonly hasEnded: boolean;
  /** Calls back at the end of the session; returns a function that cancels this. */
  onEnd(callback: () => void): () => void;
}

export class CallDeadline {
  readonly #session: CallSession;
  readonly #limits: RequestLimits;
  readonly #startMs: Millis;

  constructor(session: CallSession, limits: RequestLimits) {
    this.#session = session;
    this.#limits = limits;
    this.#startMs = session.clock.now().elapsedMs;
  }

  get elapsedMs(): Millis {
    return this.#session.clock.now().elapsedMs - this.#startMs;
  }

  /** The remaining time; Infinity without a time-out. */
  get remainingMs(): Millis {
    const { timeoutMs } = this.#limits;
    return timeoutMs === undefined ? Infinity : Math.max(0, timeoutMs - this.elapsedMs);
  }

  /**
   * The limits of the next request. Throws the signal's reason, or a RequestFailure when the call
   * has timed out.
   */
  get requestLimits(): RequestLimits {
    const { signal, timeoutMs } = this.#limits;
    signal?.throwIfAborted();
    if (timeoutMs === undefined) return { signal, timeoutMs };
    const leftMs = this.remainingMs;
    if (leftMs === 0) throw new RequestFailure(ErrorCode.RequestTimeout, 'notSent', `timed out after ${timeoutMs} ms`);
    // Rounded, as an error quotes it.
    return { signal, timeoutMs: Math.ceil(leftMs) };
  }

  /** Waits, but not beyond the end of the session. Rejects with the signal's reason. */
  pause(ms: Millis): Promise<void> {
    const { clock } = this.#session;
    const { signal } = this.#limits;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const cleanUp = () => {
        clock.cancel(timer);
        removeEndListener();
        removeAbortListener?.();
      };
      const done = () => {
        cleanUp();
        resolve();
      };
      const timer = clock.after(Math.min(ms, this.remainingMs, timerMsMax), done);
      const removeEndListener = this.#session.onEnd(done);
      const removeAbortListener =
        signal &&
        onAbort(signal, () => {
          cleanUp();
          reject(signal.reason);
        });
    });
  }
}
