/** What a recipe itself refuses. What a server refuses stays a `KeeperError`, and what a signal says stays its reason. */

/**
 * - `TimedOut`: not within the `timeoutMs` of the call.
 * - `Closed`: the recipe was closed, or the client was, so what was waited for will not come.
 * - `Lost`: what was held is not held any more, or the place in line is gone: the session has ended, or somebody has deleted the znode.
 * - `Revoked`: somebody has asked for the place in line back before it had its turn.
 * - `Refused`: a model, a schema or a list of migrations does not allow it. Nothing was written.
 * - `Mismatch`: what the ensemble has is not what the program says it is, or others use the same znodes with other settings.
 */
export type RecipeErrorCode = 'TimedOut' | 'Closed' | 'Lost' | 'Revoked' | 'Refused' | 'Mismatch';

/** Also of a second copy of this package, whose Sessions have ended. */
export function isRecipeError(error: unknown): boolean {
  return error instanceof Error && error.name === 'RecipeError';
}

/** Thrown and rejected with by recipes, whatever their kind. */
export class RecipeError extends Error {
  override readonly name = 'RecipeError';
  /** Match on this. */
  readonly code: RecipeErrorCode;

  constructor(code: RecipeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
