/**
 * Unique numbers, most of them without a request: takes a range at a time, and hands its numbers
 * out locally (Curator's CachedAtomicLong).
 *
 *     number 200 ──add 100──> number 300        200 .. 299 are ours, and handed out one by one
 */
import { checkCount, named, surplusOf } from '../given.ts';
import { bothSettled } from '../waiting/both.ts';
import { Limit, unlessAborted } from '../waiting/limit.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { AtomicNumber } from './atomic-number.ts';

interface Range<Value> {
  readonly first: Value;
  given: number;
}

/**
 * Hands out the numbers of ranges of an `AtomicNumber`, each once. They grow within one process,
 * but not across processes; the rest of a range is lost when its process ends.
 */
export class CachedNumber<Value extends number | bigint = bigint> {
  readonly #number: AtomicNumber<Value>;
  readonly #size: number;
  #range: Range<Value> | undefined;
  /** One call after the other, so that two calls at the end of a range take one range, not two. */
  #last: Promise<unknown> = Promise.resolve();

  /** `size`: how many numbers are taken at a time. */
  constructor(number: AtomicNumber<Value>, size: number) {
    checkCount(arguments.length, 2, 'new CachedNumber(number, size)');
    if (!(number instanceof AtomicNumber)) throw new TypeError(`ranges are taken of an AtomicNumber, not of ${named(number)}`);
    if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`the size of a range is a whole number from 1, not ${size}`);
    this.#number = number;
    this.#size = size;
  }

  /**
   * The next number. Rejects as `AtomicNumber.add` does, which is called at the end of each range;
   * a range whose reply was lost is skipped.
   */
  next(options: WaitOptions = {}): Promise<Value> {
    const surplus = surplusOf(arguments.length, 1, 'next(options)');
    if (surplus !== undefined) return Promise.reject(surplus);
    const turn = this.#next(this.#last, options);
    this.#last = bothSettled(this.#last, turn);
    return turn;
  }

  async #next(last: Promise<unknown>, options: WaitOptions): Promise<Value> {
    const { source, path } = this.#number;
    using limit = new Limit(source, options, `the next number of ${path}`);
    const { signal } = limit;
    await unlessAborted(last, signal);
    const { add, of } = this.#number.format;
    if (this.#range === undefined || this.#range.given === this.#size) {
      const { before } = await this.#number.add(of(this.#size), { signal });
      this.#range = { first: before, given: 0 };
    }
    return add(this.#range.first, of(this.#range.given++));
  }
}
