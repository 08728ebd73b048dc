/**
 * A machine's clock with two differences: a test can add time, and a pause of the process counts
 * only a little. Otherwise, after a debugger halts the process for a minute, or on a busy machine,
 * servers would conclude that every client and every other server was silent for that long:
 * sessions would expire and leaders would lose their quorum.
 *
 * The clock never passes the due time of a waiting timer by more than half a tick. So a pause
 * counts for no more than that, and a process that is merely late is not affected.
 */
import type { Now } from '@tskeeper/core';
import type { Clock, MemoryProbe, TimerHandle } from '@tskeeper/runtime';
import type { ActivityTracker } from './activity-tracker.ts';

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  readonly isServers: boolean;
}

/** The longest delay of Node's timers. */
const timerMsMax = 0x7fffffff;

export class TestClock implements Clock {
  readonly #activity: ActivityTracker;
  /** Added time passes in steps of at most this length. */
  readonly #stepMs: number;
  #elapsedMs = performance.now();
  /** The machine's clock at the moment of `#elapsedMs`. */
  #updatedAtMs = performance.now();
  /** Added time. */
  #skippedMs = 0;
  /** Ordered by due time, then by creation. */
  readonly #timers: Timer[] = [];
  #realTimer: NodeJS.Timeout | undefined;
  #realTimerDueMs = Infinity;
  #advancing: Promise<void> = Promise.resolve();

  /**
   * @param tickMs the servers' tick: no peer is missed in less than half of it.
   */
  constructor(activity: ActivityTracker, tickMs: number) {
    this.#activity = activity;
    this.#stepMs = Math.max(1, tickMs * 0.45);
  }

  now(): Now {
    this.#update();
    return { elapsedMs: Math.floor(this.#elapsedMs), wallMs: Date.now() + Math.floor(this.#skippedMs) };
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    return this.#set(delayMs, callback, false);
  }

  /** Like `after`, for a server: the activity sees what the server does in the callback. */
  afterForServer(delayMs: number, callback: () => void): TimerHandle {
    return this.#set(delayMs, callback, true);
  }

  #set(delayMs: number, callback: () => void, isServers: boolean): TimerHandle {
    this.#update();
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback, isServers };
    let index = this.#timers.length;
    while (index > 0 && this.#timers[index - 1]!.dueMs > timer.dueMs) index--;
    this.#timers.splice(index, 0, timer);
    this.#armTimer();
    return timer;
  }

  cancel(handle: TimerHandle): void {
    const index = this.#timers.indexOf(handle as Timer);
    if (index === -1) return;
    this.#update();
    this.#timers.splice(index, 1);
    this.#armTimer();
  }

  setImmediate(callback: () => void): void {
    this.#activity.nextTurn(callback);
  }

  /**
   * Adds this much time without waiting for it, in steps: everything that follows from one step is
   * done before the next. Resolves when that has happened.
   */
  advance(ms: number): Promise<void> {
    if (!(ms >= 0 && ms < Infinity))
      return Promise.reject(new RangeError(`advance takes a finite number of milliseconds, 0 or greater, not ${ms}`));
    const advanced = this.#advancing.then(() => this.#advance(ms));
    this.#advancing = advanced.catch(() => undefined);
    return advanced;
  }

  async #advance(ms: number): Promise<void> {
    await this.#activity.settle(true);
    for (let left = ms; left > 0 && !this.#activity.isClosed; left -= this.#stepMs) {
      this.#runUntil(Math.min(left, this.#stepMs));
      await this.#activity.settle(left <= this.#stepMs);
    }
  }

  #runUntil(ms: number): void {
    this.#update();
    const end = this.#elapsedMs + ms;
    for (let first = this.#timers[0]; first !== undefined && first.dueMs <= end; first = this.#timers[0]) {
      this.#setElapsed(first.dueMs);
      this.#callFirst();
    }
    this.#setElapsed(end);
    this.#armTimer();
  }

  /** Sets the elapsed time, unless it is already later. */
  #setElapsed(elapsedMs: number): void {
    if (elapsedMs <= this.#elapsedMs) return;
    this.#skippedMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #update(): void {
    const realMs = performance.now();
    const limitMs = (this.#timers[0]?.dueMs ?? Infinity) + this.#stepMs;
    this.#elapsedMs = Math.max(this.#elapsedMs, Math.min(this.#elapsedMs + realMs - this.#updatedAtMs, limitMs));
    this.#updatedAtMs = realMs;
  }

  #callFirst(): void {
    const { callback, isServers } = this.#timers.shift()!;
    // A client's reaction goes over TCP.
    if (isServers) this.#activity.notifyChange();
    else this.#activity.notifyExternalTraffic();
    callback();
  }

  #armTimer(): void {
    const dueMs = this.#timers[0]?.dueMs ?? Infinity;
    if (dueMs === this.#realTimerDueMs) return;
    clearTimeout(this.#realTimer);
    this.#realTimerDueMs = dueMs;
    if (dueMs === Infinity) this.#realTimer = undefined;
    // Node may call a fraction of a millisecond early.
    else this.#realTimer = setTimeout(this.#onTimer, Math.min(Math.max(0, dueMs - this.#elapsedMs) + 1, timerMsMax));
  }

  readonly #onTimer = (): void => {
    this.#realTimer = undefined;
    this.#realTimerDueMs = Infinity;
    this.#update();
    try {
      // Timers set by a callback run later, so that others get their turn.
      for (let due = this.#timers.filter(({ dueMs }) => dueMs <= this.#elapsedMs).length; due > 0; due--) {
        if (this.#timers[0] === undefined || this.#timers[0].dueMs > this.#elapsedMs) break;
        this.#callFirst();
      }
    } finally {
      this.#armTimer();
    }
  };
}

/** The clock of one server process. After the process has ended, its timers are not called. */
export class ProcessClock implements Clock {
  readonly #clock: TestClock;
  readonly #timers = new Set<TimerHandle>();
  #hasEnded = false;

  constructor(clock: TestClock) {
    this.#clock = clock;
  }

  now(): Now {
    return this.#clock.now();
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    if (this.#hasEnded) return {};
    const timer = this.#clock.afterForServer(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
    return timer;
  }

  cancel(timer: TimerHandle): void {
    this.#timers.delete(timer);
    this.#clock.cancel(timer);
  }

  setImmediate(callback: () => void): void {
    this.#clock.setImmediate(() => {
      if (!this.#hasEnded) callback();
    });
  }

  end(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) this.#clock.cancel(timer);
    this.#timers.clear();
  }
}

/** How often the probe measures. */
const probeIntervalMs = 50;

/**
 * A server checks its memory ten times a second, which costs more than everything else it does
 * while idle. Added time does not change the memory.
 */
export function throttleProbe(probe: MemoryProbe): MemoryProbe {
  let probedAtMs = -Infinity;
  let reading: ReturnType<MemoryProbe> = [];
  return (...args) => {
    const nowMs = performance.now();
    if (nowMs - probedAtMs >= probeIntervalMs) {
      probedAtMs = nowMs;
      reading = probe(...args);
    }
    return reading;
  };
}
