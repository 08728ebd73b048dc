/** An error in the command line; the message lists the options. */
export class UsageError extends Error {}
