/**
 * A real server stamps ctime and mtime with a clock we do not hold. The model stamps its own ticks, each used once; the first stat that
 * shows a stamp tells what the server made of that tick, and from then on the two must agree.
 */
import type { Message } from '@tskeeper/simulator';

export class TimeBook {
  readonly #real = new Map<number, number>();
  #tick = 1_000_000;
  /** When each tick was handed out, for a rough check of what the server says. */
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

  /** What the model expects, with its ticks replaced by the server's times as far as they are known, or shown here for the first time. */
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
        return [key, this.#agree(value as number, other?.[key] as number | undefined)];
      }),
    );
  }

  #agree(tick: number, shown: number | undefined): number {
    const known = this.real(tick);
    if (known !== undefined || shown === undefined) return known ?? tick;
    const handedOut = this.#handedOutMs.get(tick) ?? 0;
    // A minute is far more than a request may take, and far less than a wrong field would differ by.
    if (handedOut !== 0 && Math.abs(shown - handedOut) > 60_000) return tick;
    this.#real.set(tick, shown);
    return shown;
  }
}
