/**
 * Limits how long a server may take for one request (`requestTimeoutMs`). Time spent waiting for a
 * connection does not count. Timers run before input: a late wake means that the process was
 * paused, and the answer may have arrived meanwhile.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import { graceMs, lateMs } from './timings.ts';

export class ServerLimit {
  readonly #clock: Clock;
  readonly #leftMs: (nowMs: Millis) => Millis;
  readonly #over: () => void;
  #timer!: TimerHandle;
  #dueMs!: Millis;

  /**
   * `leftMs` returns how much more time the server has, and is called when `limitMs` have passed;
   * `over` is called when none is left.
   */
  constructor(clock: Clock, limitMs: Millis, leftMs: (nowMs: Millis) => Millis, over: () => void) {
    this.#clock = clock;
    this.#leftMs = leftMs;
    this.#over = over;
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
    const moreMs = nowMs - this.#dueMs > lateMs ? graceMs : this.#leftMs(nowMs);
    if (moreMs > 0) this.#set(moreMs);
    else this.#over();
  };
}
