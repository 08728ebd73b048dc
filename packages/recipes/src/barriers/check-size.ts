/** Of a barrier. */
export function checkSize(size: number): void {
  if (!Number.isSafeInteger(size) || size < 1)
    throw new RangeError(`the size of a barrier is how many it waits for: 1, 2, 3 and so on, not ${size}`);
}
