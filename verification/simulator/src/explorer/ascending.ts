/** Sets and maps in an order that does not depend on how a state was reached. */
export function ascending(numbers: Iterable<number>): number[] {
  return [...numbers].sort((a, b) => a - b);
}
