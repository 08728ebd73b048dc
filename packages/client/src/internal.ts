/** What sibling packages need of the client and users do not. */
export { onAbort } from './signals.ts';
