/** A slip in the command line: the message says what there is. */
export class UsageError extends Error {}
