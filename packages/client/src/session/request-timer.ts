/**
 * Limits how long a server may take for one request (`requestTimeoutMs`). Time spent waiting for a
 * connection does not count. Timers run before input: a late wake means that the process was
 * paused, and the answer may have arrived meanwhile.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import { lateWakeGraceMs, lateWakeMs } from './timings.ts';

export class RequestTimer {
  readonly #clock: Clock;
  readonly #remainingMs: (nowMs: Millis) => Millis;
  readonly #onTimeout: () => void;
  #timer!: TimerHandle;
  #dueMs!: Millis;

  /**
   * `remainingMs` returns how much more time the server has, and is called when `limitMs` have
   * passed; `over` is called when none is left.
   */
  constructor(clock: Clock, limitMs: Millis, remainingMs: (nowMs: Millis) => Millis, onTimeout: () => void) {
    this.#clock = clock;
    this.#remainingMs = remainingMs;
    this.#onTimeout = onTimeout;
    this.#set(limitMs);
  }

  cancel(): void {
    this.#clock.cancel(this.#timer);
  }

  #set(ms: Millis): void {
    this.#dueMs = this.#nowMs + ms;
    this.#timer = this.#clock.after(ms, this.#wake);
  }

  get #nowMs(): Millis {
    return this.#clock.now().elapsedMs;
  }

  readonly #wake = (): void => {
    const nowMs = this.#nowMs;
    const moreMs = nowMs - this.#dueMs > lateWakeMs ? lateWakeGraceMs : this.#remainingMs(nowMs);
    if (moreMs > 0) this.#set(moreMs);
    else this.#onTimeout();
  };
}
