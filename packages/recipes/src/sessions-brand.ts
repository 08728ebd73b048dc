/**
 * Identifies Sessions, also those of a second copy of this package: in a library that has its own,
 * or in a test that loads modules again.
 */

export const sessionsBrand: unique symbol = Symbol.for('tskeeper.Sessions') as never;

/** Whether it is Sessions, not a client. */
export function hasSessionsBrand(source: unknown): boolean {
  return typeof source === 'object' && source !== null && sessionsBrand in source;
}
