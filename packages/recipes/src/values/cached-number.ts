/**
 * Numbers that nobody else gets, most of them without asking a server: a range is taken at a time, and given out here (Curator's CachedAtomicLong).
 *
 *     number 200 ──add 100──> number 300        200 .. 299 are ours, and given out one by one
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

/** Gives out numbers by ranges of an `AtomicNumber`, each once. They grow here; across processes they do not, and what is left of a range when a process ends is lost. */
export class CachedNumber<Value extends number | bigint = bigint> {
  readonly #number: AtomicNumber<Value>;
  readonly #size: number;
  #range: Range<Value> | undefined;
  /** One after the other, so that two who come to the end of a range take one more, and not two. */
  #last: Promise<unknown> = Promise.resolve();

  /** `size`: how many numbers are taken at a time. */
  constructor(number: AtomicNumber<Value>, size: number) {
    checkCount(arguments.length, 2, 'new CachedNumber(number, size)');
    if (!(number instanceof AtomicNumber)) throw new TypeError(`ranges are taken of an AtomicNumber, not of ${named(number)}`);
    if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`a range has a whole number of numbers, from 1, not ${size}`);
    this.#number = number;
    this.#size = size;
  }

  /** The next number. Rejects as `AtomicNumber.add` does, which is asked at the end of each range; a range whose taking was not answered is left out. */
  next(options: WaitOptions = {}): Promise<Value> {
    const surplus = surplusOf(arguments.length, 1, 'next(options)');
    if (surplus !== undefined) return Promise.reject(surplus);
    const turn = this.#next(this.#last, options);
    this.#last = bothSettled(this.#last, turn);
    return turn;
  }

  async #next(last: Promise<unknown>, options: WaitOptions): Promise<Value> {
    const { source, path } = this.#number;
    using limit = new Limit(source, options, `a number of ${path}`);
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
