/**
 * Limits how long a server may take for one request. Time spent waiting for a connection does not
 * count. Timers run before input: a late wake means that the process was paused, and the answer may
 * have arrived meanwhile.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import { lateWakeGraceMs, lateWakeMs } from './timings.ts';

/** What a timer needs to know of the connection that its request is sent on. */
export interface CurrentConnection {
  readonly clock: Clock;
  /** Start of the current or the last connection. */
  readonly connectedAtMs: Millis;
}

export class RequestTimer {
  readonly #connection: CurrentConnection;
  readonly #limitMs: Millis;
  readonly #isSent: () => boolean;
  readonly #onTimeout: (limitMs: Millis) => void;
  readonly #madeMs: Millis;
  #timer!: TimerHandle;
  #dueMs!: Millis;

  /**
   * `isSent` returns whether a server has the request; `onTimeout` is called when the server has
   * used up its time.
   */
  constructor(connection: CurrentConnection, limitMs: Millis, isSent: () => boolean, onTimeout: (limitMs: Millis) => void) {
    this.#connection = connection;
    this.#limitMs = limitMs;
    this.#isSent = isSent;
    this.#onTimeout = onTimeout;
    this.#madeMs = this.#nowMs;
    this.#set(limitMs);
  }

  cancel(): void {
    this.#connection.clock.cancel(this.#timer);
  }

  #set(ms: Millis): void {
    this.#dueMs = this.#nowMs + ms;
    this.#timer = this.#connection.clock.after(ms, this.#wake);
  }

  get #nowMs(): Millis {
    return this.#connection.clock.now().elapsedMs;
  }

  readonly #wake = (): void => {
    const nowMs = this.#nowMs;
    const moreMs = nowMs - this.#dueMs > lateWakeMs ? lateWakeGraceMs : this.#remainingMs(nowMs);
    if (moreMs > 0) this.#set(moreMs);
    else this.#onTimeout(this.#limitMs);
  };

  /** The request was sent when it was made, or as soon as there was a connection. */
  #remainingMs(nowMs: Millis): Millis {
    return this.#isSent() ? Math.max(this.#madeMs, this.#connection.connectedAtMs) + this.#limitMs - nowMs : 0;
  }
}
