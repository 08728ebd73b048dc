/**
 * The errors of the recipes themselves. A rejection by a server stays a `KeeperError`, and the
 * reason of an aborted signal stays that reason.
 */

/**
 * - `TimedOut`: the call did not finish within its `timeoutMs`.
 * - `Closed`: the recipe or the client was closed, so what the call waited for cannot happen.
 * - `Lost`: the hold or the place in the queue is gone: the session has ended, or another client
 *   has deleted the znode.
 * - `Revoked`: another client has revoked the place in the queue while it waited.
 * - `Refused`: a model, a schema or a list of migrations does not allow it. Nothing was written.
 * - `Mismatch`: the tree differs from what the program expects, or other clients use the same
 *   znodes with other settings.
 */
export type RecipeErrorCode = 'TimedOut' | 'Closed' | 'Lost' | 'Revoked' | 'Refused' | 'Mismatch';

/** Compares the name, so that it also recognises errors of a second copy of this package. */
export function isRecipeError(error: unknown): boolean {
  return error instanceof Error && error.name === 'RecipeError';
}

/** What recipes throw and reject with, except errors of the client and the server. */
export class RecipeError extends Error {
  override readonly name = 'RecipeError';
  /** Match on this. */
  readonly code: RecipeErrorCode;

  constructor(code: RecipeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
