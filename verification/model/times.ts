/**
 * A real server stamps ctime and mtime with its own clock. The model uses unique ticks instead; the
 * first stat that shows a tick reveals the server's time for it, and from then on the two must
 * agree.
 */
import type { Message } from '@tskeeper/simulator';

export class TimeMapping {
  readonly #real = new Map<number, number>();
  #tick = 1_000_000;
  /** When each tick was issued, for a rough check of the server's time. */
  readonly #handedOutMs = new Map<number, number>();

  /** The model's time for a request sent now. */
  tick(sentMs = 0): number {
    this.#tick++;
    this.#handedOutMs.set(this.#tick, sentMs);
    return this.#tick;
  }

  real(tick: number): number | undefined {
    return tick === 0 ? 0 : this.#real.get(tick);
  }

  /**
   * The model's expectation, with ticks replaced by the server's times as far as they are known, or
   * shown here for the first time.
   */
  translate<T extends Message>(expected: T, actual: Message | undefined): T {
    return this.#walk(expected, actual) as T;
  }

  #walk(expected: unknown, actual: unknown): unknown {
    if (Array.isArray(expected)) return expected.map((item, at) => this.#walk(item, (actual as unknown[] | undefined)?.[at]));
    if (expected === null || typeof expected !== 'object') return expected;
    const other = actual as Record<string, unknown> | null | undefined;
    return Object.fromEntries(
      Object.entries(expected).map(([key, value]) => {
        if (key !== 'ctime' && key !== 'mtime') return [key, this.#walk(value, other?.[key])];
        return [key, this.#match(value as number, other?.[key] as number | undefined)];
      }),
    );
  }

  #match(tick: number, shown: number | undefined): number {
    const known = this.real(tick);
    if (known !== undefined || shown === undefined) return known ?? tick;
    const handedOut = this.#handedOutMs.get(tick) ?? 0;
    // A minute is far more than a request may take, and far less than the difference of a wrong
    // field.
    if (handedOut !== 0 && Math.abs(shown - handedOut) > 60_000) return tick;
    this.#real.set(tick, shown);
    return shown;
  }
}
