/**
 * Numbers that nobody else gets, most of them without asking a server: a range is taken at a time, and given out here (Curator's CachedAtomicLong).
 *
 *     number 200 ──add 100──> number 300        200 .. 299 are ours, and given out one by one
 */
import { Limit, unlessAborted } from '../waiting/limit.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import type { AtomicNumber } from './atomic-number.ts';

interface Range<Value> {
  readonly first: Value;
  given: number;
}

/** Gives out numbers by ranges of an `AtomicNumber`, each once. They grow here; across processes they do not, and what is left of a range when a process ends is lost. */
export class CachedNumber<Value extends number | bigint = bigint> {
  readonly #number: AtomicNumber<Value>;
  readonly #size: number;
  #range: Range<Value> | undefined;
  /** The last to come: one after the other, so that two who come to the end of a range take one more, and not two. */
  #last: Promise<unknown> = Promise.resolve();

  /** `size`: how many numbers are taken at a time. */
  constructor(number: AtomicNumber<Value>, size: number) {
    if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`a range has a whole number of numbers, from 1, not ${size}`);
    this.#number = number;
    this.#size = size;
  }

  /** The next number. Rejects as `AtomicNumber.add` does, which is asked at the end of each range; a range whose taking was not answered is left out. */
  async next(options: WaitOptions = {}): Promise<Value> {
    using limit = new Limit(this.#number, options, `a number of ${this.#number.path}`);
    const before = this.#last;
    const turn = this.#inTurn(before, limit.signal);
    // Who gives up has not ended those before.
    this.#last = Promise.allSettled([before, turn]);
    return await turn;
  }

  async #inTurn(before: Promise<unknown>, signal: AbortSignal): Promise<Value> {
    await unlessAborted(before, signal);
    const { add, of } = this.#number.format;
    if (this.#range === undefined || this.#range.given === this.#size) {
      const { before: first } = await this.#number.add(of(this.#size), { signal });
      this.#range = { first, given: 0 };
    }
    return add(this.#range.first, of(this.#range.given++));
  }
}
