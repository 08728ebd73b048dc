/** What a recipe itself refuses. What a server refuses stays a `KeeperError`, and what a signal says stays its reason. */

/**
 * - `TimedOut`: not within the `timeoutMs` of the call.
 * - `Closed`: the recipe was closed, or the client was, so what was waited for will not come.
 */
export type RecipeErrorCode = 'TimedOut' | 'Closed';

export class RecipeError extends Error {
  override readonly name = 'RecipeError';
  /** Match on this. */
  readonly code: RecipeErrorCode;

  constructor(code: RecipeErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
