/**
 * Keeps a connection alive with pings, and detects a server that has fallen silent.
 *
 * Both limits follow from the session's time-out (`timings.ts`): a ping after about a third of it
 * without output, the end of the connection after two thirds without input.
 */
import type { Millis } from '@tskeeper/protocol';
import type { NegotiatedSession } from './negotiated-session.ts';
import { lateWakeGraceMs, lateWakeMs, pingAfterMs, readTimeoutMs } from './timings.ts';

export class KeepAlive {
  readonly #session: NegotiatedSession;
  #lastReceivedMs: Millis;
  #lastSentMs: Millis = 0;
  #pingsUnanswered = 0;

  constructor(session: NegotiatedSession, nowMs: Millis) {
    this.#session = session;
    this.#lastReceivedMs = nowMs;
  }

  get lastReceivedMs(): Millis {
    return this.#lastReceivedMs;
  }

  get lastSentMs(): Millis {
    return this.#lastSentMs;
  }

  /** How long a server may be silent. */
  get readTimeoutMs(): Millis {
    return readTimeoutMs(this.#session.effectiveTimeoutMs);
  }

  /** When a server that stays silent is left. */
  get readDeadlineMs(): Millis {
    return this.#lastReceivedMs + this.readTimeoutMs;
  }

  get deadlineMs(): Millis {
    return Math.min(this.readDeadlineMs, this.#pingAtMs);
  }

  get #pingAtMs(): Millis {
    return this.#lastSentMs + pingAfterMs(this.#session.effectiveTimeoutMs);
  }

  received(nowMs: Millis): void {
    this.#lastReceivedMs = nowMs;
  }

  sent(nowMs: Millis): void {
    this.#lastSentMs = nowMs;
  }

  /** What is due: to leave the silent server, to ping it, or nothing. */
  due(nowMs: Millis): 'leave' | 'ping' | undefined {
    if (nowMs - this.deadlineMs > lateWakeMs) {
      // Timers run before input: what the server has sent while the process was paused has not been
      // read yet.
      const readTimeout = this.readTimeoutMs;
      this.#lastReceivedMs = Math.max(this.#lastReceivedMs, nowMs - readTimeout + Math.min(lateWakeGraceMs, readTimeout / 2));
    }
    if (nowMs >= this.readDeadlineMs) return 'leave';
    return nowMs >= this.#pingAtMs ? 'ping' : undefined;
  }

  pinged(): void {
    this.#pingsUnanswered++;
  }

  /** Returns whether an answer was due. */
  ponged(): boolean {
    if (this.#pingsUnanswered === 0) return false;
    this.#pingsUnanswered--;
    return true;
  }

  disconnected(): void {
    this.#pingsUnanswered = 0;
  }
}
