/**
 * Time as a machine keeps it, with two differences: a test may let time pass that has not passed, and time in which the process stood still
 * counts for little. A debugger that halts the process for a minute, or a machine that is busy with other things, would else look to servers
 * as if every client and every other server had been silent for as long: sessions would expire and leaders would fall that nobody touched.
 *
 * Time never passes a timer that waits to be called by more than half a tick. That is why a standstill counts for no more, and why it makes no
 * difference to a process that is merely late.
 */
import type { Now } from '@tskeeper/core';
import type { Clock, MemoryProbe, TimerHandle } from '@tskeeper/runtime';
import type { Activity } from './activity.ts';

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  readonly isServers: boolean;
}

/** Longer than any timer of Node can wait. */
const timerMsMax = 0x7fffffff;

export class TestClock implements Clock {
  readonly #activity: Activity;
  /** Time passes in steps of this at most when it is made to pass. */
  readonly #stepMs: number;
  #elapsedMs = performance.now();
  /** When `#elapsedMs` was so, on the machine's clock. */
  #readMs = performance.now();
  /** Time that has not passed. */
  #addedMs = 0;
  /** The one that is due first comes first; of those due at once, the one that was set first. */
  readonly #timers: Timer[] = [];
  #real: NodeJS.Timeout | undefined;
  #realDueMs = Infinity;
  #advancing: Promise<void> = Promise.resolve();

  /** @param tickMs the servers' tick: in less than half of it nobody is missed. */
  constructor(activity: Activity, tickMs: number) {
    this.#activity = activity;
    this.#stepMs = Math.max(1, tickMs * 0.45);
  }

  now(): Now {
    this.#read();
    return { elapsedMs: Math.floor(this.#elapsedMs), wallMs: Date.now() + Math.floor(this.#addedMs) };
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    return this.#set(delayMs, callback, false);
  }

  /** As `after`, for a server: what it does about it is seen by the activity. */
  afterForServer(delayMs: number, callback: () => void): TimerHandle {
    return this.#set(delayMs, callback, true);
  }

  #set(delayMs: number, callback: () => void, isServers: boolean): TimerHandle {
    this.#read();
    const timer: Timer = { dueMs: this.#elapsedMs + Math.max(0, delayMs), callback, isServers };
    let index = this.#timers.length;
    while (index > 0 && this.#timers[index - 1]!.dueMs > timer.dueMs) index--;
    this.#timers.splice(index, 0, timer);
    this.#arm();
    return timer;
  }

  cancel(handle: TimerHandle): void {
    const index = this.#timers.indexOf(handle as Timer);
    if (index === -1) return;
    this.#read();
    this.#timers.splice(index, 1);
    this.#arm();
  }

  soon(callback: () => void): void {
    this.#activity.soon(callback);
  }

  /**
   * Lets so much time pass, without waiting for it: in steps, with everything that follows from one done before the next. Resolves when that has
   * happened.
   */
  advance(ms: number): Promise<void> {
    if (!(ms >= 0 && ms < Infinity))
      return Promise.reject(new RangeError(`time passes forwards, and ends: advance takes a number of milliseconds from 0 on, not ${ms}`));
    const advanced = this.#advancing.then(() => this.#advance(ms));
    this.#advancing = advanced.catch(() => undefined);
    return advanced;
  }

  async #advance(ms: number): Promise<void> {
    await this.#activity.settle(true);
    for (let left = ms; left > 0 && !this.#activity.isClosed; left -= this.#stepMs) {
      this.#pass(Math.min(left, this.#stepMs));
      await this.#activity.settle(left <= this.#stepMs);
    }
  }

  #pass(ms: number): void {
    this.#read();
    const end = this.#elapsedMs + ms;
    for (let first = this.#timers[0]; first !== undefined && first.dueMs <= end; first = this.#timers[0]) {
      this.#add(first.dueMs);
      this.#call();
    }
    this.#add(end);
    this.#arm();
  }

  /** It is so late now, unless it is later. */
  #add(elapsedMs: number): void {
    if (elapsedMs <= this.#elapsedMs) return;
    this.#addedMs += elapsedMs - this.#elapsedMs;
    this.#elapsedMs = elapsedMs;
  }

  #read(): void {
    const realMs = performance.now();
    const limitMs = (this.#timers[0]?.dueMs ?? Infinity) + this.#stepMs;
    this.#elapsedMs = Math.max(this.#elapsedMs, Math.min(this.#elapsedMs + realMs - this.#readMs, limitMs));
    this.#readMs = realMs;
  }

  #call(): void {
    const { callback, isServers } = this.#timers.shift()!;
    // What a client does about it goes over TCP.
    if (isServers) this.#activity.happened();
    else this.#activity.outside();
    callback();
  }

  #arm(): void {
    const dueMs = this.#timers[0]?.dueMs ?? Infinity;
    if (dueMs === this.#realDueMs) return;
    clearTimeout(this.#real);
    this.#realDueMs = dueMs;
    if (dueMs === Infinity) this.#real = undefined;
    // Node may call a fraction of a millisecond early.
    else this.#real = setTimeout(this.#onTimer, Math.min(Math.max(0, dueMs - this.#elapsedMs) + 1, timerMsMax));
  }

  readonly #onTimer = (): void => {
    this.#real = undefined;
    this.#realDueMs = Infinity;
    this.#read();
    try {
      // Those that are set meanwhile have their turn later, so that others get theirs.
      for (let due = this.#timers.filter(({ dueMs }) => dueMs <= this.#elapsedMs).length; due > 0; due--) {
        if (this.#timers[0] === undefined || this.#timers[0].dueMs > this.#elapsedMs) break;
        this.#call();
      }
    } finally {
      this.#arm();
    }
  };
}

/** The clock as one server process sees it. When that has ended it is called no more. */
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

  soon(callback: () => void): void {
    this.#clock.soon(() => {
      if (!this.#hasEnded) callback();
    });
  }

  end(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) this.#clock.cancel(timer);
    this.#timers.clear();
  }
}

/** How often it is really looked. */
const lookMs = 50;

/**
 * A server looks at its memory ten times a second, which costs more than everything else it does when nothing happens. In time that does not really
 * pass, memory does not change.
 */
export function inRealTime(probe: MemoryProbe): MemoryProbe {
  let lookedMs = -Infinity;
  let seen: ReturnType<MemoryProbe> = [];
  return (...asked) => {
    const nowMs = performance.now();
    if (nowMs - lookedMs >= lookMs) {
      lookedMs = nowMs;
      seen = probe(...asked);
    }
    return seen;
  };
}
