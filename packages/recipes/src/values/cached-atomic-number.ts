/**
 * Unique numbers, most of them without a request: takes a range at a time, and hands its numbers
 * out locally (Curator's CachedAtomicLong).
 *
 *     number 200 ──add 100──> number 300        200 .. 299 are ours, and handed out one by one
 */
import { checkArgumentCount, describeValue, argumentCountError } from '../validation.ts';
import { Deadline, unlessAborted } from '../waiting/deadline.ts';
import { bothSettled } from '../waiting/promises.ts';
import type { WaitOptions } from '../wait-options.ts';
import { AtomicNumber } from './atomic-number.ts';

interface NumberRange<Value> {
  readonly first: Value;
  issued: number;
}

/**
 * Hands out the numbers of ranges of an `AtomicNumber`, each once. They grow within one process,
 * but not across processes; the rest of a range is lost when its process ends.
 */
export class CachedAtomicNumber<Value extends number | bigint = bigint> {
  readonly #number: AtomicNumber<Value>;
  readonly #size: number;
  #range: NumberRange<Value> | undefined;
  /** One call after the other, so that two calls at the end of a range take one range, not two. */
  #last: Promise<unknown> = Promise.resolve();

  /** `size`: how many numbers are taken at a time. */
  constructor(number: AtomicNumber<Value>, size: number) {
    checkArgumentCount(arguments.length, 2, 'new CachedAtomicNumber(number, size)');
    if (!(number instanceof AtomicNumber)) throw new TypeError(`ranges are taken of an AtomicNumber, not of ${describeValue(number)}`);
    if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`the size of a range must be a whole number from 1, not ${size}`);
    this.#number = number;
    this.#size = size;
  }

  /**
   * The next number. Rejects as `AtomicNumber.add` does, which is called at the end of each range;
   * a range whose reply was lost is skipped.
   */
  next(options: WaitOptions = {}): Promise<Value> {
    const surplus = argumentCountError(arguments.length, 1, 'next(options)');
    if (surplus !== undefined) return Promise.reject(surplus);
    const turn = this.#next(this.#last, options);
    this.#last = bothSettled(this.#last, turn);
    return turn;
  }

  async #next(last: Promise<unknown>, options: WaitOptions): Promise<Value> {
    const { source, path } = this.#number;
    using deadline = new Deadline(source, options, `the next number of ${path}`);
    const { signal } = deadline;
    await unlessAborted(last, signal);
    const { add, fromNumber } = this.#number.format;
    if (this.#range === undefined || this.#range.issued === this.#size) {
      const { before } = await this.#number.add(fromNumber(this.#size), { signal });
      this.#range = { first: before, issued: 0 };
    }
    return add(this.#range.first, fromNumber(this.#range.issued++));
  }
}
