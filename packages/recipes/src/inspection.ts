/** How recipes look in console.log: by their state, their path and a session, and never by data or a password. */

/** What Node hands to a method that shows an object: node:util's `inspect`. */
export type Inspect = (shown: object, options: unknown) => string;

/** `Held { state: 'held', ... }`. */
export function inspected(object: object, shown: object, options: unknown, inspect: Inspect): string {
  return `${object.constructor.name} ${inspect(shown, options)}`;
}
