/** By which Sessions are known, also those of a second copy of this package: of a library that brings its own, or in a test that loads modules anew. */

export const sessionsBrand: unique symbol = Symbol.for('tskeeper.Sessions') as never;

/** Whether it is Sessions, and not a client. */
export function hasSessionsBrand(source: unknown): boolean {
  return typeof source === 'object' && source !== null && sessionsBrand in source;
}
