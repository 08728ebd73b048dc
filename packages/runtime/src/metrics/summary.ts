/**
 * ZooKeeper's two kinds of summary. Adding a value is a handful of arithmetic on fields and one
 * typed array, because it happens for every request.
 */
import { average } from '../ports/java-text.ts';

/** The printed values of a summary. All are 0 while it is empty. */
export interface SummaryValues {
  /** Up to four decimals. */
  readonly avg: number;
  readonly min: number;
  readonly max: number;
  readonly count: number;
  readonly sum: number;
}

/** Minimum, maximum, count and sum. */
export class Summary implements SummaryValues {
  count = 0;
  sum = 0;
  #min = Infinity;
  #max = -Infinity;

  add(value: number): void {
    this.count++;
    this.sum += value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  /** Adds a value that has occurred `count` times. */
  addAll(value: number, count: number): void {
    this.count += count;
    this.sum += value * count;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  get avg(): number {
    return average(this.sum, this.count);
  }

  get min(): number {
    return this.count === 0 ? 0 : this.#min;
  }

  get max(): number {
    return this.count === 0 ? 0 : this.#max;
  }

  reset(): void {
    this.count = 0;
    this.sum = 0;
    this.#min = Infinity;
    this.#max = -Infinity;
  }
}

/**
 * Bits of a value that are kept: 64 classes for each power of two, so that a percentile is at most
 * 1.6 % off, and exact below 128.
 */
const keptBits = 6;
const classesPerPower = 1 << keptBits;
/** Values are whole numbers below 2^31; larger ones count as 2^31 - 1. */
const classCount = (31 - keptBits + 1) * classesPerPower;

/**
 * A summary with percentiles. ZooKeeper samples 4,096 values for them; here all values are counted
 * in classes.
 */
export class AdvancedSummary extends Summary {
  readonly #counts = new Uint32Array(classCount);

  override add(value: number): void {
    super.add(value);
    this.#counts[classOf(value)]!++;
  }

  override addAll(value: number, count: number): void {
    super.addAll(value, count);
    this.#counts[classOf(value)]! += count;
  }

  /** The value below which this share lies, interpolated and rounded as ZooKeeper does. */
  percentile(share: number): number {
    if (this.count === 0) return 0;
    const position = share * (this.count + 1);
    const index = Math.floor(position);
    if (index < 1) return this.min;
    if (index >= this.count) return this.max;
    const lower = this.#valueAt(index);
    const upper = this.#valueAt(index + 1);
    return Math.round(lower + (position - index) * (upper - lower));
  }

  override reset(): void {
    super.reset();
    this.#counts.fill(0);
  }

  /** The value at this position of all sorted values, counted from 1. */
  #valueAt(place: number): number {
    let seen = 0;
    for (let index = 0; index < classCount; index++) {
      seen += this.#counts[index]!;
      if (seen >= place) return Math.max(this.min, Math.min(this.max, leastOf(index)));
    }
    return this.max;
  }
}

function classOf(value: number): number {
  const whole = value >= 0x7fffffff ? 0x7fffffff : value <= 0 ? 0 : value | 0;
  const power = 31 - Math.clz32(whole | 1);
  if (power <= keptBits) return whole;
  const shift = power - keptBits;
  return shift * classesPerPower + (whole >>> shift);
}

function leastOf(index: number): number {
  if (index < 2 * classesPerPower) return index;
  const shift = Math.floor(index / classesPerPower) - 1;
  return (index - shift * classesPerPower) * 2 ** shift;
}
