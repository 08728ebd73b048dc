/**
 * A clock that advances only on request. Monotonic and wall time start at different values, so that
 * the first test of code that mixes them up fails.
 */
import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';

interface Timer {
  readonly instant: Instant;
  readonly callback: () => void;
}

/** Timers due at the same time fire in the order they were set. */
interface Instant {
  readonly dueMs: Millis;
  readonly timers: Set<Timer>;
}

export class ManualClock implements Clock {
  #elapsedMs: Millis;
  #wallMs: Millis;
  /** The earliest is first. Tests set tens of thousands of timers for a few instants. */
  readonly #instants: Instant[] = [];

  constructor(elapsedMs: Millis = 1000, wallMs: Millis = 1_700_000_000_000) {
    this.#elapsedMs = elapsedMs;
    this.#wallMs = wallMs;
  }

  now(): Now {
    return { elapsedMs: this.#elapsedMs, wallMs: this.#wallMs };
  }

  after(delayMs: Millis, callback: () => void): TimerHandle {
    const instant = this.#instantAt(this.#elapsedMs + Math.max(0, delayMs));
    const timer: Timer = { instant, callback };
    instant.timers.add(timer);
    return timer;
  }

  cancel(timer: TimerHandle): void {
    (timer as Timer).instant.timers.delete(timer as Timer);
  }

  setImmediate(task: () => void): void {
    void Promise.resolve().then(task);
  }

  get timerCount(): number {
    return this.#instants.reduce((count, { timers }) => count + timers.size, 0);
  }

  /** Advances the time; timers that are due fire in order, each at its own instant. */
  advance(ms: Millis): void {
    const end = this.#elapsedMs + ms;
    for (;;) {
      const timer = this.#next();
      if (timer === undefined || timer.instant.dueMs > end) break;
      this.#moveTo(timer.instant.dueMs);
      this.cancel(timer);
      timer.callback();
    }
    this.#moveTo(end);
  }

  /** Sets the wall clock, as ntp or an operator may; monotonic time does not change. */
  setWall(wallMs: Millis): void {
    this.#wallMs = wallMs;
  }

  #moveTo(elapsedMs: Millis): void {
    if (elapsedMs <= this.#elapsedMs) return;
    this.#wallMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #next(): Timer | undefined {
    for (let first = this.#instants[0]; first !== undefined; first = this.#instants[0]) {
      for (const timer of first.timers) return timer;
      this.#instants.shift();
    }
    return undefined;
  }

  #instantAt(dueMs: Millis): Instant {
    let at = this.#instants.length;
    while (at > 0 && this.#instants[at - 1]!.dueMs > dueMs) at--;
    const before = this.#instants[at - 1];
    if (before?.dueMs === dueMs) return before;
    const instant: Instant = { dueMs, timers: new Set() };
    this.#instants.splice(at, 0, instant);
    return instant;
  }
}
