/**
 * The machine's time in the form that the simulator's clients use. It shows wall clock time, and
 * runs steadily.
 */
import type { ClientClock } from '@tskeeper/simulator';

type Timer = ReturnType<typeof setTimeout>;

export class RealClock implements ClientClock {
  /** Servers stamp their txns with the wall clock, so the two must agree. */
  readonly #offsetMs = Date.now() - performance.now();
  readonly #timers = new Set<Timer>();
  #stopped = false;

  get elapsedMs(): number {
    return performance.now() + this.#offsetMs;
  }

  now(): { readonly elapsedMs: number; readonly wallMs: number } {
    const { elapsedMs } = this;
    return { elapsedMs, wallMs: Math.floor(elapsedMs) };
  }

  after(delayMs: number, callback: () => void): object {
    if (this.#stopped) return {};
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        callback();
      },
      Math.min(delayMs, 0x7fffffff),
    );
    this.#timers.add(timer);
    return timer;
  }

  at(atMs: number, _what: string, _owner: undefined, run: () => void): object {
    return this.after(Math.max(0, atMs - this.elapsedMs), run);
  }

  cancel(timer: object): void {
    clearTimeout(timer as Timer);
    this.#timers.delete(timer as Timer);
  }

  setImmediate(callback: () => void): void {
    setImmediate(callback);
  }

  /** Stops all timers. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}
