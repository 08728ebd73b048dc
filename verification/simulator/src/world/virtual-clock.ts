/**
 * The time of a virtual world, and its single list of future events.
 *
 * Entries run by their instant. Among those of one instant the seed decides, so that no code relies
 * on an order that is not guaranteed. Entries of `soon` run after everything else that is due by
 * then, as `Clock` promises.
 */
import type { Now } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { Clock, SeededRandom, TimerHandle } from '@tskeeper/runtime';

/** The owner of entries. Those of a dead owner do nothing; those of a paused one wait. */
export interface TimerOwner {
  isDead: boolean;
  pausedUntilMs: Millis;
}

/** The time of a machine. */
export interface MachineClock {
  /**
   * Added to the world's time. It jumps when an operator or a faulty time server sets the clock.
   */
  readonly wallOffsetMs: Millis;
  /** The origin of the monotonic clock: it starts again at each boot of the machine. */
  readonly bootedMs: Millis;
  /** The duration of the current turn: entries of `soon` run this much later. */
  turnMs(): Millis;
}

/** Far from the monotonic clock, so that a mix-up of the two shows. */
export const wallOffsetMs = 1_700_000_000_000;

/**
 * The world's time moves in steps of this length, in milliseconds, so sums and differences of times
 * are exact. With rounding errors a timer could fire slightly too early, and its owner would set it
 * again forever.
 */
const stepMs = 1 / 65_536;

/** The first step at or after this time. */
function stepAt(ms: Millis): Millis {
  return Math.ceil(ms / stepMs) * stepMs;
}

interface ScheduledEntry {
  atMs: Millis;
  /** 1 for `soon`. */
  readonly phase: 0 | 1;
  tie: number;
  readonly order: number;
  readonly what: string;
  readonly owner: TimerOwner | undefined;
  readonly run: () => void;
  cancelled: boolean;
}

function isBefore(a: ScheduledEntry, b: ScheduledEntry): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  if (a.phase !== b.phase) return a.phase < b.phase;
  // Entries of `soon` run in the order in which they were added.
  if (a.phase === 0 && a.tie !== b.tie) return a.tie < b.tie;
  return a.order < b.order;
}

export class VirtualClock implements Clock {
  readonly #random: SeededRandom;
  readonly #heap: ScheduledEntry[] = [];
  #order = 0;
  #onAdded: (() => void) | undefined;
  #elapsedMs: Millis = 1000;
  /** Called for each entry that runs. */
  onRun: (what: string, elapsedMs: Millis) => void = () => undefined;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  get elapsedMs(): Millis {
    return this.#elapsedMs;
  }

  now(): Now {
    return { elapsedMs: this.#elapsedMs, wallMs: Math.floor(this.#elapsedMs) + wallOffsetMs };
  }

  after(delayMs: Millis, callback: () => void): TimerHandle {
    return this.at(this.#elapsedMs + Math.max(0, delayMs), 'wire', undefined, callback);
  }

  cancel(timer: TimerHandle): void {
    (timer as ScheduledEntry).cancelled = true;
  }

  setImmediate(callback: () => void): void {
    this.#push(this.#elapsedMs, 1, 'soon', undefined, callback);
  }

  at(atMs: Millis, what: string, owner: TimerOwner | undefined, run: () => void): TimerHandle {
    return this.#push(atMs, 0, what, owner, run);
  }

  /** The clock as one process sees it, on a machine with a time of its own. */
  forOwner(owner: TimerOwner, machine: MachineClock = { wallOffsetMs, bootedMs: 0, turnMs: () => 0 }): Clock {
    /** Keeps the order of calls of `soon`. */
    let lastSoonMs = 0;
    return {
      now: () => ({
        elapsedMs: this.#elapsedMs - machine.bootedMs,
        wallMs: Math.floor(this.#elapsedMs) + machine.wallOffsetMs,
      }),
      after: (delayMs, callback) => this.at(this.#elapsedMs + (delayMs <= 0 ? 0 : Math.max(delayMs, stepMs)), 'timer', owner, callback),
      cancel: (timer) => this.cancel(timer),
      setImmediate: (callback) => {
        lastSoonMs = Math.max(lastSoonMs, this.#elapsedMs + machine.turnMs());
        this.#push(lastSoonMs, 1, 'soon', owner, callback);
      },
    };
  }

  get isEmpty(): boolean {
    return this.#heap.length === 0;
  }

  /** Resolves when an entry is added. */
  nextEntry(): Promise<void> {
    return new Promise((resolve) => {
      this.#onAdded = resolve;
    });
  }

  /** Runs the next entry, unless it is later than `untilMs`. Returns what it was. */
  step(untilMs: Millis): string | undefined {
    for (;;) {
      const entry = this.#heap[0];
      if (entry === undefined || entry.atMs > untilMs) {
        this.#elapsedMs = Math.max(this.#elapsedMs, untilMs === Infinity ? 0 : untilMs);
        return undefined;
      }
      this.#pop();
      if (entry.cancelled || entry.owner?.isDead === true) continue;
      this.#elapsedMs = Math.max(this.#elapsedMs, entry.atMs);
      if (entry.owner !== undefined && entry.owner.pausedUntilMs > this.#elapsedMs) {
        entry.atMs = stepAt(entry.owner.pausedUntilMs);
        this.#add(entry);
        continue;
      }
      this.onRun(entry.what, this.#elapsedMs);
      entry.run();
      return entry.what;
    }
  }

  #push(atMs: Millis, phase: 0 | 1, what: string, owner: TimerOwner | undefined, run: () => void): ScheduledEntry {
    const entry: ScheduledEntry = {
      atMs: stepAt(atMs),
      phase,
      tie: this.#random.uint32(),
      order: this.#order++,
      what,
      owner,
      run,
      cancelled: false,
    };
    this.#add(entry);
    this.#onAdded?.();
    return entry;
  }

  #add(entry: ScheduledEntry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}
