/**
 * A clock that stands still until it is moved. Monotonic and wall time start apart, so that code which mixes them up is caught by the
 * first test that looks.
 */
import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';

interface Timer {
  readonly dueMs: Millis;
  /** Timers due at one instant fire in the order they were set. */
  readonly order: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #elapsedMs: Millis;
  #wallMs: Millis;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(elapsedMs: Millis = 1000, wallMs: Millis = 1_700_000_000_000) {
    this.#elapsedMs = elapsedMs;
    this.#wallMs = wallMs;
  }

  now(): Now {
    return { elapsedMs: this.#elapsedMs, wallMs: this.#wallMs };
  }

  after(delayMs: Millis, callback: () => void): TimerHandle {
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return timer;
  }

  cancel(timer: TimerHandle): void {
    this.#timers.delete(timer as Timer);
  }

  soon(task: () => void): void {
    void Promise.resolve().then(task);
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  /** Lets time pass; timers that come due fire in order, each seeing its own instant. */
  advance(ms: Millis): void {
    const end = this.#elapsedMs + ms;
    for (;;) {
      const timer = this.#next();
      if (timer === undefined || timer.dueMs > end) break;
      this.#moveTo(timer.dueMs);
      this.#timers.delete(timer);
      timer.callback();
    }
    this.#moveTo(end);
  }

  /** Sets the wall clock right or wrong, as ntp or an operator may; monotonic time does not notice. */
  setWall(wallMs: Millis): void {
    this.#wallMs = wallMs;
  }

  #moveTo(elapsedMs: Millis): void {
    if (elapsedMs <= this.#elapsedMs) return;
    this.#wallMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order)) next = timer;
    }
    return next;
  }
}
