/** How `console.log` shows recipes: their state, path and session, never data or a password. */

/** What Node passes to a method that shows an object: `inspect` of node:util. */
export type InspectFunction = (shown: object, options: unknown) => string;

/** `Hold { state: 'held', ... }`. */
export function inspectObject(object: object, shown: object, options: unknown, inspect: InspectFunction): string {
  return `${object.constructor.name} ${inspect(shown, options)}`;
}
