/** Throws a RangeError for a number that is not the size of a barrier. */
export function checkBarrierSize(size: number): void {
  if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`the size of a barrier must be a whole number from 1, not ${size}`);
}
